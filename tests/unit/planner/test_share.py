"""Whose turn it is: clocks of virtual time, deficits, guarantee, weight 0."""

from __future__ import annotations

from fairlane.model.project import Project
from tests.unit.planner.scene import picks, planned, policy, queued, running

EXACT = {"share__guarantee": 0, "share__default_estimate": 10}


def work(*names: str, count: int = 4, **fields):
    return [queued(f"{name}{n}", project=name, **fields) for name in names for n in range(count)]


def clocks(plan):
    return plan.clocks.everyone, {name: v for name, (v, _) in plan.clocks.projects.items()}


def test_four_slots_and_two_equal_projects_give_two_each():
    assert picks(work("a", "b"), policy(**EXACT)) == ["a0", "b0", "a1", "b1"]


def test_a_pick_moves_its_clock_by_the_floor_of_the_quotient():
    rules = policy(**EXACT, caps__all=1)
    plan = planned(work("a"), rules, projects=[Project("a", 3, clock=7)])
    assert clocks(plan) == (7, {"a": 7 + 3_333_333})


def test_the_clock_for_all_follows_the_smallest_present_clock_before_the_pick():
    rules = policy(**EXACT, caps__all=2)
    projects = [Project("a", 1, clock=5), Project("b", 1, clock=9), Project("gone", 1, clock=1)]
    plan = planned(work("a", "b"), rules, projects=projects)
    assert [pick.task for pick in plan.picks] == ["a0", "b0"]
    assert plan.clocks.everyone == 9
    assert plan.clocks.projects["gone"] == (1, False)


def test_the_clock_for_all_never_goes_back():
    plan = planned(work("a"), policy(**EXACT), projects=[Project("a", clock=5)], clock=100)
    assert plan.clocks.everyone == 10_000_005 + 2 * 10_000_000


def test_who_returns_has_the_idle_credit_and_no_more():
    rules = policy(**EXACT, share__idle_credit=20, caps__all=0)
    projects = [Project("a", 3, clock=0, present=False), Project("b", clock=0)]
    plan = planned(work("a", "b"), rules, projects=projects, clock=50_000_000)
    assert clocks(plan)[1] == {"a": 50_000_000 - 6_666_666, "b": 0}
    assert all(present for _, present in plan.clocks.projects.values())


def test_who_is_held_is_absent_and_full_slots_hold_nobody():
    projects = [Project("a", max_in_flight=0), Project("b"), Project("c", status="paused")]
    plan = planned(work("a", "b", "c"), policy(**EXACT, caps__all=0), projects=projects)
    there = {name: present for name, (_, present) in plan.clocks.projects.items()}
    assert there == {"a": False, "b": True, "c": False}


def test_a_new_project_begins_at_the_clock_for_all_with_what_it_has_received():
    flying = running("x", project="a", estimate=30, used=12)
    projects = [Project("a", 2, tokens=100)]
    plan = planned(
        [flying, *work("a")], policy(**EXACT, caps__all=0), projects=projects, clock=1_000
    )
    assert clocks(plan)[1] == {"a": 1_000 + 50_000_000 + 15_000_000}


def test_weight_0_comes_after_all_others_and_moves_no_clock():
    projects = [Project("idle", 0, clock=0), Project("b", 1, clock=10**12)]
    plan = planned(work("idle", "b", count=2), policy(share__guarantee=1), projects=projects)
    assert [pick.task for pick in plan.picks] == ["b0", "b1", "idle0", "idle1"]
    assert plan.clocks.projects["idle"] == (0, False)


def test_the_guarantee_goes_first_and_the_round_s_own_picks_count():
    projects = [Project("a", clock=0, starts=1), Project("b", clock=10**12, starts=0)]
    assert picks(work("a", "b"), policy(), projects=projects) == ["b0", "a0", "a1", "a2"]


def test_the_guarantee_by_completions_lasts_the_whole_round():
    projects = [Project("a", clock=0, completions=1), Project("b", clock=10**12, starts=9)]
    rules = policy(share__guarantee_counts="completions")
    assert picks(work("a", "b"), rules, projects=projects) == ["b0", "b1", "b2", "b3"]


DEFICIT = {"share__mode": "deficit", **EXACT, "order": ["share", "priority", "age"]}


def test_deficit_counts_what_is_reserved():
    tasks = [running("x", project="a", estimate=50, used=20), *work("a", "b")]
    projects = [Project("a", tokens=0), Project("b", tokens=40)]
    rules = policy(**DEFICIT, caps__all=2)
    assert picks(tasks, rules, projects=projects) == ["b0"]
    assert picks(tasks, policy(**DEFICIT, share__frozen=True, caps__all=2), projects=projects) == [
        "a0"
    ]


def test_deficit_moves_inside_a_round_unless_it_is_frozen():
    assert picks(work("a", "b"), policy(**DEFICIT)) == ["a0", "b0", "a1", "b1"]
    frozen = policy(**DEFICIT, share__frozen=True)
    assert picks(work("a", "b"), frozen) == ["a0", "a1", "a2", "a3"]


def test_deficit_is_furthest_below_its_share_of_those_with_work():
    projects = [Project("a", 3, tokens=60_000), Project("b", 1, tokens=40_000)]
    rules = policy(**DEFICIT, caps__all=1)
    assert picks(work("a", "b"), rules, projects=projects) == ["a0"]
    busy = [*projects, Project("elsewhere", 50, tokens=10**9)]
    assert picks(work("a", "b"), rules, projects=busy) == ["a0"]


def test_deficit_compares_exact_fractions():
    rules = policy(**DEFICIT, caps__all=1)
    for used, first in ((299, "a0"), (301, "b0")):  # 3 : 1 is where the two stand equal
        projects = [Project("a", 3, tokens=used), Project("b", 1, tokens=100)]
        assert picks(work("b", "a"), rules, projects=projects) == [first]


def test_all_weights_0_is_no_error_and_the_next_keys_decide():
    projects = [Project("a", 0, tokens=9), Project("b", 0)]
    tasks = [*work("a", count=1), *work("b", count=1, priority=1)]
    assert picks(tasks, policy(**DEFICIT), projects=projects) == ["b0", "a0"]


def test_no_share_leaves_it_to_the_next_keys():
    rules = policy(share__mode="none", share__guarantee=0)
    assert picks(work("a", "b"), rules) == ["a0", "a1", "a2", "a3"]
    assert planned(work("a"), rules).clocks.projects == {}
