"""Merging: what the source says now, what it said before, and what people changed here since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlane.intake import fields
from fairlane.intake.routing import Router
from fairlane.model.task import Status, Task
from fairlane.service.sourcing.remembered import digest

#: Another parent would be another task.
_FIXED = ("parent",)


@dataclass(slots=True)
class Merge:
    """What follows for a task that is known."""

    values: dict[str, Any] = field(default_factory=dict)  # to be set
    empty: list[str] = field(default_factory=list)  # to be as if nobody had given them
    clashes: list[str] = field(default_factory=list)  # changed here and there
    said: dict[str, str] = field(default_factory=dict)  # to be remembered


def digests(values: Mapping[str, Any]) -> dict[str, str]:
    """What is remembered of values."""
    return {name: digest(value) for name, value in values.items()}


def untouched(task: Task) -> bool:
    """Whether nothing has been done for it yet."""
    return task.status is Status.QUEUED and task.attempts == 0


def changes(before: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[str]:
    """The fields of which the source says something else than before."""
    now = digests(values)
    yield from (name for name in {**before, **now} if before.get(name) != now.get(name))


def merge(
    task: Task, before: Mapping[str, str], values: Mapping[str, Any], router: Router
) -> Merge:
    """Field by field: the source's change is taken unless the task's was changed here."""
    found = Merge(said=dict(before))
    for name in changes(before, values):
        ours = digest(getattr(task, name))
        if name in values:
            theirs = digest(values[name])
            if ours == theirs:
                found.said[name] = theirs
            elif name not in _FIXED and ours == (before.get(name) or _unsaid(task, name, router)):
                found.values[name] = values[name]
                found.said[name] = theirs
            else:
                found.clashes.append(name)
        elif name not in _FIXED and ours == before[name]:
            found.empty.append(name)
            del found.said[name]
        elif name in _FIXED:
            found.clashes.append(name)
        else:
            del found.said[name]  # changed here, and the source says nothing any more
    return found


def anew(task: Task, before: Mapping[str, str], values: Mapping[str, Any]) -> Merge:
    """A task that comes back says what its source says, as a new one does."""
    free = {name: value for name, value in values.items() if name not in _FIXED}
    other = {name: value for name, value in free.items() if getattr(task, name) != value}
    gone = [name for name in before if name not in values and name not in _FIXED]
    return Merge(other, gone, said=digests(values))


def _unsaid(task: Task, name: str, router: Router) -> str:
    """What a field is when neither source nor people gave it."""
    whole = router.complete({"id": task.id, "project": task.project}, named=False)
    default = fields.defaults([name])[name]
    return digest(getattr(task, name) if name == "project" else whole.get(name, default))
