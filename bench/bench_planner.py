"""The planner alone: against sorting everything, for growing queues, and against a bare heap.

Both sides are measured in processor time: a short round often runs through undisturbed where
a long sort is interrupted by other programs, and a busy machine would flatter the planner.
"""

from __future__ import annotations

import gc
import random
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heapreplace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.measure import Row, by_turns, growth, processor_seconds, show_seconds
from bench.places import KINDS, LANES, places
from fairlane.model.instant import HOUR, MINUTE
from fairlane.model.project import Project
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Entry, LaneKey, lane_of
from fairlane.planner import lanes
from fairlane.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bench.sizes import Sizes
    from fairlane.model.plan import Plan

NOW = 1_800_000_000_000_000
LIMITS = {"plan": 2, "spec": 5, "phase": 20, "code": 50}
SLOTS = 50
TURNS = 5
ROUNDS = 20  # of ours in each turn
PLENTY = 1_000_000


def rows(sizes: Sizes) -> list[Row]:
    """Every figure of the planner."""
    found = [against_sorting(sizes.long), against_a_heap(sizes.picks)]
    what = f"planner alone, one round, {SLOTS} picks"
    queues = rounds({size: world(size) for size in sizes.queues})
    found += growth(what, f"ready in {LANES} lanes", queues)
    lanes = rounds({count: world(sizes.lane_tasks, count) for count in sizes.lanes})
    found += growth(f"{what}, {sizes.lane_tasks:,} ready", "lanes", lanes)
    return found


# One round against sorting everything.


@dataclass(slots=True)
class Loop:
    """A task as the plain algorithm sees it."""

    id: str
    kind: str
    status: str
    parent: str | None
    artifact: str | None
    depth: int  # kept with the task; walking up the parents would cost more
    failures: int
    created_at: int


def is_runnable(task: Loop, store: dict[str, Loop]) -> bool:
    """Pending, its parent complete, its artifact there."""
    if task.status != "pending":
        return False
    if task.parent is not None:
        parent = store.get(task.parent)
        if parent is None or parent.status != "complete":
            return False
    return task.artifact is None or Path(task.artifact).exists()


def calculate_priority(task: Loop, now: int) -> int:
    """Kind, age in minutes up to 50, depth, and a penalty for failures."""
    priority = KINDS[task.kind]
    priority += min((now - task.created_at) // MINUTE, 50)
    priority += task.depth * 10
    priority -= min(task.failures * 5, 30)
    return priority


def select(tasks: list[Loop], store: dict[str, Loop], now: int) -> list[str]:
    """Filter, score, one sort over all tasks, then the limits of the kinds."""
    runnable = [task for task in tasks if is_runnable(task, store)]
    runnable.sort(key=lambda task: (-calculate_priority(task, now), task.created_at))
    selected: list[str] = []
    counts = dict.fromkeys(KINDS, 0)
    for task in runnable:
        if len(selected) >= SLOTS:
            break
        if counts[task.kind] < LIMITS[task.kind]:
            counts[task.kind] += 1
            selected.append(task.id)
    return selected


def against_sorting(size: int) -> Row:
    """Both pick the same tasks, in the same order."""
    policy = Policy.preset("depth-first")
    snapshot = world(size)
    tasks, store = plain_world(snapshot)
    ours = partial(lanes.plan, snapshot, policy, NOW)
    theirs = partial(select, tasks, store, NOW)
    if picked(ours()) != theirs():
        raise AssertionError("the two algorithms pick different tasks")
    with_ours: list[float] = []
    with_theirs: list[float] = []
    settle()
    for _ in range(TURNS):
        ours()  # what the sort has pushed out of the caches
        with_ours.append(median(processor_seconds(ours) for _ in range(ROUNDS)))
        with_theirs.append(processor_seconds(theirs))
    gc.unfreeze()
    mine, plain = median(with_ours), median(with_theirs)
    return Row(
        f"one round, {SLOTS} picks, {size:,} ready in {len(snapshot.lanes)} lanes, holds included",
        show_seconds(mine),
        f"filter, score and sort all tasks {show_seconds(plain)} (no holds)",
        plain / mine,
        ">= 1,000",
    )


# Ever more tasks, and ever more lanes.


def rounds(worlds: Mapping[int, Snapshot]) -> dict[int, float]:
    """One round of each."""
    policy = Policy.preset("depth-first")
    works = {size: partial(lanes.plan, snapshot, policy, NOW) for size, snapshot in worlds.items()}
    return undisturbed(works)


def undisturbed(works: Mapping[int, Callable[[], object]]) -> dict[int, float]:
    """The median of each in processor time, its data in the caches."""

    def timer(work: Callable[[], object]) -> float:
        work()
        return processor_seconds(work)

    settle()
    taken = by_turns(works, TURNS * ROUNDS, timer=timer)
    gc.unfreeze()
    return taken


# Picks against a bare heap.


def against_a_heap(size: int) -> Row:
    """All tasks picked in one round; the heap replaces one key after the other."""
    snapshot = world(size, lanes=100)
    caps = {"all": PLENTY} | {f"kind:{kind}": PLENTY for kind in KINDS}
    policy = Policy.preset("depth-first", {"caps": caps})
    tasks, _ = plain_world(snapshot)
    keys = [(-calculate_priority(task, NOW), task.created_at, n) for n, task in enumerate(tasks)]
    first, rest = keys[: len(snapshot.lanes)], keys[len(snapshot.lanes) :]
    heapify(first)

    def replace_all() -> None:
        for key in rest:
            heapreplace(first, key)

    picks = len(lanes.plan(snapshot, policy, NOW).picks)
    if picks != len(tasks):
        raise AssertionError(f"{picks} of {len(tasks)} tasks were picked")
    taken = undisturbed({0: partial(lanes.plan, snapshot, policy, NOW), 1: replace_all})
    ours, heap = picks / taken[0], len(rest) / taken[1]
    return Row(
        f"picks per second in one round of {picks:,}, {len(snapshot.lanes)} lanes",
        f"{ours:,.0f}",
        f"heapq.heapreplace on as many keys {heap:,.0f} (no gates, no reservations)",
        ours / heap,
        ">= 0.0667",
    )


# What is planned.


def world(size: int, lanes: int = LANES) -> Snapshot:
    """Ready tasks of random ages, spread evenly over projects, kinds and depths."""
    keys = [
        LaneKey(project, kind, depth=depth, agent="claude", pool="anthropic")
        for project, kind, depth in places(lanes)
    ]
    chance = random.Random(1)
    entries: list[list[Entry]] = [[] for _ in keys]
    for seq in range(1, size + 1):
        created_at = NOW - chance.randrange(2 * HOUR)
        entries[seq % len(keys)].append(Entry(f"t{seq}", seq, created_at, created_at))
    return Snapshot(
        lanes=tuple(lane_of(key, held) for key, held in zip(keys, entries, strict=True)),
        projects={key.project: Project(key.project) for key in keys},
    )


def plain_world(snapshot: Snapshot) -> tuple[list[Loop], dict[str, Loop]]:
    """The same tasks in the order in which they were added, and their parents, all complete.

    They are made in that order too: side by side in memory, they are read fastest.
    """
    numbered: list[tuple[Entry, LaneKey, str | None]] = []
    store: dict[str, Loop] = {}
    for lane in snapshot.lanes:
        kind, depth = lane.key.kind, lane.key.depth
        parent = f"{lane.key.project}/{kind}/{depth - 1}" if depth else None
        if parent is not None:
            store[parent] = Loop(parent, kind, "complete", None, None, depth - 1, 0, 0)
        numbered += [(entry, lane.key, parent) for entry in lane.by_created]
    numbered.sort(key=lambda row: row[0].seq)
    loops = [
        Loop(entry.task, key.kind, "pending", parent, None, key.depth, 0, entry.created_at)
        for entry, key, parent in numbered
    ]
    return loops, store


def picked(plan: Plan) -> list[str]:
    """The ids of what a plan starts."""
    return [pick.task for pick in plan.picks]


def settle() -> None:
    """What was built is left out of every later garbage collection, for both sides."""
    gc.collect()
    gc.freeze()
