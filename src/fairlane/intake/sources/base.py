"""Source: where work already is, as one small seam. A source tells what it has; it decides nothing.

A source is a module (or any object) with `read`, and with `write` where something can be told
back. What follows from what it found is decided in one place for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from fairlane.model.instant import Instant
from fairlane.model.record import dataclass, field


@dataclass(frozen=True, slots=True)
class Where:
    """What is read: a file or folder, a text that came in, or what a program prints."""

    path: Path | None = None
    text: str | None = None  # standard input
    command: tuple[str, ...] | None = None  # instead of the source's own program
    seconds: float = 30.0  # how long a program may take
    home: Path | None = None  # the home folder

    @property
    def name(self) -> str:
        """How people see it, and how it is known again."""
        if self.command is not None:
            return " ".join(self.command)
        return "-" if self.path is None else str(self.path)


class Standing(StrEnum):
    """Whether an item is open, taken or closed."""

    OPEN = "open"  # may be taken
    TAKEN = "taken"  # somebody works on it: left out unless forced
    CLOSED = "closed"  # over: never taken


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of work as its source has it."""

    id: str  # as the source calls it
    #: The model's fields: `id` where the source's own does not fit as a task's, `title`, `prompt`,
    #: `kind`, `priority`, `project` where the source names one, `meta` for all that is left over.
    record: Mapping[str, object]
    standing: Standing = Standing.OPEN
    needs: tuple[str, ...] = ()  # items of this source, by the source's ids, that come first
    blocked: str = ""  # why it may not start yet; names the blocker
    group: str | None = None  # the collection it belongs to, by the source's id
    why: str = ""  # why it is taken or closed, in a few words
    where: str = ""  # the file or line, for messages
    again: str = ""  # a person put it back after an end that we told: which end, by any mark
    failures: int = 0  # attempts that failed before it came here
    also: tuple[str, ...] = ()  # further collections whose names mean it
    created_at: Instant | None = None  # since when it waits there; None: since it came here
    parked: str = ""  # why it is parked there until somebody retries it
    taken_until: Instant | None = None  # when the lease of whoever took it ends
    unasked: str = ""  # why it comes only when it is asked for by its id


@dataclass(frozen=True, slots=True)
class Collection:
    """An epic, convoy, phase or batch: its items become a group."""

    id: str  # as the source calls it
    name: str  # the group's
    title: str = ""
    parent: str | None = None  # another collection, by the source's id


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not taken, and why. `bad`: the record is broken; `--strict` then refuses all.

    `sure`: the id is the record's own, however broken it is. Otherwise it may be any item.
    """

    id: str
    reason: str
    where: str = ""
    bad: bool = False
    sure: bool = False
    also: tuple[str, ...] = ()  # collections whose names mean it


@dataclass(frozen=True, slots=True)
class Found:
    """All that a source has now, in its own order."""

    items: tuple[Item, ...] = ()
    collections: tuple[Collection, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = field(default=())  # for people


@dataclass(frozen=True, slots=True)
class WriteBack:
    """What has become of an item's task, to be written into the source."""

    id: str  # as the source calls it
    task: str
    status: str  # queued, leased, running, done, parked, canceled
    at: Instant
    reason: str = ""
    #: `attempts`, `lease`, `lease_expires_at`, …; `told`: the status written before this one.
    facts: Mapping[str, object] = field(default_factory=dict)


@runtime_checkable
class Source(Protocol):
    """One file in this folder, or an entry point of the group `fairlane.sources`.

    `read` raises `Invalid` for a file that is missing or cannot be parsed at all, and `TryLater`
    for a program that cannot be asked. A single bad record is named in `left_out`. A source that
    asks a program by itself has its words in `PROGRAM`; the files of any other can be watched.
    """

    def read(self, where: Where) -> Found: ...


@runtime_checkable
class Writable(Protocol):
    """A source that accepts write-back. Writing is idempotent."""

    def write(
        self, where: Where, updates: Sequence[WriteBack]
    ) -> list[str]: ...  # ids that were written
