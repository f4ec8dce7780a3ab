"""Two engines, one answer: the fast engine's runs are those of the full one, value for value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlane.engine.context import Facts
from fairlane.engine.look.planned import look as plain_look
from fairlane.model.codec import canonical, encode
from fairlane.model.instant import HOUR, MINUTE, Instant, Micros
from fairlane.model.record import changed
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Outcome, Task
from fairlane.planner.warm import WarmPlanner
from fairlane.policy.policy import Policy
from fairlane.simulation import engine, fast, report
from fairlane.simulation.draws import below, draw
from fairlane.simulation.fast.view import View
from fairlane.simulation.world import Act, Arrival, Fate, Shift
from tests.unit.simulation.fixed import BEGIN, FixedWorld, arrival
from tests.unit.simulation.rich import Rich, rules

pytestmark = pytest.mark.slow

EXAMPLES = settings().max_examples
#: What people do besides, each with one number that was drawn.
DEEDS: dict[str, Any] = {
    "pause": lambda n: {"scope": ("all", "kind:code", "pool:demo", f"task:t{n}")[n % 4]},
    "resume": lambda n: {"scope": ("all", "kind:code", "pool:demo", f"task:t{n}")[n % 4]},
    "cancel": lambda n: {"ids": [f"t{n}"]},
    "retry": lambda n: {"ids": [f"t{n}"]},
    "edit": lambda n: {"ids": [f"t{n}"], "changes": {"priority": n, "kind": "plan"}},
    "project_set": lambda n: {"name": "web", "values": {"weight": n % 5}},
    "project_add": lambda n: {"name": f"p{n}", "values": {"weight": 2}},
    "policy_set": lambda n: {"changes": ({"caps.all": n % 9}, {"retry.base": "1s"},
                                         {"share.mode": "none"}, {"lease.ttl": "2m"})[n % 4]},
}  # fmt: skip
ACTS = st.lists(
    st.tuples(st.integers(0, 150), st.sampled_from([*DEEDS]), st.integers(0, 30)), max_size=6
)
#: Rules beside those of the presets.
MORE: list[dict[str, object]] = [
    {"caps.all": 6}, {"caps.all": 3, "readiness.upstream": "cancel", "capacity.batch": 2},
    {"share.mode": "deficit", "caps.all": "none"}, {"capacity.mode": "direct"},
    {"caps.kind:code": 2, "locks.parallel_default": False, "overdue.after": "5m"},
    {"retry.base": "0s", "cooldown.probe": 2, "share.guarantee": 3},
]  # fmt: skip
POLICIES = [rules(), *map(Policy.preset, Policy.presets())]
POLICIES += [Policy.preset("balanced", keys) for keys in MORE]


class Busy(Rich):
    """The same with other acts, and with one worker that stays where `alone`."""

    def __init__(self, tasks: int, acts: list[tuple[int, str, int]], alone: bool) -> None:
        super().__init__(tasks)
        self.people = [
            Act(BEGIN + minutes * MINUTE, name, DEEDS[name](number))
            for minutes, name, number in sorted(acts)
        ]
        if alone:
            self.crew = ()


class Plain(FixedWorld):
    """Many tasks of one sort and one worker: what is kept from round to round is enough."""

    def __init__(self, per_hour: int, hours: int = 2) -> None:
        super().__init__(weights={f"p{n}": n % 4 for n in range(12)})
        self.gap, self.end = 2 * HOUR // per_hour, hours * HOUR

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        at: Micros = 0
        number = 0
        while at < self.end:
            number += 1
            at += below(self.gap, draw(seed, "gap", number))
            kind = ("code", "plan", "review")[number % 3]
            yield arrival(at, {"id": f"t{number}", "project": f"p{number % 12}", "kind": kind})

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        drawn = below(20 * MINUTE, draw(seed, task.id, attempt, "lasts"))
        outcome = Outcome.FAILED if drawn % 9 == 0 else Outcome.SUCCEEDED
        return Fate(1 + drawn, outcome, (drawn % 70_000, 0, 0, 0), drawn % 999, reports=drawn % 3)


def same(world: FixedWorld, policy: Policy, seed: int) -> None:
    full = engine.simulate(world, policy, seed, days=2)
    assert fast.simulate(world, policy, seed, days=2) == full
    assert (report.utilisation(full) or 0) <= 1


@settings(max_examples=EXAMPLES if EXAMPLES > 200 else 20)
@given(st.integers(0, 2**32), st.integers(5, 40), st.sampled_from(POLICIES), ACTS, st.booleans())
@example(5, 40, POLICIES[0], [], False)
def test_they_agree_on_a_world_with_something_of_everything(seed, tasks, policy, acts, alone):
    same(Busy(tasks, acts, alone), policy, seed)


@pytest.mark.parametrize("per_hour", [30, 120])
def test_they_agree_on_many_tasks_of_one_sort(per_hour):
    same(Plain(per_hour), Policy.preset("balanced", {"caps.all": 10}), 3)


def test_they_agree_when_a_worker_vanishes_whose_leases_nobody_looked_at():
    world = Plain(60)
    world.crew = [
        Shift(BEGIN, "one", 4),
        Shift(BEGIN + 70 * MINUTE, "one", 0, sudden=True),
        Shift(BEGIN + 90 * MINUTE, "two", 5),
    ]
    same(world, Policy.preset("balanced"), 4)


@pytest.mark.parametrize("heads", [["b"], ["b", "c", "d"]])
def test_they_agree_when_the_heads_of_lanes_move_to_others_and_no_rank_tells_them_apart(heads):
    """Depth-first ranks by score and age alone: the lane that a task left ranks as its new one."""
    world = FixedWorld(
        [arrival(0, *({"id": name} for name in "abcde"))],
        {},
        Fate(10 * MINUTE),
        people=[
            Act(BEGIN + at * MINUTE, "edit", {"ids": heads, "changes": {"priority": at}})
            for at in (1, 2)
        ],
    )
    same(world, Policy.preset("depth-first", {"caps.all": 1}), 1)


def test_the_view_is_what_a_look_at_the_store_would_give(monkeypatch):
    looks: list[Instant] = []

    def look(view: View, policy: Policy, now: Instant) -> Snapshot:
        seen = kept_look(view, policy, now)
        memory = view._memory
        plain = plain_look(view._context, memory, policy, now, Facts(), view._asker)
        assert comparable(seen) == comparable(plain)
        looks.append(now)
        return seen

    kept_look = View.look
    monkeypatch.setattr(View, "look", look)
    fast.simulate(Busy(40, [(9, "policy_set", 3), (40, "project_set", 2)], False), POLICIES[0], 8)
    fast.simulate(Plain(40), Policy.preset("balanced", {"caps.all": 6}), 9)
    assert len(looks) > 200


def comparable(snapshot: Snapshot) -> bytes:
    """A snapshot in which order of lanes, and leases of attempts that live, play no part."""
    flights = [
        changed(
            each,
            lease=changed(
                each.lease, expires_at=None if each.lease.alive else each.lease.expires_at
            ),
        )
        for each in snapshot.in_flight
    ]
    lanes = sorted((repr(lane.key), lane.count, lane.by_ready[:1]) for lane in snapshot.lanes)
    rest = changed(snapshot, lanes=(), in_flight=tuple(flights))
    return canonical([encode(rest), lanes])


def test_most_rounds_rest_on_what_is_kept(monkeypatch):
    counts = {"all": 0, "kept": 0}
    begin = WarmPlanner._begin

    def counted(*args):
        round = begin(*args)
        counts["all"] += 1
        counts["kept"] += round is not None
        return round

    monkeypatch.setattr(WarmPlanner, "_begin", counted)
    fast.simulate(Plain(60), Policy.preset("balanced", {"caps.all": 6}), 2)
    assert counts["kept"] == counts["all"] > 200
