"""Every row of a store against the model, both ways."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairlane.model.record import changed
from fairlane.model.task import Attempt, Lane, Lease, Status, lane_of
from fairlane.store.base import Filter, Placed, Reading
from fairlane.testing.torture.model.rows import Model

if TYPE_CHECKING:
    from fairlane.model.event import Event
    from fairlane.store.base import Store

#: How many differences are told.
MOST = 20
#: More than any lane has.
_ALL = 1 << 40


def differences(model: Model, store: Store, everything: bool = True) -> list[str]:
    """Where the store is not as the model has it; empty: they agree.

    Without `everything` the attempts and events are compared that were written since the last
    time; all else is compared whole.
    """
    found: list[str] = []
    with store.read() as reading:
        for part in (_tasks, _lanes, _counts, _timers, _small, _usage, _decisions):
            found += list(part(model, reading))
        names = sorted(model.tasks if everything else model.touched)
        found += _attempts(model, reading, names)
        found += _events(model, reading, 0 if everything else model.compared_events)
    if not found:
        model.touched.clear()
        model.compared_events = model.last_event
    return found[:MOST]


def _tasks(model: Model, reading: Reading) -> Iterator[str]:
    left = dict(model.tasks)
    after = 0
    while page := reading.listing(Filter(), after):
        after = page[-1].task.seq
        for placed in page:
            mine = left.pop(placed.task.id, None)
            if mine is None:
                yield f"task {placed.task.id} is in the store, and nobody has added it"
            else:
                yield from _of_task(model, mine, placed)
    yield from (f"task {name} is lost" for name in left)


def _of_task(model: Model, mine: Placed, found: Placed) -> Iterator[str]:
    name, lease = found.task.id, found.task.lease
    if lease is not None:
        found = found._replace(task=changed(found.task, lease=None))
    if mine != found:
        yield from _fields(f"task {name}", mine.task, found.task)
        if mine[1:] != found[1:]:
            yield f"task {name} stands {found[1:]} in the store, it must stand {mine[1:]}"
    open_ = model.open.get(name)
    wanted = None
    if open_ is not None and found.task.status.in_flight:
        wanted = _lease_of(model.attempts[open_])
    if lease != wanted:
        yield f"task {name} has lease {lease}, its open attempt {wanted}"


def _lease_of(attempt: Attempt) -> Lease:
    return Lease(
        attempt.lease, attempt.fence, attempt.number, attempt.worker, attempt.expires_at,
        attempt.leased_at, estimate=attempt.estimate, direct=attempt.direct,
    )  # fmt: skip


def _fields(what: str, mine: Any, found: Any) -> Iterator[str]:
    """Which fields differ, JSON apart from how it is written."""
    for field in mine.__dataclass_fields__:
        ours, theirs = getattr(mine, field), getattr(found, field)
        if ours != theirs and _plain(ours) != _plain(theirs):
            yield f"{what}: {field} is {theirs!r} in the store, it must be {ours!r}"


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=dict)


def _attempts(model: Model, reading: Reading, tasks: list[str]) -> Iterator[str]:
    for task in tasks:
        mine = [model.attempts[lease] for lease in model.tries.get(task, ())]
        found = reading.attempts(task)
        if [row.lease for row in mine] != [row.lease for row in found]:
            yield f"task {task} has attempts {[row.lease for row in found]} in the store"
        for ours, theirs in zip(mine, found, strict=False):
            if ours != theirs:
                yield from _fields(f"attempt {ours.lease}", ours, theirs)
    open_ = [row.lease for row in reading.open_attempts()]
    wanted = sorted(model.open.values(), key=lambda lease: model.attempts[lease].fence)
    if open_ != wanted:
        yield f"open attempts are {open_} in the store, they must be {wanted}"
    flying = [task.id for task in reading.in_flight()]
    if sorted(flying) != sorted(model.open):
        yield f"in flight are {flying} in the store, with open attempts {sorted(model.open)}"


def _lanes(model: Model, reading: Reading) -> Iterator[str]:
    mine = {
        key: lane_of(key, [task.entry for task in tasks.values()])
        for lanes in model.ready.values()
        for key, tasks in lanes.items()
    }
    for age in ("ready", "created"):
        found = {lane.key: lane for lane in reading.lanes(age, _ALL)}
        for key in sorted(mine.keys() | found.keys(), key=str):
            ours, theirs = mine.get(key), found.get(key)
            if ours is None or theirs is None or not _same_lane(ours, theirs, age):
                yield f"lane {key} by {age} is {theirs} in the store, it must be {ours}"


def _same_lane(ours: Lane, theirs: Lane, age: str) -> bool:
    return ours.count == theirs.count and ours.in_order(age) == theirs.in_order(age)


def _counts(model: Model, reading: Reading) -> Iterator[str]:
    tallies: Counter[tuple[Status, str, str, str]] = Counter()
    for task, wait, _ in model.tasks.values():
        tallies[task.status, wait, task.project, task.kind] += 1
    found = {
        (Status(row.status), row.wait, row.project, row.kind): row.count
        for row in reading.tallies()
        if row.count
    }
    if found != tallies:
        yield f"tallies differ: {sorted(map(str, found.items() ^ tallies.items()))}"
    for count in reading.wait_counts():
        names = sorted(model.waiting.get(count.code, ()), key=lambda name: model.task(name).seq)
        untils = [model.tasks[name].due_at for name in names]
        until = min((at for at in untils if at is not None), default=None)
        if (count.count, list(count.tasks), count.until) != (len(names), names[:5], until):
            wanted = f"{names} until {until}"
            yield f"waiting with {count.code}: {count} in the store, it must be {wanted}"
    codes = {count.code for count in reading.wait_counts()}
    for code, waiting in model.waiting.items():
        if waiting and code not in codes:
            yield f"{len(waiting)} tasks wait with code {code}, which the store does not count"
    for name in model.tasks:
        named = sorted(model.named.get(name, ()), key=lambda other: model.task(other).seq)
        if named != reading.dependents(name):
            yield f"dependents of {name} are {reading.dependents(name)}, they must be {named}"


def _timers(model: Model, reading: Reading) -> Iterator[str]:
    mine = sorted(
        (due_at, task.seq, task.id)
        for task, _, due_at in model.tasks.values()
        if due_at is not None
    )
    found = [(row.due_at, row.task.seq, row.task.id) for row in reading.due(1 << 62, _ALL)]
    if found != mine:
        yield f"timers are {found} in the store, they must be {mine}"
    if reading.next_due() != (mine[0][0] if mine else None):
        yield f"the next timer is {reading.next_due()} in the store"


def _small(model: Model, reading: Reading) -> Iterator[str]:
    for kind, rows in model.tables.items():
        found = reading.table(kind)
        for key in sorted(rows.keys() | found.keys()):
            if rows.get(key) != found.get(key):
                ours, theirs = rows.get(key), found.get(key)
                yield f"{kind.__name__} {key} is {theirs} in the store, it must be {ours}"
    for name, value in sorted(model.values.items()):
        if reading.value(name) != value:
            yield f"value {name} is {reading.value(name)!r} in the store, it must be {value!r}"


def _usage(model: Model, reading: Reading) -> Iterator[str]:
    for scope in sorted(model.books.keys() | reading.usage_sums("", -(1 << 62)).keys()):
        found = {
            row.minute: [*row.tokens, row.usd, row.starts, row.completions]
            for row in reading.usage(scope, None)
        }
        book = model.books.get(scope)
        rows = book.rows if book is not None else {}
        if _some(found) != _some(rows):
            wrong = sorted(at for at in found.keys() | rows.keys() if found.get(at) != rows.get(at))
            yield f"what was booked for {scope} differs in the minutes {wrong}"


def _some(rows: Mapping[int, list[int]]) -> dict[int, list[int]]:
    return {minute: amounts for minute, amounts in rows.items() if any(amounts)}


def _decisions(model: Model, reading: Reading) -> Iterator[str]:
    found = {row.number: row for row in reading.decisions(0, 1 << 40)}
    for number in sorted(model.decisions.keys() | found.keys()):
        ours, theirs = model.decisions.get(number), found.get(number)
        if ours is None or theirs is None or ours != theirs:
            yield f"decision {number} is not recorded as it was made"


def _events(model: Model, reading: Reading, after: int) -> Iterator[str]:
    mine = {event.number: event for event in model.events if event.number > after}
    while page := reading.events(after):
        after = page[-1].number
        for event in page:
            ours = mine.pop(event.number, None)
            if ours is None:
                yield f"event {event.number} ({event.kind}) is in the store, and nobody logged it"
            elif not _same_event(ours, event):
                yield f"event {event.number} is {event} in the store, it must be {ours}"
    yield from (f"event {number} is lost" for number in mine)


def _same_event(ours: Event, theirs: Event) -> bool:
    if ours == theirs:
        return True
    plain = changed(ours, data=json.loads(_plain(ours.data)))
    return plain == theirs
