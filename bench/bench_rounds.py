"""Rounds out of the store: short and long queues, few and many lanes, much in flight."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from bench.homes import POLICY, folder
from bench.measure import (
    Row,
    by_turns,
    growth,
    percentile99,
    seconds,
    show_seconds,
)  # fmt: skip
from bench.places import LANES, places
from bench.queues import PICKS, in_new_process, queue
from fairlane.planner import lanes as planner
from fairlane.service import explain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from bench.queues import Queue
    from bench.sizes import Sizes


def rows(sizes: Sizes) -> list[Row]:
    """Every figure of rounds."""
    with folder() as here:
        return [
            *by_length(here / "lengths", sizes),
            *by_lanes(here / "lanes", sizes),
            *by_flight(here / "flight", sizes),
        ]


# Ever more tasks in the same lanes.


def by_length(here: Path, sizes: Sizes) -> Iterator[Row]:
    """Rounds and leases of queues of every length."""
    here.mkdir()
    with ExitStack() as stack:
        held = {size: stack.enter_context(queue(here / str(size), size)) for size in sizes.queues}
        small, large = held[sizes.short], held[sizes.long]
        refill = partial(refilled, held.values())
        rounds = {size: each.round for size, each in held.items()}
        taken = by_turns(rounds, sizes.turns, refill)
        what = f"one round out of the store, {PICKS} picks"
        one_round, few = taken[sizes.long], taken[sizes.short]
        yield whole_and_parts(large, sizes)
        yield first_look(large, sizes)
        told = f"{sizes.short:,} ready in the same lanes {show_seconds(few)}"
        ready = f"{what}, {sizes.long:,} ready in {LANES} lanes"
        yield Row(ready, show_seconds(one_round), told, one_round / few, "<= 1.2")
        yield slowest(small, large, sizes)
        yield explained(large, one_round, sizes)
        yield from growth(what, f"ready in {LANES} lanes", taken)


def whole_and_parts(large: Queue, sizes: Sizes) -> Row:
    """A round, and the planner and the commit alone, by turns."""
    whole, plans, commits = [], [], []
    for _ in range(sizes.turns + 1):
        whole.append(seconds(large.round))
        large.refill()
        planned = large.look()
        plan = partial(planner.plan, planned.snapshot, planned.policy, planned.now)
        plans.append(seconds(plan))
        commits.append(seconds(partial(large.commit, planned)))
        large.refill()
    ours, plan_alone, commit_alone = (median(each[1:]) for each in (whole, plans, commits))
    told = f"planner alone {show_seconds(plan_alone)} + commit alone {show_seconds(commit_alone)}"
    what = f"one round out of the store, look + plan + commit, {LANES} lanes, warm"
    return Row(what, show_seconds(ours), told, ours / (plan_alone + commit_alone), "<= 1.5")


def first_look(large: Queue, sizes: Sizes) -> Row:
    """The first round of a process against one of a process that has made some."""
    first, warm = [], []
    for _ in range(sizes.slow_turns):
        first.append(in_new_process(large))
        large.refill()
        large.round()  # the first one after another process has written
        large.refill()
        warm.append(seconds(large.round))
        large.refill()
    ours, usual = median(first), median(warm)
    what = "the same, first look of a new process"
    return Row(what, show_seconds(ours), f"warm {show_seconds(usual)}", ours / usual, "<= 4")


def slowest(small: Queue, large: Queue, sizes: Sizes) -> Row:
    """How long one `lease` of one task takes, but for one in a hundred."""
    lengths: tuple[list[float], list[float]] = ([], [])
    for _ in range(sizes.leases):
        for taken, held in zip(lengths, (small, large), strict=True):
            taken.append(seconds(held.lease_one))
            held.refill()
    few, many = map(percentile99, lengths)
    what = f"lease of one task, p99 of {sizes.leases}, {sizes.long:,} queued"
    told = f"{sizes.short:,} queued in the same lanes {show_seconds(few)}"
    return Row(what, show_seconds(many), told, many / few, "<= 1.3")


def explained(large: Queue, one_round: float, sizes: Sizes) -> Row:
    """`why`, with every change that would start the task."""
    why = partial(explain.why, large.context, large.last)
    length = median(seconds(why) for _ in range(sizes.slow_turns))
    what = f"`why` with counterfactuals, {sizes.long:,} queued in {LANES} lanes"
    told = f"one round {show_seconds(one_round)}"
    return Row(what, show_seconds(length), told, length / one_round, "<= 20")


# Ever more lanes.


def by_lanes(here: Path, sizes: Sizes) -> Iterator[Row]:
    """Rounds, and leases of one task, of as many tasks in more and more lanes."""
    here.mkdir()
    with ExitStack() as stack:
        held = {
            count: stack.enter_context(queue(here / str(count), sizes.lane_tasks, places(count)))
            for count in (1, *sizes.lanes)
        }
        refill = partial(refilled, held.values())
        works = {count: each.lease_one for count, each in held.items()}
        taken = by_turns(works, sizes.turns, refill)
        what = "lease of one task"
        told = f"one lane {show_seconds(taken[1])}"
        ours = taken[LANES]
        yield Row(f"{what}, {LANES} lanes, warm", show_seconds(ours), told, ours / taken[1], "<= 2")
        ready = f"{sizes.lane_tasks:,} ready"
        more = {count: taken[count] for count in sizes.lanes}
        yield from growth(f"{what}, {ready}", "lanes", more)
        rounds = {count: held[count].round for count in sizes.lanes}
        what = f"one round out of the store, {PICKS} picks, {ready}"
        yield from growth(what, "lanes", by_turns(rounds, sizes.turns, refill))


# Ever more in flight.


def by_flight(here: Path, sizes: Sizes) -> Iterator[Row]:
    """One task is leased and completed while so many others are in flight."""
    here.mkdir()
    with ExitStack() as stack:
        held = {
            flying: stack.enter_context(
                queue(here / str(flying), 2 * flying, places(projects, 1), POLICY)
            )
            for flying, projects in sizes.flying
        }
        for flying, each in held.items():
            each.take_for_good(flying)
        works = {flying: partial(lease_and_complete, each) for flying, each in held.items()}
        after = partial(replaced, held.values())
        taken = by_turns(works, sizes.turns, after)
    (few, some), (many, most) = sizes.flying
    what = f"lease and complete of one task, {many:,} in flight, {most} projects, warm"
    told = f"{few} in flight, {some} projects {show_seconds(taken[few])}"
    yield Row(what, show_seconds(taken[many]), told, taken[many] / taken[few], "<= 2")


def lease_and_complete(held: Queue) -> None:
    held.lease_one()
    held.complete()


def refilled(queues: Iterable[Queue]) -> None:
    """What was taken of each is completed, and replaced."""
    for held in queues:
        held.refill()


def replaced(queues: Iterable[Queue]) -> None:
    """What was taken of each, and is completed, is replaced."""
    for held in queues:
        held.replace()
