"""What the warm planner keeps, and when it looks again."""

from __future__ import annotations

from fairlane.model.instant import MINUTE, SECOND
from fairlane.model.plan import Plan
from fairlane.model.project import History, Pool, Project, Worker
from fairlane.model.record import replace
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Lease, Status, Task
from fairlane.planner import lanes
from fairlane.planner.warm import WarmPlanner
from fairlane.policy.policy import Policy

NOW = 1_769_774_400 * SECOND
POLICY = Policy.preset("balanced", {"caps.all": 3})


def queued(name: str, **fields: object) -> Task:
    return Task(name, created_at=NOW, **fields)  # type: ignore[arg-type]


def running(name: str, worker: str | None = None, **fields: object) -> Task:
    lease = Lease(f"L{name}", worker=worker, estimate=10, started_at=NOW)
    return Task(name, status=Status.RUNNING, lease=lease, created_at=NOW, **fields)  # type: ignore[arg-type]


def both(warm: WarmPlanner, snapshot: Snapshot, policy: Policy = POLICY, now: int = NOW) -> Plan:
    plan = warm.plan(snapshot, policy, now)
    assert plan == lanes.plan(snapshot, policy, now)
    return plan


def codes(plan: Plan) -> list[str]:
    return [row.hold.code for row in plan.holds]


def test_a_pool_begins_to_rest_and_ends_it():
    warm, tasks = WarmPlanner(), [queued(f"t{n}", pool="p") for n in (1, 2)]
    well, ill = Pool("p"), Pool("p", NOW + MINUTE, 1)
    assert len(both(warm, Snapshot.of(tasks, pools=[well])).picks) == 2
    assert codes(both(warm, Snapshot.of(tasks, pools=[ill]))) == ["cooldown"]
    assert codes(both(warm, Snapshot.of(tasks, pools=[ill]), now=NOW + MINUTE)) == ["probe"]
    assert len(both(warm, Snapshot.of(tasks, pools=[well])).picks) == 2


def test_a_task_that_came_back_runs_elsewhere():
    workers = [Worker("a", 1), Worker("b", 1)]
    warm, waiting = WarmPlanner(), [queued("t2"), queued("t3")]
    policy = POLICY.with_overrides({"caps.all": "none"})
    for worker, free in (("a", "b"), ("b", "a")):
        snapshot = Snapshot.of([running("t1", worker), *waiting], workers=workers)
        assert [pick.worker for pick in both(warm, snapshot, policy).picks] == [free]


def test_a_task_that_came_back_is_of_another_kind():
    policy = POLICY.with_overrides({"caps.kind:code": 1})
    warm, waiting = WarmPlanner(), queued("t2")
    assert codes(both(warm, Snapshot.of([running("t1"), waiting]), policy)) == ["cap"]
    assert both(warm, Snapshot.of([running("t1", kind="plan"), waiting]), policy).picks


def test_two_tasks_that_share_a_lock_hold_it_until_both_have_ended():
    one, two, third = (running(n, locks=("x",)) for n in ("t1", "t2", "t3"))
    warm, waiting = WarmPlanner(), queued("t4", locks=("x",))
    for flying in ([one, two], [two], [two, third], [third], []):
        plan = both(warm, Snapshot.of([*flying, waiting]))
        assert codes(plan) == (["lock"] if flying else [])


def test_a_lane_in_which_nothing_is_left_and_a_project_that_is_new():
    warm = WarmPlanner()
    both(warm, Snapshot.of([queued("t1"), queued("t2", kind="plan")]))
    both(warm, Snapshot.of([queued("t2", kind="plan")]))
    plan = both(warm, Snapshot.of([queued("t2", kind="plan"), queued("t5", project="web")]))
    assert {pick.task for pick in plan.picks} == {"t2", "t5"}


def test_a_plan_that_was_not_carried_out_leaves_no_trace():
    warm, tasks = WarmPlanner(), [queued(f"t{n}") for n in range(1, 6)]
    snapshot = Snapshot.of(tasks)
    first = both(warm, snapshot)
    assert both(warm, snapshot) == first
    assert [pick.task for pick in first.picks] == ["t1", "t2", "t3"]


def test_what_attempts_may_still_cost_follows_what_history_tells():
    rule = {"scope": "all", "window": "total", "usd": 0.001}
    policy, warm = POLICY.with_overrides({"budget": [rule]}), WarmPlanner()
    flying, waiting = running("t1"), queued("t2")
    for usd, codes_then in ((1, []), (200, ["budget"]), (2, [])):
        history = [History("default", "code", None, 1, 1, usd)]
        plan = both(warm, Snapshot.of([flying, waiting], history=history), policy)
        assert codes(plan) == codes_then


def test_ranks_follow_the_time_forward_and_back():
    old, young = queued("t1", kind="plan"), queued("t2", kind="spec")
    young = replace(young, created_at=NOW + 30 * MINUTE)
    warm, policy = WarmPlanner(), POLICY.with_overrides({"order": ["score", "age"], "caps.all": 1})
    snapshot = Snapshot.of([old, young], [Project("default", clock=0)])
    ticks = [*range(40), *range(38, 0, -3)]
    firsts = [both(warm, snapshot, policy, NOW + n * MINUTE).picks[0].task for n in ticks]
    assert set(firsts) == {"t1", "t2"}
