"""A virtual day: planner and clocks only, thousands of starts, ends from a heap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import combinations
from random import Random
from typing import Any

from fairlane.model.instant import MINUTE, SECOND
from fairlane.model.project import Pause, Project, clock_correction
from fairlane.model.snapshot import InFlight, Snapshot
from fairlane.model.task import Entry, LaneKey, Lease, lane_of
from fairlane.planner import lanes
from tests.properties.strategies import BALANCED, NOW


@dataclass
class Flight:
    """An attempt: what was reserved, what it will have cost, what it has used."""

    project: str
    estimate: int
    cost: int
    weight: int
    used: int = 0


class Drive:
    """Projects that always have work; estimates may be wrong by a factor of 100 either way."""

    def __init__(self, seed: int, weights: Mapping[str, int], slots: int, **overrides: Any) -> None:
        self.random = Random(seed)
        keys = {"caps.all": slots} | {k.replace("__", "."): v for k, v in overrides.items()}
        self.policy = BALANCED.with_overrides(keys)
        self.projects = {name: Project(name, weight) for name, weight in weights.items()}
        self.now, self.clock, self.slots = NOW, 0, slots
        self.flights: dict[str, Flight] = {}
        self.ends: list[tuple[int, str]] = []
        self.paused: set[str] = set()
        self.ended = dict.fromkeys(weights, 0)  # tokens of attempts that are over
        self.most = dict.fromkeys(weights, 0)  # in flight at once
        self.largest = 1  # estimate or cost of one attempt
        self.starts = 0
        self.owed = dict.fromkeys(weights, 0)  # starts by `guarantee`

    def run(self, starts: int) -> Iterator[list[str]]:
        """Until so many have started; after each round the projects that were picked."""
        while self.starts < starts:
            yield self.round()
            self.time_passes()

    def round(self) -> list[str]:
        plan = lanes.plan(self.snapshot(), self.policy, self.now)
        self.clock = plan.clocks.everyone
        for name, (clock, present) in plan.clocks.projects.items():
            self.projects[name] = replace(self.projects[name], clock=clock, present=present)
        for pick in plan.picks:
            name = pick.lane.project
            project = self.projects[name]
            self.owed[name] += project.starts < self.policy.share.guarantee
            self.projects[name] = replace(project, starts=project.starts + 1)
            self.start(name, pick.estimate, project.weight)
        return [pick.lane.project for pick in plan.picks]

    def start(self, name: str, estimate: int, weight: int) -> None:
        self.starts += 1
        off = self.random.choice([1, 3, 10, 100])
        cost = estimate * off if self.random.random() < 0.5 else estimate // off
        task = f"{name}-{self.starts}"
        self.flights[task] = Flight(name, estimate, cost, weight)
        self.largest = max(self.largest, estimate, cost)
        mine = sum(1 for each in self.flights.values() if each.project == name)
        self.most[name] = max(self.most[name], mine)
        heappush(self.ends, (self.now + self.random.randrange(1, 40) * SECOND, task))

    def time_passes(self) -> None:
        """Some report usage, and the next one ends."""
        for flight in self.flights.values():
            if self.random.random() < 0.3:
                self.use(flight, self.random.randrange(flight.used, flight.cost + 1), False)
        if self.ends:
            self.now, task = heappop(self.ends)
            flight = self.flights.pop(task)
            self.use(flight, flight.cost, True)
            self.ended[flight.project] += flight.cost
        else:
            self.now += MINUTE

    def use(self, flight: Flight, used: int, ended: bool) -> None:
        before = clock_correction(flight.estimate, flight.used, flight.weight, False)
        after = clock_correction(flight.estimate, used, flight.weight, ended)
        flight.used = used
        project = self.projects[flight.project]
        clock = (project.clock or 0) + after - before
        self.projects[flight.project] = replace(project, clock=clock)

    def received(self, name: str) -> int:
        mine = [each for each in self.flights.values() if each.project == name]
        return self.ended[name] + sum(max(each.used, each.estimate) for each in mine)

    def bound(self, one: str, other: str) -> Fraction:
        """(k+1)·C/w of both; each start by guarantee adds C/w."""
        parts = [
            Fraction((self.most[name] + 1 + self.owed[name]) * self.largest, weight)
            for name, weight in ((each, self.projects[each].weight) for each in (one, other))
        ]
        return sum(parts, Fraction(0))

    def pairs(self) -> Iterator[tuple[str, str]]:
        there = [p.name for p in self.projects.values() if p.present and p.weight]
        return combinations(there, 2)

    def snapshot(self) -> Snapshot:
        entries = {
            name: [
                Entry(f"{name}{n}", n, NOW, NOW, self.random.choice([1_000, 20_000, 100_000]))
                for n in range(10 * index, 10 * index + self.slots + 1)
            ]
            for index, name in enumerate(self.projects)
        }
        return Snapshot(
            lanes=tuple(lane_of(LaneKey(name), each) for name, each in entries.items()),
            in_flight=tuple(
                InFlight(task, 1_000, LaneKey(each.project), Lease(task, estimate=each.estimate))
                for task, each in self.flights.items()
            ),
            projects=self.projects,
            paused=tuple(Pause(f"project:{name}") for name in sorted(self.paused)),
            clock=self.clock,
        )
