"""Whatever happens between two rounds: the warm planner says what the lane planner says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.plan import decided
from fairlane.model.record import changed
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Lane
from fairlane.planner import lanes
from fairlane.planner.conclude import plan_bytes
from fairlane.planner.lanes import WindowUsedUp
from fairlane.planner.warm import WarmPlanner
from fairlane.policy.policy import Policy
from tests.properties.story import EVENTS, Story
from tests.properties.strategies import worlds

#: What the warm planner keeps; with the rest it plans as the lane planner does.
KEPT = (
    "batch", "budgets", "caps", "flights", "locks", "pauses", "pools", "room", "spaces", "waits",
    "workers",
)  # fmt: skip
STORIES = st.lists(st.sampled_from([*EVENTS, "plan", "plan", "end", "wait"]), max_size=40)
EXAMPLES = settings().max_examples


class Pair:
    """A warm planner beside the lane planner; `same` hands the same objects on, as stores do."""

    def __init__(self, same: bool, window: int | None = None) -> None:
        self.warm, self.same, self.window = WarmPlanner(), same, window
        self.last = Snapshot()
        self.kept = 0  # how many plans rested on what was kept

    def compare(self, snapshot: Snapshot, policy: Policy, now: int) -> None:
        if self.window is not None:
            snapshot = changed(snapshot, lanes=tuple(map(self.cut, snapshot.lanes)))
        if self.same:
            snapshot = self.last = handed_on(self.last, snapshot)
        before, lanes_short, plan = self.warm._kept, None, None
        try:
            plan = lanes.plan(snapshot, policy, now)
        except WindowUsedUp as used_up:
            lanes_short = used_up.lanes
        if plan is None:
            for ask in (self.warm.plan, self.warm.decide):
                with pytest.raises(WindowUsedUp) as raised:
                    ask(snapshot, policy, now)
                assert raised.value.lanes == lanes_short
            return
        short = decided(plan)
        answer = self.warm.decide(snapshot, policy, now)
        assert changed(answer.plan, clocks=short.plan.clocks) == short.plan
        assert answer[1:] == short[1:]
        assert plan_bytes(self.warm.in_full(snapshot, policy, now)) == plan_bytes(plan)
        if plan.picks or plan.reclaims:  # else no clock moves
            assert answer.plan.clocks == plan.clocks
        warm = self.warm.plan(snapshot, policy, now)
        assert warm == plan
        assert plan_bytes(warm) == plan_bytes(plan)
        self.kept += before is not None and self.warm._kept is before

    def cut(self, lane: Lane) -> Lane:
        return Lane(
            lane.key, lane.count, lane.by_ready[: self.window], lane.by_created[: self.window]
        )


def handed_on(last: Snapshot, snapshot: Snapshot) -> Snapshot:
    """What is equal is the same object."""
    known = {lane.key: lane for lane in last.lanes}
    flights = {flight.task: flight for flight in last.in_flight}
    projects = {
        name: last.projects[name] if last.projects.get(name) == project else project
        for name, project in snapshot.projects.items()
    }
    return changed(
        snapshot,
        lanes=tuple(known[e.key] if known.get(e.key) == e else e for e in snapshot.lanes),
        in_flight=tuple(
            flights[e.task] if flights.get(e.task) == e else e for e in snapshot.in_flight
        ),
        projects=projects,
        history=last.history if last.history == snapshot.history else snapshot.history,
    )


def tell(story: Story, events: list[str], pair: Pair) -> None:
    pair.compare(*story.world.args)
    for event in events:
        story.happen(event)
        pair.compare(*story.world.args)


@settings(max_examples=EXAMPLES if EXAMPLES > 200 else 100)
@given(st.integers(0, 2**32), STORIES, st.booleans(), st.sampled_from([8, 30]))
def test_it_agrees_in_any_story(seed, events, same, most):
    tell(Story(seed, most), events, Pair(same))


@settings(max_examples=EXAMPLES if EXAMPLES > 200 else 100)
@given(st.integers(0, 2**32), STORIES, st.booleans(), st.sampled_from([None, 1, 2]))
def test_it_agrees_on_what_it_keeps(seed, events, same, window):
    tell(Story(seed, 30, KEPT), events, Pair(same, window))


@given(st.lists(worlds(20), min_size=2, max_size=4))
def test_worlds_that_have_nothing_in_common(each):
    pair = Pair(same=False)
    for world in [*each, *each]:
        pair.compare(*world.args)


def test_what_is_kept_is_used():
    kept = 0
    for seed in range(30):
        pair = Pair(same=True)
        tell(Story(seed, 20, ("flights", "room")), ["plan", "end", "wait", "add"] * 10, pair)
        kept += pair.kept
    assert kept > 900
