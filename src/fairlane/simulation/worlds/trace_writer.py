"""Traces written: of a simulation, so that it can be repeated, and of what a store has seen."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from operator import attrgetter, itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from fairlane.clock import VirtualClock
from fairlane.engine.context import Context
from fairlane.intake import fields
from fairlane.lifecycle.transitions import Stop, stop_kind
from fairlane.model.codec import writer
from fairlane.model.event import Event
from fairlane.model.instant import DAY, SECOND, Instant, Micros, show_duration, show_instant
from fairlane.model.project import Group, Project
from fairlane.model.record import changed
from fairlane.model.task import Attempt, Status, Task, agent_of
from fairlane.policy.schema import COUNTERS
from fairlane.service.reports.listing import every
from fairlane.service.reports.stats import ATTEMPTS_MAX
from fairlane.settings import Settings
from fairlane.simulation.provider import Limits
from fairlane.simulation.run import Run
from fairlane.simulation.world import WORKER, Act, Arrival, Fate, Shift, World
from fairlane.simulation.worlds.records import project_values, record_of
from fairlane.simulation.worlds.samples import sample_of
from fairlane.simulation.worlds.trace import VERSION
from fairlane.store.base import Filter, Reading
from fairlane.store.memory.store import MemoryStore

#: One line with its time.
_Line = tuple[Instant, dict[str, object]]
_Dated = TypeVar("_Dated", Arrival, Shift, Act)
_write = writer()
_PAGE = 1000
_UNFINISHED = (Status.QUEUED, Status.LEASED, Status.RUNNING)


def trace_of(world: World, run: Run) -> Iterator[str]:
    """The lines of a trace that repeats a simulation: each attempt has the fate that was drawn.

    What its provider made of it follows again from the limits. What is there at the begin arrives
    then, and begins anew; tasks that are over or parked are left out.
    """
    with _prepared(world) as (context, reading):
        head = _head(context, reading, run.begin, world.limits)
        there = [placed.task for placed in every(reading, Filter(status=_UNFINISHED))]
        agents = {project.name: project.agent for project in reading.table(Project).values()}
    if world.days is not None:
        head["days"] = -(-(run.end - run.begin) // DAY)
    yield _write(head)
    known, ids = {task.id: task for task in there}, {task.id for task in there}
    arrivals = [(run.begin, _arrival(run.begin, [record_of(task, ids)])) for task in there]
    for arrival in _until(world.arrivals(run.seed), run.end):
        arrivals.append((arrival.at, _arrival(arrival.at, arrival.records)))
        tasks = (_task(row, agents, context.settings) for row in arrival.records if "id" in row)
        known.update({task.id: task for task in tasks})
    attempts = (
        _attempt(max(run.begin, row.leased_at), row.task, row.number, fate)
        for row in run.attempts
        if row.task in known
        for fate in (world.fate(run.seed, known[row.task], row.number),)
    )
    shifts, acts = _until(world.shifts(), run.end), _until(world.acts(), run.end)
    yield from _by_time(
        shifts=map(_shift, shifts), acts=map(_act, acts), arrivals=arrivals, attempts=attempts
    )


def trace_of_store(context: Context, since: Instant = 0) -> Iterator[str]:
    """The lines of a trace of what has happened: tasks, their ended attempts, what people did.

    It tells of as many attempts as reports look at, the newest, and of the tasks that had one of
    these or are unfinished. Attempts that somebody stopped or gave back are left out; the others
    are numbered from 1.
    """
    with context.store.read() as reading:
        ended = [attempt for attempt, _ in reading.ended_attempts(since, ATTEMPTS_MAX)]
        tried = {attempt.task for attempt in ended}
        tasks = [
            placed.task
            for placed in every(reading, Filter())
            if placed.task.id in tried or not placed.task.status.final
        ]
        begin = max(since, min((task.created_at for task in tasks), default=context.now()))
        yield _write(_head(context, reading, begin, {}))
        acts = list(_acts(reading, begin))
    ids = {task.id for task in tasks}
    came = ((max(begin, task.created_at), record_of(task, ids)) for task in tasks)
    arrivals = [(at, _arrival(at, [record])) for at, record in came]
    yield from _by_time(acts=map(_act, acts), arrivals=arrivals, attempts=_numbered(ended))


@contextmanager
def _prepared(world: World) -> Iterator[tuple[Context, Reading]]:
    """What is there at the begin of a world."""
    with TemporaryDirectory(prefix="fairlane-trace-") as home:
        settings = Settings.parse({"worker": {"name": WORKER}})
        context = Context(
            Path(home), MemoryStore(), settings, VirtualClock(world.begin), "simulation"
        )
        world.prepare(context)
        with context.store.read() as reading:
            yield context, reading


def _head(
    context: Context, reading: Reading, begin: Instant, limits: Mapping[str, Limits]
) -> dict[str, object]:
    """The first line."""
    settings, projects = context.settings, reading.table(Project)
    head: dict[str, object] = {"trace": VERSION, "begin": show_instant(begin)}
    if settings.agent is not None:
        head["agent"] = settings.agent
    tables = {
        "agents": {
            name: {} if settings.agent_pool(name) is None else {"pool": settings.agent_pool(name)}
            for name in sorted(settings.agents)
        },
        "projects": {name: project_values(projects[name]) for name in sorted(projects)},
        "groups": _groups(reading),
        "pools": {pool: _limits(limits[pool]) for pool in sorted(limits)},
    }
    return head | {key: table for key, table in tables.items() if table}


def _groups(reading: Reading) -> dict[str, dict[str, object]]:
    """Groups, a parent before the groups under it."""
    known, written = reading.table(Group), dict[str, dict[str, object]]()

    def write(name: str) -> None:
        group = known[name]
        if name in written:
            return
        if group.parent in known:
            write(group.parent)
        values = {"parent": group.parent, "priority": group.priority, "title": group.title or None}
        written[name] = {key: value for key, value in values.items() if value is not None}

    for name in sorted(known):
        write(name)
    return written


def _limits(limits: Limits) -> dict[str, object]:
    quotas = [
        {"window": show_duration(row.window), "requests": row.requests, "tokens": row.tokens,
         "resets": row.resets}
        for row in limits.quotas
    ]  # fmt: skip
    outages = [
        {"from": show_instant(row.begin), "until": show_instant(row.end),
         "outcome": str(row.outcome), "retry_after": show_duration(row.retry_after or 0)}
        for row in limits.outages
    ]  # fmt: skip
    return {"quota": quotas, "outage": outages}


def _arrival(at: Instant, records: Iterable[Mapping[str, object]]) -> dict[str, object]:
    return {"arrival": show_instant(at), "tasks": [dict(record) for record in records]}


def _attempt(at: Instant, task: str, number: int, fate: Fate) -> _Line:
    line: dict[str, object] = {
        "attempt": task,
        "number": number,
        "at": show_instant(at),
        "seconds": _seconds(fate.lasts),
        "outcome": str(fate.outcome),
    }
    tokens = zip(COUNTERS, fate.tokens, strict=True)
    optional = {
        "tokens": {counter: count for counter, count in tokens if count} or None,
        "usd": None if fate.usd is None else fate.usd / 1_000_000,
        "retry_after": None if fate.retry_after is None else _seconds(fate.retry_after),
        "resets_at": None if fate.resets_at is None else show_instant(fate.resets_at),
        "reports": fate.reports or None,
    }
    return at, line | {key: value for key, value in optional.items() if value is not None}


def _seconds(length: Micros) -> float:
    return length / SECOND


def _shift(shift: Shift) -> _Line:
    line: dict[str, object] = {"worker": shift.worker, "at": show_instant(shift.at)}
    if shift.slots is not None:
        line["slots"] = shift.slots
    if shift.labels:
        line["labels"] = list(shift.labels)
    return shift.at, line | ({"sudden": True} if shift.sudden else {})


def _act(act: Act) -> _Line:
    return act.at, {"act": act.operation, "at": show_instant(act.at), **act.arguments}


def _task(
    record: Mapping[str, object], agents: Mapping[str, str | None], settings: Settings
) -> Task:
    """The task that a record becomes, as far as its fate depends on it."""
    task = fields.new_task(fields.read(record))
    agent = agent_of(task.agent, agents.get(task.project), settings.agent, bool(task.command))
    return changed(task, agent=agent, pool=task.pool or settings.agent_pool(agent))


def _numbered(ended: Iterable[Attempt]) -> Iterator[_Line]:
    """The attempts that can be repeated, by their starts."""
    numbers: Counter[str] = Counter()
    for attempt in sorted(ended, key=attrgetter("leased_at", "fence")):
        sample = sample_of(attempt)
        if sample is not None:
            numbers[attempt.task] += 1
            yield _attempt(attempt.leased_at, attempt.task, numbers[attempt.task], sample[1])


def _acts(reading: Reading, since: Instant) -> Iterator[Act]:
    """What people did, as far as it can be done again; what followed from it is left out."""
    after = 0
    while page := reading.events(after, _PAGE):
        for event in page:
            act = _done(event) if event.at >= since else None
            if act is not None:
                yield act
        after = page[-1].number


def _done(event: Event) -> Act | None:
    scope, task = event.data.get("scope"), event.task
    if event.kind in ("paused", "resumed") and scope is not None:
        return Act(event.at, event.kind.removesuffix("d"), {"scope": scope})
    if event.kind == "retried" and task is not None:
        return Act(event.at, "retry", {"ids": [task]})
    if event.kind == "stop_requested" and task is not None:
        asked = stop_kind(str(event.data.get("stop", "")))
        return Act(event.at, "cancel", {"ids": [task]}) if asked is Stop.CANCEL else None
    if event.kind == "canceled" and task is not None and _by_hand(event):
        return Act(event.at, "cancel", {"ids": [task]})
    return None


def _by_hand(event: Event) -> bool:
    """Whether somebody canceled a task that did not run, and not a task that it needs."""
    return "attempt" not in event.data and not str(event.data["reason"]).startswith("upstream ")


def _until(things: Iterable[_Dated], end: Instant) -> Iterator[_Dated]:
    """What happens before an instant."""
    return takewhile(lambda thing: thing.at < end, things)


def _by_time(**lines: Iterable[_Line]) -> Iterator[str]:
    """Lines in the order of time; those of one instant in the order of what they are."""
    rows = (sorted(some, key=itemgetter(0)) for some in lines.values())
    for _, line in heapq.merge(*rows, key=itemgetter(0)):
        yield _write(line)
