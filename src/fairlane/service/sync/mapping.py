"""What is remembered of a source, and merged: what it says now, said before, and people changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NotRequired, TypedDict

from fairlane.intake import fields
from fairlane.intake.routing import Router
from fairlane.intake.sources.base import Item, Where
from fairlane.model.codec import canonical, digest, encode
from fairlane.model.record import dataclass, field
from fairlane.model.task import Status, Task
from fairlane.store.base import Reading, Writing

#: How many imports can be undone.
IMPORTS_KEPT = 100


class Entry(TypedDict):
    """What is remembered of an item that has a task."""

    task: str
    fields: dict[str, str]  # a digest of each value that the source gave
    failures: int  # those that the source counted
    away: NotRequired[str]  # why its task was canceled (`closed`, `undone`): it may return
    forced: NotRequired[bool]  # it was wanted though somebody works on it
    parked: NotRequired[str]  # why its source had parked it when it was asked last
    again: NotRequired[str]  # which end it was put back after; that was followed


class Import(TypedDict):
    """An import that can be undone; `items`: what it created, item -> task."""

    source: str
    path: str
    key: str
    items: dict[str, str]
    undone: NotRequired[bool]


def source_key(source: str, where: Where) -> str:
    """How a source is known again, wherever it is asked from."""
    path = "-" if where.path is None else os.path.abspath(where.path)  # noqa: PTH100 - links stay
    if where.command is None:
        return f"{source}:{path}"
    command = " ".join(where.command)
    return f"{source}:{command}" if where.path is None else f"{source}:{path} {command}"


def live_entries(reading: Reading, key: str) -> dict[str, Entry]:
    """The items of a source that have a task, by the source's ids."""
    return {item: entry for item, entry in entries(reading, key).items() if "away" not in entry}


def entries(reading: Reading, key: str) -> dict[str, Entry]:
    """Everything that is remembered of a source."""
    known: dict[str, Entry] | None = reading.value(f"source:{key}")
    return known or {}


def entry_of(item: Item, task: str, values: Mapping[str, object]) -> Entry:
    """What is remembered of an item that has just become a task."""
    entry: Entry = {"task": task, "fields": digests(values), "failures": item.failures}
    if item.parked:
        entry["parked"] = item.parked
    return entry


def remember(tx: Writing, key: str, known: dict[str, Entry]) -> None:
    """Keep it, if it has changed."""
    if known != entries(tx, key):
        tx.put_value(f"source:{key}", known or None)


def keep_import(tx: Writing, source: str, where: Where, key: str, items: dict[str, str]) -> int:
    """The number of an import, by which it can be undone; `items`: what it created."""
    number = tx.number("import")
    record: Import = {"source": source, "path": where.name, "key": key, "items": items}
    tx.put_value(f"import:{number}", record)
    tx.put_value("import", number)
    if number > IMPORTS_KEPT:
        tx.put_value(f"import:{number - IMPORTS_KEPT}", None)
    return number


def digest_of(value: object) -> str:
    """What tells one value from another; prompts are long."""
    return digest(canonical(encode(value)))[:12]


#: Another parent would be another task.
_FIXED = ("parent",)


@dataclass(slots=True)
class Merge:
    """What follows for a task that is known."""

    values: dict[str, object] = field(default_factory=dict)  # to be set
    empty: list[str] = field(default_factory=list)  # to be as if nobody had given them
    clashes: list[str] = field(default_factory=list)  # changed here and there
    said: dict[str, str] = field(default_factory=dict)  # to be remembered


def digests(values: Mapping[str, object]) -> dict[str, str]:
    """What is remembered of values."""
    return {name: digest_of(value) for name, value in values.items()}


def untouched(task: Task) -> bool:
    """Whether nothing has been done for it yet; it may have come in parked."""
    return task.status in (Status.QUEUED, Status.PARKED) and task.attempts == 0


def changes(before: Mapping[str, str], values: Mapping[str, object]) -> Iterator[str]:
    """The fields of which the source says something else than before."""
    now = digests(values)
    yield from (name for name in {**before, **now} if before.get(name) != now.get(name))


def late_changes(before: Mapping[str, str], values: Mapping[str, object]) -> Iterator[str]:
    """Those that are news for a task that has started.

    When it may start is none: a write-back puts the backoff of the task there.
    """
    yield from (name for name in changes(before, values) if name != "not_before")


def merge(
    task: Task, before: Mapping[str, str], values: Mapping[str, object], router: Router
) -> Merge:
    """Field by field: the source's change is taken unless the task's was changed here."""
    result = Merge(said=dict(before))
    for name in changes(before, values):
        ours = digest_of(getattr(task, name))
        if name in values:
            theirs = digest_of(values[name])
            if ours == theirs:
                result.said[name] = theirs
            elif name not in _FIXED and ours == (before.get(name) or _unsaid(task, name, router)):
                result.values[name] = values[name]
                result.said[name] = theirs
            else:
                result.clashes.append(name)
        elif name not in _FIXED and ours == before[name]:
            result.empty.append(name)
            del result.said[name]
        elif name in _FIXED:
            result.clashes.append(name)
        else:
            del result.said[name]  # changed here, and the source says nothing any more
    return result


def anew(task: Task, before: Mapping[str, str], values: Mapping[str, object]) -> Merge:
    """A task that returns takes all values of its source, like a new one."""
    free = {name: value for name, value in values.items() if name not in _FIXED}
    other = {name: value for name, value in free.items() if getattr(task, name) != value}
    gone = [name for name in before if name not in values and name not in _FIXED]
    return Merge(other, gone, said=digests(values))


def _unsaid(task: Task, name: str, router: Router) -> str:
    """What a field is when neither source nor people gave it."""
    whole = router.complete({"id": task.id, "project": task.project}, named=False)
    default = fields.defaults([name])[name]
    return digest_of(getattr(task, name) if name == "project" else whole.get(name, default))
