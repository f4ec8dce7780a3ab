"""Kinship: the tasks that a new task waits for, and those that could never start because of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from fairlane.model.errors import FairlaneError, Refused

#: New tasks by id, each with its `needs` and `parent`.
Kin = Mapping[str, Mapping[str, object]]
#: How many tasks of a cycle an error names.
NAMED_MAX = 10


def relatives(draft: Mapping[str, object]) -> Iterator[str]:
    """Everything that a task waits for by name."""
    needs, parent = draft.get("needs"), draft.get("parent")
    if isinstance(needs, list | tuple):
        yield from needs
    if isinstance(parent, str):
        yield parent


def unknown_text(task: str, named: str, draft: Mapping[str, object]) -> str:
    """A need or parent that does not exist."""
    if draft.get("parent") == named:
        return f"the parent of {task}, {named!r}, is not known"
    return f"{task} needs {named!r}, which is not known"


def find_cycle(kin: Kin) -> list[str]:
    """Tasks that wait for themselves, in the order of the way; nothing if there are none."""
    return next(cycles(kin), [])


def cycle_error(around: list[str]) -> FairlaneError:
    """The way around, and what to do."""
    steps = around
    if len(around) > NAMED_MAX:
        steps = [*around[:NAMED_MAX], f"({len(around) - NAMED_MAX:,} more)"]
    way = " → ".join((*steps, around[0]))
    return Refused(f"a cycle: {way}", "Take one need or parent out.", code="cycle")


def cycles(kin: Kin) -> Iterator[list[str]]:
    """Cycles that have no task in common, so that every task in trouble leads to one of them."""
    bound = _bound(kin)
    seen: set[str] = set()
    for start in bound:
        path: dict[str, None] = {}
        here = start
        while here not in path and here not in seen:
            path[here] = None
            here = next(name for name in relatives(kin[here]) if name in bound)
        if here in path:
            names = list(path)
            yield names[names.index(here) :]
        seen.update(path)


def _bound(kin: Kin) -> dict[str, int]:
    """The tasks that are in a cycle or wait for one, with how many of those they wait for."""
    open_ends = {name: len(_within(kin, name)) for name in kin}
    dependents = _dependents(kin)
    settled = [name for name, count in open_ends.items() if not count]
    for name in settled:
        for dependent in dependents.get(name, ()):
            open_ends[dependent] -= 1
            if not open_ends[dependent]:
                settled.append(dependent)
    return {name: count for name, count in open_ends.items() if count}


def _within(kin: Kin, name: str) -> set[str]:
    return {relative for relative in relatives(kin[name]) if relative in kin}


def _dependents(kin: Kin) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for name in kin:
        for relative in _within(kin, name):
            rows.setdefault(relative, []).append(name)
    return rows


def misfits(kin: Kin, known: Collection[str], gone: Collection[str] = ()) -> dict[str, str]:
    """Those that could never start, with the reason; the time grows with their number alone.

    `known` are tasks that exist, `gone` are items that were left out for another reason.
    """
    reasons: dict[str, str] = {}
    for name, draft in kin.items():
        for relative in relatives(draft):
            if relative in gone:
                reasons[name] = _left_out(relative)
            elif relative not in kin and relative not in known:
                reasons[name] = unknown_text(name, relative, draft)
            else:
                continue
            break
    dependents = _dependents(kin)
    _spread(reasons, dependents)
    for around in cycles({name: kin[name] for name in kin if name not in reasons}):
        reasons |= dict.fromkeys(around, cycle_error(around).message)
    _spread(reasons, dependents)
    return reasons


def _spread(reasons: dict[str, str], dependents: Mapping[str, list[str]]) -> None:
    """Whatever waits for one that is left out is left out too."""
    names = list(reasons)
    for name in names:
        for dependent in dependents.get(name, ()):
            if dependent not in reasons:
                reasons[dependent] = _left_out(name)
                names.append(dependent)


def _left_out(name: str) -> str:
    return f"it waits for {name}, which is left out"
