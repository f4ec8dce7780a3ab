"""Promises about what starts: each finds a start that breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.model.instant import MINUTE, SECOND, show_instant
from fairlane.model.project import Pause, Pool
from fairlane.model.record import changed
from fairlane.service import groups, projects, tasks
from fairlane.settings import host_name
from fairlane.store.base import Booking, Placed
from fairlane.testing.torture.ports import Write
from tests.torture.office import Cases, WatchedOffice, altered, broken, leased, without

CASES = Cases()


@pytest.fixture
def office(tmp_path: Path) -> WatchedOffice:
    return WatchedOffice(tmp_path)


# Ceilings


@CASES.breaks("caps")
def one_more_than_all(office):
    office.policy("caps.all = 1\n")
    office.add({"id": "a"})
    office.believe_in_flight("b")
    return office.lease


@CASES.breaks("caps")
def one_more_than_its_group_above(office):
    office.policy('caps."group:*" = 1\n')
    groups.add_group(office.context, "top")
    groups.add_group(office.context, "g", parent="top")
    office.add({"id": "a", "group": "g"})
    office.believe_in_flight("b", group="top")
    return office.lease


@CASES.breaks("caps")
def one_more_than_the_project_allows(office):
    projects.set_project(office.context, "default", {"max_in_flight": 1})
    office.add({"id": "a"})
    office.believe_in_flight("b")
    return office.lease


@CASES.breaks("locks")
def a_lock_twice(office):
    office.add({"id": "a", "locks": ["x"]})
    office.believe_in_flight("b", locks=("x", "y"))
    return office.lease


@CASES.breaks("locks")
def the_serial_lock_twice(office):
    office.add({"id": "a", "parallel": False})
    office.believe_in_flight("b", parallel=False)
    return office.lease


@CASES.breaks("workspaces")
def a_workspace_twice(office):
    projects.set_project(office.context, "default", {"workspaces": ["w1"]})
    office.add({"id": "a"})
    office.believe_in_flight("b", workspace="w1")
    return office.lease


@CASES.breaks("budgets")
def over_a_budget(office):
    office.policy('[[budget]]\nscope = "all"\ntokens = 500\nwindow = "total"\n')
    office.add({"id": "a", "estimate_tokens": 5})
    office.model.book([Booking("all", 0, (400, 100, 0, 0))])
    return office.lease


@CASES.breaks("budgets")
def over_what_others_have_reserved(office):
    office.policy('[[budget]]\nscope = "all"\ntokens = 500\nwindow = "total"\n')
    office.add({"id": "a", "estimate_tokens": 5})
    office.believe_in_flight("b")
    lease = office.model.attempts["Xb"]
    office.model.put_attempts([changed(lease, estimate=500)])
    return office.lease


@CASES.breaks("cooldowns")
def in_a_pool_that_rests(office):
    office.add({"id": "a", "agent": "claude"})
    office.model.tables[Pool]["anthropic"] = Pool("anthropic", office.clock.at + SECOND, 1)
    return office.lease


@CASES.breaks("cooldowns")
def beside_the_probe(office):
    office.add({"id": "a", "agent": "claude"})
    office.model.tables[Pool]["anthropic"] = Pool("anthropic", office.clock.at - SECOND, 1)
    office.believe_in_flight("b", pool="anthropic")
    return office.lease


@CASES.breaks("pauses")
def under_a_paused_group(office):
    groups.add_group(office.context, "top")
    groups.add_group(office.context, "g", parent="top")
    office.add({"id": "a", "group": "g"})
    office.model.tables[Pause]["group:top"] = Pause("group:top")
    return office.lease


@CASES.breaks("places")
def with_an_agent_that_nobody_knows(office):
    office.add({"id": "a", "agent": "claude"})
    office.changes = {"agents": frozenset({"demo"})}
    return office.lease


@CASES.breaks("batch")
def more_than_the_batch(office):
    office.policy("capacity.batch = 1\n")
    office.add({"id": "a"}, {"id": "b"})
    office.lease()
    office.wait(MINUTE)
    office.changes = {"policy": office.context.policy().with_overrides({"cycle.interval": "1h"})}
    return office.lease


@CASES.breaks("pools rest")
def a_cooldown_made_shorter(office):
    pool = Pool("anthropic", office.clock.at + MINUTE, 1)
    office.write(Write("put", (pool,)))
    return lambda: office.write(Write("put", (changed(pool, until=office.clock.at),)))


@CASES.breaks("picked by a decision")
def a_start_without_a_decision(office):
    office.add({"id": "a"})
    office.alter = without("decision")
    return office.lease


@CASES.breaks("carries what is done")
def work_of_what_is_not_done(office):
    lease = leased(office)
    document = {"lease": lease, "start": [{"task": "b", "head": "x"}], "prompt": ""}
    return lambda: office.checker.answered("lease", {}, {"leases": [document]})


@CASES.breaks("readiness")
def what_waits(office):
    office.add({"id": "a"})
    office.model.put_task(Placed(office.task("a"), "needs"))
    return office.lease


# Turns


@CASES.breaks("first in first out")
def the_younger_first(office):
    office.add({"id": "a"}, {"id": "b"})
    older = changed(office.task("b"), ready_since=office.clock.at - 5)
    office.model.put_task(Placed(older))
    return lambda: office.lease(1)


@CASES.breaks("nobody overdue is overtaken")
def an_overdue_one_is_overtaken(office):
    office.policy('overdue.after = "1m"\n')
    office.add({"id": "a"}, {"id": "b", "priority": 200})
    older = changed(office.task("b"), ready_since=office.clock.at - 2 * MINUTE)
    office.model.put_task(Placed(older))
    return lambda: office.lease(1)


@CASES.breaks("furthest behind first")
def the_other_was_further_behind(office):
    office.policy("share.guarantee = 0\n")
    projects.add_project(office.context, "web")
    office.add({"id": "a"}, {"id": "b", "project": "web"})
    office.alter = altered("clocks", lambda rows: rows | {"web": (-5, True)})
    return lambda: office.lease(1)


@CASES.breaks("everyones clock")
def the_clock_for_all_stands_still(office):
    office.add({"id": "a", "estimate_tokens": 5}, {"id": "b"})
    office.lease(1)
    office.alter = lambda writes: [row for row in writes if row.values[:1] != ("clock",)]
    return lambda: office.lease(1)


@CASES.breaks("bound")
def apart_by_more_than_the_bound(office):
    office.policy("share.guarantee = 0\ncaps.all = 100\n")
    projects.add_project(office.context, "web")
    office.add(
        *({"id": f"a{n}", "estimate_tokens": 100} for n in range(8)),
        *({"id": f"b{n}", "project": "web", "estimate_tokens": 100} for n in range(8)),
    )
    for _ in range(4):
        office.lease(1)
    far = changed(office.model.projects["web"], clock=10**12)
    office.model.projects["web"] = far
    return lambda: office.lease(1)


# Reasons


@CASES.breaks("nobody forgotten")
def a_plan_that_forgets_a_task(office):
    office.add({"id": "a"})
    office.model.put_task(Placed(changed(office.task("a"), id="b", seq=50), "paused"))
    return office.lease


@CASES.breaks("waits counted")
def a_wait_with_another_code(office):
    office.add({"id": "a"}, {"id": "b", "needs": ["a"]})
    office.model.put_task(Placed(office.task("b"), "source"))
    return office.lease


@CASES.breaks("holds true")
def a_cap_that_is_not_full(office):
    office.policy("caps.all = 1\n")
    office.add({"id": "a"}, {"id": "b"})
    office.believe_in_flight("c")
    return office.lease


@CASES.breaks("by the policy")
def a_plan_by_another_policy(office):
    office.add({"id": "a"})
    office.changes = {"policy": office.context.policy().with_overrides({"caps.all": 9})}
    return office.lease


@CASES.breaks("timers heeded")
def a_timer_that_nobody_heeds(office):
    office.add({"id": "a"}, {"id": "b", "not_before": show_instant(office.clock.at + MINUTE)})
    office.model.put_task(office.model.tasks["b"]._replace(due_at=office.clock.at))
    return office.lease


class Deaf:
    """Hosts on which every process runs on, and none is told to stop."""

    def state_of(self, attempt):
        return "runs"

    def is_told(self, attempt):
        return False


@CASES.breaks("stops sent")
def a_stop_that_never_reaches_the_process(office):
    office.checker._ground = Deaf()
    office.changes = {"daemon": True}
    leased(office)
    row = office.model.attempts["L1"]
    office.model.put_attempts([changed(row, host=host_name(), started_at=office.clock.at)])
    tasks.cancel(office.context, ["a"])
    office.add({"id": "b"})
    office.lease()  # the stop may have been asked for while this was planned
    office.add({"id": "c"})
    return office.lease


# Closed, and settled


@CASES.breaks("fails closed")
def a_start_by_a_broken_policy(office):
    office.add({"id": "a"})
    office.changes = {"broken": True}
    return office.lease


@CASES.breaks("fails closed")
def a_task_accepted_by_a_broken_policy(office):
    office.changes = {"broken": True}
    return lambda: office.add({"id": "a"})


@pytest.mark.parametrize(("name", "case"), CASES.all, ids=Cases.name_of)
def test_a_promise_finds_what_breaks_it(monkeypatch, office, name, case):
    act = case(office)
    with broken(monkeypatch, name):
        act()
