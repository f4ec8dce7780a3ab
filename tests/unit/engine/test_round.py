"""A plan is committed as it is only if nothing has changed since; otherwise it is made again."""

from __future__ import annotations

import pytest

from fairlane.engine import attempts
from fairlane.engine import round as rounds
from fairlane.engine.look.workers import Asker
from fairlane.engine.round import PLAN_LASTS
from fairlane.model.instant import MINUTE, show_instant
from fairlane.model.project import Project
from fairlane.service import queue


@pytest.fixture
def meanwhile(monkeypatch):
    """Do something after a plan is made and before it is committed."""

    def arrange(action):
        real = rounds._plan_outside

        def plan_then_act(context, asker):
            planned = real(context, asker)
            action()
            return planned

        monkeypatch.setattr(rounds, "_plan_outside", plan_then_act)

    return arrange


def leased_at(office, task):
    with office.context.store.read() as reading:
        (attempt,) = reading.attempts(task)
    return attempt.leased_at


def test_a_policy_that_changes_between_plan_and_commit_decides(office, meanwhile):
    office.policy("caps.all = 20\n")
    office.add({"id": "a"}, {"id": "b"})
    meanwhile(lambda: office.policy("caps.all = 1\n"))
    assert [lease["task"] for lease in office.lease()] == ["a"]


def test_what_another_caller_writes_between_plan_and_commit_decides(office, meanwhile):
    office.add({"id": "a"})
    meanwhile(lambda: queue.pause(office.context, "all"))
    assert office.lease() == []
    assert office.status_of("a") == ["queued"]


@pytest.mark.parametrize("passed", [PLAN_LASTS + 1, -PLAN_LASTS - 1])
def test_a_plan_that_is_too_old_is_made_again(office, meanwhile, passed):
    office.add({"id": "a"})
    planned_at = office.context.now()
    meanwhile(lambda: office.wait(passed))
    assert [lease["task"] for lease in office.lease()] == ["a"]
    assert leased_at(office, "a") == planned_at + passed


@pytest.mark.parametrize("passed", [PLAN_LASTS, -PLAN_LASTS])
def test_a_plan_that_is_young_enough_is_committed_as_it_is(office, meanwhile, passed):
    office.add({"id": "a"})
    planned_at = office.context.now()
    meanwhile(lambda: office.wait(passed))
    assert [lease["task"] for lease in office.lease()] == ["a"]
    assert leased_at(office, "a") == planned_at


def test_a_policy_that_changes_before_a_direct_start_decides(office, monkeypatch):
    office.add({"id": "a", "parallel": False}, {"id": "b", "parallel": False})
    real, asker = office.context.store.write, Asker("box", executor="process", host="here")

    def write():
        office.policy('locks.serial = "none"\n')
        return real()

    monkeypatch.setattr(office.context.store, "write", write)
    leased = attempts.lease(office.context, asker, only=["a", "b"])
    assert [document["task"] for document in leased.documents] == ["a", "b"]


@pytest.mark.parametrize("mode", ["none", "deficit"])
def test_share_clocks_stand_still_where_they_do_not_decide(office, mode):
    """Else a refund would be given of what no start was charged with."""
    office.policy(f'share.mode = "{mode}"\n')
    office.add({"id": "a"})
    (lease,) = office.lease()
    office.finish(lease["lease"], output=5)
    with office.context.store.read() as reading:
        assert reading.table(Project)["default"].clock == 0


def test_a_timer_that_passes_while_a_round_looks_around_wakes_the_next_one(office, monkeypatch):
    """A process that was stopped just then must not forget it."""
    early, late = office.clock.at + MINUTE, office.clock.at + 2 * MINUTE
    office.add(
        {"id": "early", "not_before": show_instant(early)},
        {"id": "late", "not_before": show_instant(late)},
    )
    office.wait(MINUTE)
    real = rounds._bring_in

    def slow(*arguments):
        brought = real(*arguments)
        office.wait(MINUTE)
        return brought

    monkeypatch.setattr(rounds, "_bring_in", slow)
    _, planned = rounds._plan_outside(office.context, Asker("box"))
    assert [pick.task for pick in planned.plan.picks] == ["early"]
    assert planned.plan.wake_at == late
