"""The life of an attempt: start, renew, progress, finish, and what may keep it from its launch."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import pytest

from fairlane.engine import attempts, end_attempt
from fairlane.engine.attempts import Progress
from fairlane.engine.end_attempt import Ending, Report
from fairlane.engine.look.workers import Asker
from fairlane.model.errors import TryLater
from fairlane.model.event import Happening
from fairlane.model.instant import HOUR, MINUTE
from fairlane.model.project import Group, Pause, Project
from fairlane.service import projects, queue, tasks
from fairlane.service.reports import listing
from fairlane.settings import host_name
from tests.unit.contexts import TestContext

HERE = Asker("box", None, "process", host_name())
DONE = Ending(Happening.SUCCEEDED)
FAILED = Ending(Happening.FAILED, Report(detail="exit 1"))


def lease(office, *records, asker=HERE, only=None):
    """The documents of the leases that these tasks get, by task."""
    office.add(*records)
    leased = attempts.lease(office.context, asker, only=only)
    return {document["task"]: document for document in leased.documents}


def row(office, lease):
    with office.context.store.read() as reading:
        return reading.attempt(lease)


def ids(office, *names):
    return {task: document["lease"] for task, document in lease(office, *names).items()}


# Start, renew, progress


def test_a_start_keeps_the_handle_and_makes_the_task_running(office):
    leases = ids(office, {"id": "a"}, {"id": "b"})
    office.wait(MINUTE)
    attempts.start(office.context, {leases["a"]: "77 12", leases["b"]: None, "L99": "1 1"})
    assert office.status_of("a", "b") == ["running", "running"]
    assert row(office, leases["a"]).handle == "77 12"
    assert row(office, leases["a"]).started_at == office.context.now()


def test_a_start_after_the_end_changes_nothing(office):
    leases = ids(office, {"id": "a"})
    attempts.finish(office.context, {leases["a"]: FAILED})
    before = row(office, leases["a"])
    attempts.start(office.context, {leases["a"]: "77 12"})
    assert row(office, leases["a"]) == before
    assert office.status_of("a") == ["queued"]


def test_a_renewal_tells_who_is_lost_and_who_must_stop(office):
    leases = ids(office, {"id": "a"}, {"id": "b"}, {"id": "c"})
    attempts.finish(office.context, {leases["a"]: FAILED})
    tasks.cancel(office.context, ["b"])
    office.wait(MINUTE)
    renewed = attempts.renew(office.context, [*leases.values(), "L99"])
    assert {lease: error.error_code for lease, error in renewed.lost.items()} == {
        leases["a"]: "lease_ended",
        "L99": "unknown_lease",
    }
    assert list(renewed.stop) == [leases["b"]]
    assert list(renewed.tasks) == [leases["b"], leases["c"]]
    ttl = office.context.policy().lease.ttl
    assert row(office, leases["c"]).expires_at == office.context.now() + ttl
    assert office.status_of("c") == ["running"]


def test_progress_is_booked_to_an_attempt_that_has_ended(office):
    leases = ids(office, {"id": "a"})
    attempts.finish(office.context, {leases["a"]: FAILED})
    news = Progress((5, 6, 0, 0), 70, "S1", "late")
    reported = attempts.progress(office.context, {leases["a"]: news, "L99": news})
    after = row(office, leases["a"])
    assert (after.tokens, after.usd, after.session, after.note) == ((5, 6, 0, 0), 70, None, "")
    assert set(reported.lost) == {leases["a"], "L99"}


# Finish


def test_an_end_is_taken_in_once(office):
    leases = ids(office, {"id": "a"})
    first = attempts.finish(office.context, {leases["a"]: DONE, "L99": DONE})
    again = attempts.finish(office.context, {leases["a"]: DONE})[leases["a"]]
    other = attempts.finish(office.context, {leases["a"]: FAILED})[leases["a"]]
    assert list(first) == [leases["a"]]
    assert first[leases["a"]].taken_in
    assert (again.repeated, again.taken_in, again.status) == (True, False, "done")
    assert other.refused is not None
    assert other.refused.error_code == "lease_ended"


def test_a_success_after_the_lease_expired_counts(office):
    leases = ids(office, {"id": "a"}, {"id": "b"})
    office.wait(HOUR)
    assert {task.id for task in attempts.reclaim(office.context)} == {"a", "b"}
    finished = attempts.finish(office.context, {leases["a"]: DONE, leases["b"]: FAILED})
    assert (finished[leases["a"]].late, finished[leases["a"]].status) == (True, "done")
    refused = finished[leases["b"]].refused
    assert refused is not None
    assert refused.error_code == "lease_lost"


def test_two_ends_of_one_task_are_taken_in_one_after_the_other(office):
    office.policy('retry.base = "0s"\n')
    old = ids(office, {"id": "a"})["a"]
    office.wait(HOUR)
    attempts.reclaim(office.context)
    new = ids(office)["a"]
    finished = attempts.finish(office.context, {new: FAILED, old: DONE})
    assert finished[new].status == "queued"
    assert finished[old].refused is not None, "the task was leased again"
    assert office.status_of("a") == ["queued"]


@pytest.mark.parametrize("shares", [False, True], ids=["alone", "sharing"])
def test_a_bad_end_is_parked_with_its_reason_and_the_others_are_taken_in(
    office, monkeypatch, shares
):
    leases = ids(office, {"id": "a"}, {"id": "b"}, {"id": "c"})
    real, store = end_attempt.end_attempt, office.context.store

    def strict(changes, books, task, attempt, happening, report, **more):
        after = real(changes, books, task, attempt, happening, report, **more)
        if task.id == "b" and happening is Happening.SUCCEEDED:
            raise OverflowError("too much")  # after it has written: that is undone
        return after

    monkeypatch.setattr(attempts, "end_attempt", strict)
    used = Ending(Happening.SUCCEEDED, Report((0, 5, 0, 0)))
    with store.sharing() if shares else nullcontext():
        finished = attempts.finish(office.context, dict.fromkeys(leases.values(), used))
    assert office.status_of("a", "b", "c") == ["done", "parked", "done"]
    assert {end.task.id for end in finished.values() if end.taken_in} == {"a", "b", "c"}
    assert "OverflowError: too much" in listing.show(office.context, "b")["task"]["reason"]
    with store.read() as reading:
        tallies = Counter({tally.status: tally.count for tally in reading.tallies()})
        events = [(event.task, event.kind) for event in reading.events()]
    assert +tallies == {"done": 2, "parked": 1}
    ends = [event for event in events if event[1] not in ("added", "leased")]
    assert ends == [("a", "succeeded"), ("b", "failed"), ("b", "parked"), ("c", "succeeded")]
    assert store.check() == []


def test_an_end_that_the_store_cannot_take_now_is_raised_and_nothing_is_parked(office, monkeypatch):
    leases = ids(office, {"id": "a"})

    def full(*_, **__):
        raise TryLater("no room")

    monkeypatch.setattr(attempts, "end_attempt", full)
    with pytest.raises(TryLater):
        attempts.finish(office.context, {leases["a"]: DONE})
    assert office.status_of("a") == ["leased"]


def test_an_end_can_pause_the_pool(office):
    leases = ids(office, {"id": "a", "agent": "claude"})
    login = Ending(Happening.ENVIRONMENT, pause="log in again")
    attempts.finish(office.context, {leases["a"]: login})
    with office.context.store.read() as reading:
        assert reading.table(Pause)["pool:anthropic"].reason == "log in again"


# What keeps a lease from its launch


@pytest.mark.parametrize(
    "scope",
    ["all", "project:p", "kind:code", "pool:anthropic", "group:child", "group:top", "task:a"],
)
def test_a_pause_between_lease_and_launch_is_respected(office, scope):
    projects.add_project(office.context, "p")
    with office.context.store.write() as tx:
        tx.put(Group("top"))
        tx.put(Group("child", parent="top"))
    task = {"id": "a", "project": "p", "group": "child", "agent": "claude", "kind": "code"}
    leases = ids(office, task, {"id": "b", "agent": "codex", "kind": "review"})
    assert attempts.blocked(office.context, leases.values()) == {}
    queue.pause(office.context, scope)
    blocked = attempts.blocked(office.context, leases.values())
    assert blocked[leases["a"]].code == "paused"
    assert (leases["b"] in blocked) is (scope == "all")


def test_a_project_that_is_archived_is_paused(office):
    projects.add_project(office.context, "p")
    leases = ids(office, {"id": "a", "project": "p"})
    projects.set_project(office.context, "p", {"status": "archived"})
    assert attempts.blocked(office.context, leases.values())[leases["a"]].code == "paused"


def test_a_lease_that_was_taken_back_is_not_launched(office):
    leases = ids(office, {"id": "a"})
    attempts.finish(office.context, {leases["a"]: FAILED})
    assert attempts.blocked(office.context, [leases["a"]])[leases["a"]].code == "ended"


def test_of_two_projects_in_one_folder_the_older_lease_has_it(office, tmp_path):
    office = TestContext(tmp_path, {"workspaces": {"mode": "shared"}}, office.context.store)
    with office.context.store.write() as tx:
        for name in "pqr":
            tx.put(Project(name, repo=str(tmp_path / ("other" if name == "r" else "one"))))
    records = [{"id": name, "project": name} for name in "pqr"]
    leases = ids(office, *records, {"id": "a"}, {"id": "b"})
    blocked = attempts.blocked(office.context, reversed(leases.values()))
    older, younger = sorted("pq", key=lambda name: row(office, leases[name]).fence)
    assert [*blocked] == [leases[younger]]
    assert (blocked[leases[younger]].code, blocked[leases[younger]].reason) == (
        "taken",
        f"{tmp_path / 'one'} is taken by {older}",
    )


# Direct mode


def test_direct_leases_pass_the_caps_and_nothing_else(office):
    office.policy("caps.all = 1\n")
    ids(office, {"id": "a"})
    queue.pause(office.context, "kind:review")
    office.add({"id": "b"}, {"id": "c", "kind": "review"}, {"id": "d"})
    direct = attempts.lease(office.context, HERE, only=["b", "c", "nobody"]).documents
    assert [(document["task"], document["direct"]) for document in direct] == [("b", True)]
    assert office.status_of("c", "d") == ["queued", "queued"]
