"""A workspace of a host that is not seen any more is free when it is seen, or after a time."""

from __future__ import annotations

import pytest

from fairlane.engine import attempts, liveness
from fairlane.engine.look.workers import Asker
from fairlane.model.instant import MINUTE
from fairlane.model.project import Project, WorkerRow
from fairlane.model.snapshot import StaleWorkspace
from fairlane.service import explain
from fairlane.settings import HOST, host_name

AWAY = Asker("away", None, "process", "elsewhere")


@pytest.fixture
def lost(office):
    """A task with the only workspace of its project, leased by a host that is gone since."""
    office.policy('recovery.stale_after = "10m"\nlease.ttl = "1m"\nretry.base = "0s"\n')
    with office.context.store.write() as tx:
        tx.put(Project("p", workspaces=("one",)))
    office.add({"id": "a", "project": "p"})
    assert len(attempts.lease(office.context, AWAY).documents) == 1
    office.add({"id": "b", "project": "p", "workspace": "one", "priority": 1})
    office.wait(2 * MINUTE)
    return office


def leased(office):
    return [row["task"] for row in office.lease()]


@pytest.mark.parametrize("way", ["round", "reclaim"])
def test_nobody_takes_the_workspace_before_the_time_is_over(lost, way):
    if way == "reclaim":
        assert [task.id for task in attempts.reclaim(lost.context)] == ["a"]
    assert leased(lost) == []
    assert lost.status_of("a", "b") == ["queued", "queued"]
    hold = explain.why(lost.context, "b")["holds"][0]
    assert (hold["gate"], hold["until"]) == ("workspace", "2026-01-30T12:12:00Z")
    lost.wait(9 * MINUTE)
    assert leased(lost) == []
    lost.wait(MINUTE)
    assert leased(lost) == ["b"]


def test_the_workspace_is_free_when_its_host_is_seen(lost):
    attempts.reclaim(lost.context)
    mine = HOST.set("elsewhere")
    attempts.present(lost.context)
    HOST.reset(mine)
    assert leased(lost) == ["b"]
    with lost.context.store.read() as reading:
        assert reading.tasks(["a"])["a"].backoff_until is None


def test_a_host_that_was_seen_lately_keeps_nothing(lost):
    with lost.context.store.write() as tx:
        tx.put(WorkerRow("away", "elsewhere", seen_at=lost.context.now()))
    assert [task.id for task in attempts.reclaim(lost.context)] == ["a"]
    assert leased(lost) == ["b"]


def test_who_asks_from_here_does_not_show_that_its_host_of_before_is_there(lost):
    """The round held the workspace, and its own commit gave it free."""
    with lost.context.store.write() as tx:
        tx.put(WorkerRow("box", "elsewhere"))
    assert leased(lost) == []
    assert leased(lost) == []
    with lost.context.store.read() as reading:
        assert reading.table(WorkerRow)["box"].host == host_name()
    lost.wait(10 * MINUTE)
    assert leased(lost) == ["b"]


def test_leases_of_holders_outside_keep_nothing(office):
    office.policy('lease.ttl = "1m"\nretry.base = "0s"\n')
    with office.context.store.write() as tx:
        tx.put(Project("p", workspaces=("one",)))
    office.add({"id": "a", "project": "p"})
    office.lease()
    office.wait(2 * MINUTE)
    attempts.reclaim(office.context)
    assert leased(office) == ["a"]


def test_an_old_entry_holds_nothing_and_is_forgotten(lost):
    attempts.reclaim(lost.context)
    lost.wait(11 * MINUTE)
    policy, now = lost.context.policy(), lost.context.now()
    with lost.context.store.read() as reading:
        assert liveness.stale_workspaces(reading, (), policy, now) == ()
        early = liveness.stale_workspaces(reading, (), policy, now - 2 * MINUTE)
    assert early == (StaleWorkspace("p", "one", "a", now - MINUTE),)
