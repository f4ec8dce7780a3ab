"""Crew: the processes that this daemon holds leases for, watched without polling."""

from __future__ import annotations

import json
import os
import selectors
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fairlane.agents.adapter import Agent, Parser, Seen, parser_for
from fairlane.executors.base import Handle
from fairlane.executors.process import is_dead
from fairlane.executors.runfiles import Lines, append, damage_of
from fairlane.lifecycle.usage import Tokens
from fairlane.model.task import Task
from fairlane.service.holding import Progress
from fairlane.store.base import Attempt

#: How much of a log is read in one turn of the loop: no agent holds up the others by its words.
TURN_BYTES = 1 << 19


@dataclass(slots=True)
class Member:
    """One process with its lease, and what was read of its output."""

    task: Task
    attempt: Attempt
    folder: Path
    agent: Agent
    parser: Parser
    handle: Handle
    log: Lines
    stopping: str = ""
    settling: bool = False  # its end is being taken in, perhaps by another thread
    damage: str = ""  # why its output cannot be read
    final: bool = False  # its final record was read
    news: Progress = field(default_factory=Progress)
    told: Progress = field(default_factory=Progress)  # what the store knows

    @property
    def lease(self) -> str:
        """Its lease's id."""
        return self.attempt.lease

    def catch_up(self) -> None:
        """Read some of what its log has more: progress for the store, lines for `events.jsonl`."""
        with suppress(OSError):  # at its end it is said what is wrong
            self._take(self.log.more(TURN_BYTES))

    def read_out(self, record: str = "") -> None:
        """Its process is gone: read its log to the end, however long it is.

        `record` is the final record as its runner kept it, where a full disk has cut the log.
        """
        try:
            for lines in self.log.rest():
                self._take(lines)
        except OSError as error:
            self.damage = damage_of(error)
        if record and not self.final and not self.damage:
            self._take([record])

    def _take(self, lines: list[str]) -> None:
        seen: list[Seen] = []
        for line in lines:
            for each in self.parser.line(line):
                seen.append(each)
                self.final = self.final or each.kind == "final"
                self.news = _newer(self.news, each)
        if seen:
            with suppress(OSError):  # no room, or no file of ours: the store has what matters
                text = "".join(json.dumps(_document(each)) + "\n" for each in seen)
                append(self.folder / "events.jsonl", text)


class Crew:
    """The members by lease; each is watched by a descriptor that tells of its end."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._watched: dict[str, int] = {}
        self.members: dict[str, Member] = {}

    def add(self, member: Member) -> None:
        """Watch one more."""
        self.members[member.lease] = member
        if is_dead(member.handle.pid, member.handle.pid_started):
            return  # it has ended already; `unwatched` names it
        try:
            watch = os.pidfd_open(member.handle.pid)
        except ProcessLookupError:
            return
        self._watched[member.lease] = watch
        self._selector.register(watch, selectors.EVENT_READ, member.lease)

    def remove(self, lease: str) -> None:
        """It is no longer ours to watch."""
        self.members.pop(lease, None)
        self.unwatch(lease)

    def unwatch(self, lease: str) -> None:
        """Its end is known."""
        watch = self._watched.pop(lease, None)
        if watch is not None:
            self._selector.unregister(watch)
            os.close(watch)

    def unwatched(self) -> list[str]:
        """Members whose process was gone before it could be watched."""
        return [
            lease
            for lease, member in self.members.items()
            if lease not in self._watched and not member.settling
        ]

    def progress(self) -> dict[str, Progress]:
        """What members have told that the store does not know yet."""
        found = {}
        for lease, member in self.members.items():
            if member.settling:
                continue
            member.catch_up()
            if member.news != member.told:
                found[lease] = member.news
        return found

    def heard(self, progress: Mapping[str, Progress]) -> None:
        """The store knows this progress now."""
        for lease, news in progress.items():
            self.members[lease].told = news


def member_of(
    task: Task,
    attempt: Attempt,
    folder: Path,
    agent: Agent,
    handle: Handle,
    baseline: Tokens | None,
) -> Member:
    """A process that has just started, or was found alive."""
    log = Lines(folder / "stdout.log")
    return Member(task, attempt, folder, agent, parser_for(agent, baseline), handle, log)


def _newer(before: Progress, seen: Seen) -> Progress:
    return Progress(
        tokens=seen.tokens if seen.tokens is not None else before.tokens,
        usd=seen.usd if seen.usd is not None else before.usd,
        session=seen.session or before.session,
        note=seen.text[:200] if seen.kind in ("text", "tool") and seen.text else before.note,
    )


def _document(seen: Seen) -> dict[str, object]:
    found: dict[str, object] = {"kind": seen.kind, "text": seen.text}
    if seen.tokens is not None:
        found["tokens"] = seen.tokens._asdict()
    return found
