"""Where queueing theory knows the answer, the simulation gives it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from heapq import heapreplace
from itertools import combinations
from math import factorial

import pytest

from fairlane.model.instant import SECOND, Micros
from fairlane.model.task import Task
from fairlane.simulation.draws import below, draw
from fairlane.simulation.engine import simulate
from fairlane.simulation.quantiles import Exponential
from fairlane.simulation.run import Run
from fairlane.simulation.world import Arrival, Fate
from tests.unit.simulation.fixed import BEGIN, FixedWorld, arrival, policy, times

pytestmark = pytest.mark.slow

# M/M/c


class Poisson(FixedWorld):
    """Work that comes and lasts as luck has it, at steady rates."""

    def __init__(self, tasks: int, gap: Micros, work: Micros) -> None:
        super().__init__()
        self.tasks, self.gap, self.work = tasks, Exponential(gap), Exponential(work)

    def times(self, seed: int) -> Iterator[tuple[str, Micros, Micros]]:
        """Each task with its arrival and the length of its work."""
        at = 0
        for number in range(self.tasks):
            at += self.gap.at(draw(seed, "gap", number))
            yield f"t{number}", at, self.length(seed, f"t{number}")

    def length(self, seed: int, task: str) -> Micros:
        return max(1, self.work.at(draw(seed, task, 1, "duration")))

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        return (arrival(at, {"id": task}) for task, at, _ in self.times(seed))

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        return Fate(self.length(seed, task.id))


def waits(world: Poisson, seed: int, servers: int) -> Iterator[Micros]:
    """The wait of each task where the first that came is served first: Kiefer and Wolfowitz."""
    free = [0] * servers  # when each server is free
    for _, at, length in world.times(seed):
        begins = max(at, free[0])
        heapreplace(free, begins + length)
        yield begins - at


def erlang_c(servers: int, load: Fraction) -> Fraction:
    """How likely a task waits; `load` is the mean number that is served."""
    full = load**servers / factorial(servers) * servers / (servers - load)
    return full / (sum(load**k / factorial(k) for k in range(servers)) + full)


@pytest.mark.parametrize(("servers", "busy"), [(1, 60), (4, 75), (16, 85)])
def test_every_wait_is_that_of_servers_with_one_queue(servers, busy):
    work = 60 * SECOND
    world = Poisson(500, work * 100 // (servers * busy), work)
    run = simulate(world, policy(caps__all=servers), 3)
    begun = {line.task: line.leased_at for line in run.attempts}
    assert [begun[task.task] - task.arrived_at for task in run.tasks] == list(
        waits(world, 3, servers)
    )


@pytest.mark.parametrize(("servers", "busy"), [(1, 50), (4, 70), (16, 80)])
def test_the_mean_of_these_waits_is_that_of_erlang(servers, busy):
    work, tasks = 60 * SECOND, 150_000
    world = Poisson(tasks, work * 100 // (servers * busy), work)
    load = Fraction(servers * busy, 100)
    meant = erlang_c(servers, load) * work / (servers - load)
    mean = Fraction(sum(waits(world, 1, servers)), tasks)
    assert abs(mean / meant - 1) < Fraction(3, 100)


# Shares

WEIGHTS = {"ant": 1, "bee": 2, "cat": 5}
SLOTS = 6
SMALLEST, LARGEST = 1_000, 90_000


class Hungry(FixedWorld):
    """Every project has more work than it gets; guesses are wrong by up to ninety times."""

    def __init__(self, tasks: int) -> None:
        super().__init__(weights=WEIGHTS)
        self.estimates = {
            f"{name}-{number}": size(name, number, "e")
            for name, weight in WEIGHTS.items()
            for number in range(tasks * weight)
        }
        records = [
            {"id": task, "project": task.partition("-")[0], "estimate_tokens": tokens}
            for task, tokens in self.estimates.items()
        ]
        self.come = [arrival(0, *records)]

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        seconds = 1 + below(300, draw(seed, task.id, "seconds"))
        return Fate(seconds * SECOND, tokens=(size(task.project, task.seq, "t"), 0, 0, 0))


def size(project: str, number: int, what: str) -> int:
    return SMALLEST + below(LARGEST - SMALLEST, draw(1, project, number, what))


def received(run: Run, world: Hungry, at: int) -> dict[str, int]:
    """What each project has had: what ended attempts used, and of the others what is reserved."""
    tokens = dict.fromkeys(WEIGHTS, 0)
    for line in run.attempts:
        if line.leased_at <= at:
            over = line.ended_at is not None and line.ended_at <= at
            tokens[line.task.partition("-")[0]] += (
                line.tokens if over else world.estimates[line.task]
            )
    return tokens


@pytest.mark.parametrize("guarantee", [0, 1])
def test_weighted_shares_stay_within_the_published_bound_at_every_instant(guarantee):
    world = Hungry(25)
    run = simulate(world, policy(caps__all=SLOTS, share__guarantee=guarantee))
    last = {name: max(row.leased_at for row in run.attempts if row.task.startswith(name))
            for name in WEIGHTS}  # fmt: skip
    instants = [row.leased_at for row in run.attempts if row.leased_at < min(last.values())]
    assert len(instants) > 100
    costs = {max(world.estimates[row.task], row.tokens) for row in run.attempts}
    part = {
        name: (SLOTS + 1 + guarantee) * Fraction(max(costs), weight)
        for name, weight in WEIGHTS.items()
    }
    furthest = Fraction(0)
    for at in instants:
        had = received(run, world, at)
        for one, other in combinations(WEIGHTS, 2):
            apart = abs(Fraction(had[one], WEIGHTS[one]) - Fraction(had[other], WEIGHTS[other]))
            assert apart <= part[one] + part[other]
            furthest = max(furthest, apart)
    assert max(run.lag.values()) <= run.bound == int(part["ant"]) + int(part["bee"])
    assert furthest <= run.bound


# A pipeline

STAGES = {"cut": 20 * SECOND, "sew": 50 * SECOND, "iron": 30 * SECOND, "pack": 50 * SECOND}


class Pipeline(FixedWorld):
    """Pieces that go through the same stages, each of which takes as long for all of them."""

    def __init__(self, pieces: int) -> None:
        rows: list[dict[str, object]] = []
        for piece in range(pieces):
            needs: list[str] = []
            for stage in STAGES:
                rows.append({"id": f"{stage}-{piece}", "kind": stage, "needs": needs})
                needs = [f"{stage}-{piece}"]
        super().__init__([arrival(0, *rows)])

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        return Fate(STAGES[task.kind])


def started(piece: int, stage: str) -> Micros:
    """The slowest stage so far sets the pace."""
    before: Sequence[Micros] = list(STAGES.values())[: list(STAGES).index(stage) + 1]
    return sum(before[:-1]) + piece * max(before)


def test_a_pipeline_starts_and_ends_each_piece_exactly_when_it_must():
    caps = {f"caps__kind:{stage}": 1 for stage in STAGES}
    run = simulate(Pipeline(30), policy(caps__all=9, **caps))
    assert sorted(times(run)) == sorted(
        (f"{stage}-{piece}", started(piece, stage), started(piece, stage) + STAGES[stage])
        for stage in STAGES
        for piece in range(30)
    )
    assert run.end == BEGIN + started(29, "pack") + STAGES["pack"]
