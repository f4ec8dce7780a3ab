"""Promises about tasks and attempts: each finds a change that breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.engine.end_attempt import Report
from fairlane.model.errors import Refused
from fairlane.model.instant import MINUTE, SECOND
from fairlane.model.record import changed
from fairlane.model.task import Status
from fairlane.service import groups, tasks
from fairlane.store.base import Placed
from fairlane.testing.torture.ports import Write
from tests import holder
from tests.torture.office import (
    Cases,
    WatchedOffice,
    altered,
    attempted,
    broken,
    leased,
    only,
    saved,
    without,
)

CASES = Cases()


@pytest.fixture
def office(tmp_path: Path) -> WatchedOffice:
    return WatchedOffice(tmp_path)


# Statuses


@CASES.breaks("transitions")
def from_done_to_running(office):
    office.add({"id": "a"})
    office.finish(office.lease()[0]["lease"])
    done = office.task("a")
    return lambda: office.write(Write("save", (Placed(changed(done, status=Status.RUNNING)),)))


@CASES.breaks("transitions")
def another_seq(office):
    office.add({"id": "a"})
    office.alter = saved(seq=77)
    return lambda: tasks.edit(office.context, ["a"], {"priority": 1})


@CASES.breaks("events told")
def a_start_that_nobody_logs(office):
    office.add({"id": "a"})
    office.alter = without("log")
    return office.lease


@CASES.breaks("attempt numbers")
def an_attempt_that_does_not_count(office):
    office.add({"id": "a"})
    office.alter = saved(attempts=0)
    return office.lease


@CASES.breaks("failures counted")
def a_failure_that_does_not_count(office):
    lease = leased(office)
    office.alter = saved(failures=0)
    return lambda: office.fail(lease)


@CASES.breaks("failures counted")
def a_throttle_that_counts(office):
    lease = leased(office)
    office.alter = saved(failures=1)
    return lambda: office.fail(lease, outcome="throttled")


@CASES.breaks("outcomes")
def a_cancel_that_is_forgotten(office):
    lease = leased(office)
    tasks.cancel(office.context, ["a"])
    office.alter = attempted(outcome="failed")
    return lambda: office.fail(lease, outcome="canceled")


@CASES.breaks("parked in time")
def one_attempt_too_many(office):
    lease = leased(office)
    office.changes = {"policy": office.context.policy().with_overrides({"retry.max_attempts": 1})}
    return lambda: office.fail(lease)


@CASES.breaks("waits after failing")
def again_at_once(office):
    lease = leased(office)
    office.alter = saved(backoff_until=None)
    return lambda: office.fail(lease)


@CASES.breaks("waits after failing")
def a_place_lost(office):
    lease = leased(office)
    office.alter = saved(ready_since=office.clock.at + SECOND)
    return lambda: office.fail(lease, outcome="throttled")


@CASES.breaks("waits grow")
def again_too_soon(office):
    lease = leased(office)
    office.alter = saved(backoff_until=office.clock.at + SECOND)
    return lambda: office.fail(lease)


@CASES.breaks("stops kept")
def a_stop_forgotten(office):
    lease = leased(office)
    tasks.cancel(office.context, ["a"])
    office.alter = saved(stop_requested="")
    return lambda: holder.heartbeat(office.context, lease)


@CASES.breaks("back at the end")
def back_with_its_old_place(office):
    parked_by_launches(office)
    office.alter = saved(ready_since=office.clock.at - MINUTE)
    return lambda: tasks.retry(office.context, ["a"])


def parked_by_launches(office):
    """A task that launch failures alone have parked."""
    office.policy("breaker.launch_failures = 1\n")
    lease = leased(office)
    office.fail(lease, outcome="launch_failed")


@CASES.breaks("put back")
def tried_again_too_soon(office):
    parked_by_launches(office)
    office.wait(16 * MINUTE)
    after = office.context.policy().with_overrides({"breaker.half_open_after": "17m"})
    office.changes = {"policy": after}
    return office.lease


@CASES.breaks("put back")
def counters_kept(office):
    parked_by_launches(office)
    office.alter = saved(launch_failures=1)
    return lambda: tasks.retry(office.context, ["a"])


@CASES.breaks("dead ends")
def done_without_success(office):
    lease = leased(office)
    office.alter = attempted(outcome="failed")
    return lambda: office.finish(lease)


@CASES.breaks("placed truly")
def a_dependent_forgotten(office):
    lease = leased(office)
    office.add({"id": "b", "needs": ["a"]})
    office.alter = only("save", lambda row: row.task.id != "b")
    return lambda: office.finish(lease)


@CASES.breaks("placed truly")
def a_half_open_time_that_is_not_kept(office):
    lease = leased(office)
    office.policy("breaker.launch_failures = 1\n")
    office.alter = altered("save", lambda row: row._replace(due_at=None))
    return lambda: office.fail(lease, outcome="launch_failed")


@CASES.breaks("upstream followed")
def left_behind_a_cancel(office):
    office.add({"id": "a"}, {"id": "b", "needs": ["a"]})
    upstream = {"readiness.upstream": "cancel"}
    office.changes = {"policy": office.context.policy().with_overrides(upstream)}
    return lambda: tasks.cancel(office.context, ["a"])


@CASES.breaks("groups told")
def a_group_that_ends_silently(office):
    groups.add_group(office.context, "top")
    groups.add_group(office.context, "g", parent="top")
    lease = leased(office, group="g")
    office.alter = only("log", lambda event: getattr(event, "kind", "") != "group_done")
    return lambda: office.finish(lease)


@CASES.breaks("in flight agrees")
def ended_for_the_task_alone(office):
    lease = leased(office)
    office.alter = without("attempts", "log", "book", "clocks")
    return lambda: tasks.cancel(office.context, ["a"]) and office.fail(lease, outcome="canceled")


# Holders


@CASES.breaks("identity")
def ended_twice(office):
    lease = leased(office)
    office.fail(lease)
    row = office.model.attempts[lease]
    return lambda: office.write(Write("attempts", (changed(row, ended_at=row.ended_at + 1),)))


@CASES.breaks("identity")
def another_fence(office):
    lease = leased(office)
    office.alter = attempted(fence=99)
    return lambda: holder.heartbeat(office.context, lease)


@CASES.breaks("fences")
def a_fence_again(office):
    office.add({"id": "a"}, {"id": "b"})
    office.lease(1)
    office.alter = attempted(fence=1)
    return lambda: office.lease(1)


@CASES.breaks("older holders")
def an_older_holder_writes(office):
    lease = leased(office)
    office.fail(lease)
    office.alter = attempted(note="still here", tokens=(5, 0, 0, 0))
    return lambda: refused(lambda: holder.report(office.context, lease, Report((5, 0, 0, 0))))


def refused(act):
    """What is refused still writes."""
    with pytest.raises(Refused):
        act()


def lost(office):
    """A task whose attempt was lost."""
    lease = leased(office)
    office.wait(6 * MINUTE)
    holder.reclaim(office.context)
    return lease


@CASES.breaks("late successes")
def late_after_a_retry(office):
    lease = lost(office)
    office.checker._may.clear()  # as after a retry, of which the engine knows nothing
    return lambda: office.finish(lease)


@CASES.breaks("losses")
def lost_too_early(office):
    lease = leased(office)
    office.wait(6 * MINUTE)
    row = office.model.attempts[lease]
    office.model.attempts[lease] = changed(row, expires_at=office.clock.at + 2 * SECOND)
    return lambda: holder.reclaim(office.context)


@CASES.breaks("renewals")
def renewed_for_too_long(office):
    lease = leased(office)
    office.alter = attempted(expires_at=office.clock.at + 60 * MINUTE)
    return lambda: holder.heartbeat(office.context, lease)


CHECKED = {"checks": [["make", "test"]]}


@CASES.breaks("checks passed")
def done_without_its_check(office):
    lease = leased(office, **CHECKED)
    row = office.model.attempts[lease].checks[0]
    report = Report(checks=({"name": row["name"], "exit": 0},))
    office.alter = attempted(checks=(row,))
    return lambda: office.complete(lease, report)


class Nothing:
    """A host on which nothing has run."""

    def state_of(self, attempt):
        return ""

    def has_passed(self, attempt, number):
        return False

    def missing(self, task):
        return []


@CASES.breaks("checks ran")
def a_check_that_never_ran(office):
    office.checker._ground = Nothing()
    leased(office, **CHECKED)
    row = changed(office.model.attempts["L1"], executor="process")
    office.model.put_attempts([row])
    passed = ({**row.checks[0], "passed": True, "exit": 0},)
    return lambda: office.write(Write("attempts", (changed(row, checks=passed),)))


@CASES.breaks("reports kept")
def a_report_that_is_lost(office):
    said = {"lease": leased(office), "tokens": {"input": 5}}
    return lambda: office.checker.answered("report", said, {})


@CASES.breaks("checks given")
def leased_without_its_check(office):
    office.add({"id": "a", **CHECKED})
    office.alter = attempted(checks=())
    return office.lease


@CASES.breaks("weights kept")
def leased_with_another_weight(office):
    office.add({"id": "a"})
    office.alter = attempted(weight=5)
    return office.lease


@CASES.breaks("ends what ran out")
def a_lease_that_ran_out_stays(office):
    lease = leased(office)
    office.add({"id": "b"})
    row = office.model.attempts[lease]
    office.model.attempts[lease] = changed(row, expires_at=office.clock.at)
    return office.lease


# Usage


@CASES.breaks("totals grow")
def tokens_that_fall(office):
    lease = leased(office)
    holder.report(office.context, lease, Report((500, 0, 0, 0)))
    office.alter = attempted(tokens=(400, 0, 0, 0))
    return lambda: holder.heartbeat(office.context, lease)


@CASES.breaks("totals grow")
def charged_with_another_amount(office):
    lease = leased(office)
    office.alter = attempted(charged=1)
    return lambda: office.finish(lease, output=700)


@CASES.breaks("bookings add up")
def usage_that_is_booked_twice(office):
    lease = leased(office)
    office.alter = lambda writes: [
        *writes, *(write for write in writes if write.what == "book")
    ]  # fmt: skip
    return lambda: office.finish(lease, output=700)


@CASES.breaks("bookings add up")
def a_group_above_that_is_forgotten(office):
    groups.add_group(office.context, "top")
    groups.add_group(office.context, "g", parent="top")
    lease = leased(office, group="g")
    office.alter = only("book", lambda row: row.scope != "group:top")
    return lambda: office.finish(lease, output=700)


@CASES.breaks("clocks follow")
def a_clock_that_moves_twice(office):
    office.add({"id": "a", "estimate_tokens": 100})
    office.alter = altered(
        "clocks", lambda rows: {name: (2 * clock, there) for name, (clock, there) in rows.items()}
    )
    return office.lease


@CASES.breaks("budgets watched")
def a_budget_that_nobody_looks_at(office):
    rule = '[[budget]]\nscope = "all"\ntokens = 500\nwindow = "total"\non_exceeded = "stop"\n'
    office.policy(rule)
    office.add({"id": "a", "estimate_tokens": 0}, {"id": "b", "estimate_tokens": 0})
    one = office.lease()[0]["lease"]
    office.alter = without("value", "save")
    return lambda: holder.report(office.context, one, Report((900, 0, 0, 0)))


@CASES.breaks("completions counted")
def done_by_nobody(office):
    office.add({"id": "a"})
    done = changed(office.task("a"), status=Status.DONE, ended_at=office.clock.at)
    return lambda: office.write(Write("save", (Placed(done),)))


@pytest.mark.parametrize(("name", "case"), CASES.all, ids=Cases.name_of)
def test_a_promise_finds_what_breaks_it(monkeypatch, office, name, case):
    act = case(office)
    with broken(monkeypatch, name):
        act()
