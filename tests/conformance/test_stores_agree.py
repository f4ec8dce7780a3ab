"""Whatever is done to both stores, both give the same answers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.errors import Refused
from fairlane.model.event import Event
from fairlane.model.instant import DAY, HOUR, MINUTE
from fairlane.model.project import Group, History, Pause, PolicyText, Pool, Project, WorkerRow
from fairlane.model.record import replace
from fairlane.model.task import Status
from fairlane.store.base import WHOLE, Booking, Compacted, Decision, Filter, Placed
from fairlane.store.memory.store import MemoryStore
from fairlane.store.news import Mark
from fairlane.testing.stores.builders import attempt, task
from fairlane.testing.stores.transactions import world

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.model.task import Lane, LaneKey
    from fairlane.store.base import Reading, Store, Writing

CODES = ("needs", "parent", "backoff", "not_before", "upstream")
EXAMPLES = settings.default.max_examples if settings.default else 0  # many only in the soak
SCOPES = ("all", "project:a", "project:ab", "pool:x")


class Undone(Exception):
    """Ends a transaction."""


def some(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count)


TIMES = st.one_of(some(9), st.integers(-3, 60).map(lambda hours: 10 * DAY + hours * HOUR))
SAYS = st.fixed_dictionaries(
    {},
    optional={
        "project": st.sampled_from(["default", "a", "b"]),
        "kind": st.sampled_from(["code", "spec"]),
        "priority": some(1),
        "agent": st.sampled_from([None, "codex"]),
        "pool": st.just("x"),
        "group": st.just("g"),
        "parallel": st.booleans(),
        "locks": st.just(("l",)),
        "prompt": st.text(max_size=5),
        "parent": some(6).map(lambda number: f"t{number}"),
        "needs": st.lists(some(6).map(lambda number: f"t{number}"), max_size=2).map(tuple),
        "estimate_tokens": some(2),
    },
)
STANDS = st.sampled_from(["ready", "ready", *CODES, "parked", "done", "canceled"])
DUE = st.one_of(st.none(), TIMES)
COUNTS = st.tuples(some(3), some(3), some(3), some(3))


def stand(placed: Placed, where: str, due_at: int | None, at: int, failures: int) -> Placed:
    """A task that is not in flight, somewhere else."""
    held = replace(placed.task, failures=failures, ready_since=at, ended_at=None, lease=None)
    if where == "ready":
        return Placed(replace(held, status=Status.QUEUED))
    if where in CODES:
        return Placed(replace(held, status=Status.QUEUED), where, due_at)
    if where == "parked":
        return Placed(replace(held, status=Status.PARKED), "", due_at)
    return Placed(replace(held, status=Status(where), ended_at=at))


def insert(writing: Writing, says: dict[str, Any], where: str, due_at: int | None, at: int) -> None:
    number = writing.number("task")
    seq = 1000 - number if number % 2 else number
    new = Placed(task(f"t{number}", seq, created_at=at // 2, **says))
    writing.insert([stand(new, where, due_at, at, 0)])


def insert_again(writing: Writing, which: int, by_id: bool) -> None:
    placed = pick(writing, which, Filter())
    if placed is not None:
        known = {"id": "new"} if by_id else {"seq": 5000}
        writing.insert([placed._replace(task=replace(placed.task, **known))])


def pick(reading: Reading, which: int, filtered: Filter) -> Placed | None:
    rows = reading.listing(filtered)
    return rows[which % len(rows)] if rows else None


OUT = Filter(status=(Status.QUEUED, Status.PARKED, Status.DONE, Status.CANCELED))
FLYING = Filter(status=(Status.LEASED, Status.RUNNING))


def move(writing: Writing, which: int, where: str, due_at: int | None, at: int) -> None:
    placed = pick(writing, which, OUT)
    if placed is not None:
        writing.save([stand(placed, where, due_at, at, which % 2)])


def rewrite(writing: Writing, which: int, says: dict[str, Any]) -> None:
    placed = pick(writing, which, OUT)
    if placed is not None:
        writing.save([placed._replace(task=replace(placed.task, meta={}, **says))], content=True)


def lease(writing: Writing, which: int, at: int) -> None:
    placed = pick(writing, which, Filter(wait=""))
    if placed is not None:
        number = placed.task.attempts + 1
        leased = Placed(replace(placed.task, status=Status.LEASED, attempts=number))
        fence = writing.number("fence")
        writing.save([leased])
        writing.put_attempts([attempt(leased, fence, number=number, leased_at=at)])


def report(writing: Writing, which: int, tokens: tuple[int, int, int, int], usd: int) -> None:
    placed = pick(writing, which, FLYING)
    if placed is not None and placed.task.lease is not None:
        held = writing.attempt(placed.task.lease.id)
        assert held is not None
        writing.put_attempts([replace(held, tokens=tokens, usd=usd or None, note="é")])
        writing.save([Placed(replace(placed.task, status=Status.RUNNING))])


def end(writing: Writing, which: int, where: str, due_at: int | None, at: int) -> None:
    placed = pick(writing, which, FLYING)
    if placed is not None and placed.task.lease is not None:
        held = writing.attempt(placed.task.lease.id)
        assert held is not None
        told: dict[str, Any] = {"tokens": (which, at % 2, 0, 0), "result": {"a": [at]}}
        writing.put_attempts([replace(held, ended_at=at, outcome="failed", **told)])
        writing.save([stand(placed, where, due_at, at, 1)])


def book(writing: Writing, scope: int, at: int, tokens: tuple[int, int, int, int]) -> None:
    writing.book([Booking(SCOPES[scope], at // MINUTE * MINUTE, tokens, tokens[0], 1, tokens[1])])


def log(writing: Writing, count: int, at: int) -> int:
    return writing.log([Event(0, at, "e", f"t{n}" if n else None, None, {}) for n in range(count)])


def decide(writing: Writing, at: int, fresh: bool, oldest: int = 0) -> None:
    number = writing.number("decision")
    made = writing.decisions()
    base = number if fresh or not made else made[-1].base
    writing.put(PolicyText(f"d{at % 3}", f"text {number}"))
    made_now = Decision(number, at, base, f"d{at % 3}", 1, b"l", b"r", b"p", {})
    writing.put_decision(made_now, oldest)


def keep(writing: Writing, what: int, at: int) -> None:
    name = "ab"[at % 2]
    changes: list[Callable[[], None]] = [
        lambda: writing.put(Project(name, at % 5, clock=at, workspaces=None)),
        lambda: writing.put_clocks({name: (at, at % 2 == 0)}),
        lambda: writing.drop(Project, name),
        lambda: writing.put(Group(name, "g", at)),
        lambda: writing.put(Pool(name, at, 1, "é")),
        lambda: writing.put(WorkerRow(name, "h", None, ("x",), at)),
        lambda: writing.drop(WorkerRow, name),
        lambda: writing.put(Pause(name, "me", at)),
        lambda: writing.drop(Pause, name),
        lambda: writing.put_value("v", at or None),
        lambda: decide(writing, at, True, oldest=at),
        lambda: writing.put(History(name, "code", None, at, 1, 2)),
    ]
    changes[what]()


def compact(writing: Writing, at: int, limit: int) -> list[Compacted]:
    """In parts; told without those that shrink what one store has and the other has not."""
    done, told = Compacted(0, 0, 0, ()), []
    while done.rest is not None:
        alone = done.rest == ("rest",)
        done = writing.compact(at, done.rest, limit or WHOLE)
        if not alone:
            told.append(done._replace(rest=None if done.rest == ("rest",) else done.rest))
        assert len(told) < 1000
    return told


def operation(do: Callable[..., Any], *args: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(do), st.tuples(*args))


INSERT = operation(insert, SAYS, STANDS, DUE, TIMES)
OPERATIONS = st.one_of(
    INSERT,
    operation(lease, some(9), TIMES),
    operation(end, some(3), STANDS, DUE, TIMES),
    operation(move, some(9), STANDS, DUE, TIMES),
    operation(lease, some(9), TIMES),
    operation(report, some(3), COUNTS, some(3)),
    operation(end, some(3), STANDS, DUE, TIMES),
    operation(rewrite, some(9), SAYS),
    operation(book, some(3), TIMES, COUNTS),
    operation(log, some(3), TIMES),
    operation(decide, TIMES, st.booleans()),
    operation(keep, some(11), TIMES),
    operation(insert_again, some(9), st.booleans()),
    operation(compact, TIMES, some(4)),
)
FIRST = st.lists(INSERT, min_size=3, max_size=8)
TRANSACTIONS = st.lists(
    st.tuples(st.sampled_from([False, False, False, True]), st.lists(OPERATIONS, max_size=6)),
    min_size=3,
    max_size=10,
)


def perform(store: Store, undo: bool, operations: list[Any]) -> list[Any]:
    """One transaction; everything that it was told."""
    answers: list[Any] = []
    try:
        with store.write() as writing:
            for do, args in operations:
                answers.append(do(writing, *args))
                answers.append((writing.tallies(), writing.wait_counts(), writing.next_due()))
            answers.append(world(writing))
            if undo:
                raise Undone
    except Undone:
        answers.append("undone")
    except Refused:
        answers.append("refused")
    return answers


def more(reading: Reading) -> dict[str, Any]:
    """What is asked with an argument, for several."""
    names = [f"t{number}" for number in range(10)]
    keys = [lane.key for lane in reading.lanes("ready", 1)]
    filters = [
        Filter(project="a"), Filter(kind="spec"), Filter(group="g", wait=""), Filter(pool="x"),
        Filter(agent="codex", status=(Status.QUEUED,)), Filter(parent="t1"), Filter(wait="needs"),
        Filter(held_lanes=tuple(sorted(keys, key=str)[:2])),
    ]  # fmt: skip
    return {
        "statuses": reading.statuses(names),
        "tasks": reading.tasks(names),
        "placed": [reading.placed(name) for name in names],
        "listings": [reading.listing(which, 3, 2) for which in filters],
        "all listings": [reading.listing(which) for which in filters],
        "due": [reading.due(at, 2) for at in (5, 10 * DAY)],
        "next": reading.next_due(),
        "lane windows": {
            (key, age): shown(lane, age)
            for key in keys
            for age in ("ready", "created")
            for lane in reading.lanes(age, 2, [key])
        },
        "events": [
            reading.events(2, 3), reading.events(task="t1"), reading.events(1, 2, "t1", last=True),
            reading.events(limit=2, last=True),
        ],
        "recent": [reading.recent("default", "code", agent, 2) for agent in (None, "codex")],
        "ended": reading.ended_attempts(10 * DAY, 2),
        "usage": [reading.usage(scope, 10 * DAY) for scope in SCOPES],
        "sums": [reading.usage_sums("project:", at) for at in (0, 10 * DAY)],
        "decisions": [reading.decisions(number, 1) for number in range(5)],
        "policies": reading.table(PolicyText),
    }  # fmt: skip


def shown(lane: Lane, age_from: str) -> tuple[int, Any]:
    return lane.count, lane.in_order(age_from)


def lanes_of(store: Store) -> tuple[Mark, dict[LaneKey, Any]]:
    with store.read() as reading:
        found = {lane.key: shown(lane, "ready") for lane in reading.lanes("ready", 99)}
        return reading.mark(), found


@pytest.mark.slow
@settings(max_examples=EXAMPLES if EXAMPLES > 200 else 60)
@given(FIRST, TRANSACTIONS)
def test_both_stores_agree(first: list[Any], transactions: list[tuple[bool, list[Any]]]) -> None:
    from fairlane.store.sqlite.store import SqliteStore

    with tempfile.TemporaryDirectory() as folder:
        file = SqliteStore.open(Path(folder) / "fairlane.db")
        file.connection.execute("PRAGMA synchronous = OFF")
        stores: list[Store] = [MemoryStore(), file]
        try:
            for store in stores:
                with store.write() as writing:
                    writing.put(Project("a", clock=0))
                    writing.put(Project("b", clock=0))
            for undo, operations in [(False, first), *transactions]:
                both_do(stores, undo, operations)
        finally:
            file.close()


def both_do(stores: list[Store], undo: bool, operations: list[Any]) -> None:
    before = [lanes_of(store) for store in stores]
    told, again = [perform(store, undo, operations) for store in stores]
    assert told == again
    answers = []
    for store, (mark, lanes) in zip(stores, before, strict=True):
        now = lanes_of(store)[1]
        changed = {key for key in {*lanes, *now} if lanes.get(key) != now.get(key)}
        with store.read() as reading:
            news = reading.news(mark)
            assert news.anything or changed <= news.lanes
            answers.append((world(reading), more(reading)))
        assert store.check() == []
    assert answers[0] == answers[1]
