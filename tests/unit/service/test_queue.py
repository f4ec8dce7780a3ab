"""Pause, resume, clear."""

from __future__ import annotations

import pytest

from fairlane.clock import FixedClock
from fairlane.model.errors import Interrupted, Invalid, NotFound, Refused, TryLater
from fairlane.model.instant import MINUTE
from fairlane.service import projects, queue, tasks
from fairlane.service.groups import add_group
from fairlane.service.reports import listing
from fairlane.service.reports.status import status
from tests.unit.contexts import hold_code


def test_a_pause_is_durable_with_who_and_when_and_twice_is_once(office):
    office.add({"id": "a"})
    first = queue.pause(office.context, "all", "lunch")
    office.wait(MINUTE)
    second = queue.pause(office.context, "all", "dinner")
    assert first == {
        "schema": "fairlane/1",
        "changed": True,
        "scope": "all",
        "by": "ann",
        "since": "2026-01-30T12:00:00Z",
        "reason": "lunch",
    }
    assert second == first | {"changed": False}
    assert office.lease() == []
    assert queue.resume(office.context) == {
        "schema": "fairlane/1",
        "changed": True,
        "scope": "all",
        "paused": [],
    }
    assert queue.resume(office.context)["changed"] is False
    assert len(office.lease()) == 1


@pytest.mark.parametrize(
    "scope", ["project:web", "kind:review", "pool:anthropic", "group:g", "task:a"]
)
def test_every_scope_holds_its_tasks_alone(office, scope):
    projects.add_project(office.context, "web")
    task = {"id": "a", "project": "web", "kind": "review", "agent": "claude", "group": "g"}
    office.add(task, {"id": "b", "agent": "codex"})
    queue.pause(office.context, scope)
    assert hold_code(listing.show(office.context, "a")) == "paused"
    assert [lease["task"] for lease in office.lease()] == ["b"]
    assert status(office.context)["paused"][0]["scope"] == scope
    queue.resume(office.context, scope)
    assert [lease["task"] for lease in office.lease()] == ["a"]


@pytest.mark.parametrize(
    ("scope", "error", "said", "hint"),
    [
        ("project:wbe", NotFound, "there is no project 'wbe'", "Did you mean 'web'?"),
        ("group:x", NotFound, "there is no group 'x'", ""),
        ("task:x", NotFound, "there is no task 'x'", "fairlane list"),
        ("pool:antropic", NotFound, "there is no pool 'antropic'", "mean 'anthropic'?"),
        ("projct:web", Invalid, "not a scope: 'projct:web'", "Did you mean 'project:NAME'?"),
        ("everything", Invalid, "not a scope: 'everything'", "Accepted: all, project:NAME"),
        ("kind:", Invalid, "not a scope: 'kind:'", "kind:NAME"),
        ("kind:a b", Invalid, "not a kind name: 'a b'", "letters"),
    ],
)
@pytest.mark.parametrize("verb", [queue.pause, queue.resume, queue.clear])
def test_a_scope_that_names_nothing_is_refused(office, verb, scope, error, said, hint):
    projects.add_project(office.context, "web")
    with pytest.raises(error) as refused:
        verb(office.context, scope)
    assert refused.value.message == said
    assert hint in refused.value.hint


def test_pausing_works_beside_a_broken_policy(office):
    office.policy("nonsense = 1")
    assert queue.pause(office.context)["changed"] is True


def test_resuming_a_project_opens_it_again(office):
    projects.add_project(office.context, "web", {"status": "paused"})
    assert queue.resume(office.context, "project:web")["changed"] is True
    assert projects.show_project(office.context, "web")["project"]["status"] == "active"


def test_a_task_that_is_over_cannot_be_paused_and_its_pause_is_not_told(office):
    office.add({"id": "a"}, {"id": "b"})
    queue.pause(office.context, "task:a")
    tasks.cancel(office.context, ["a"])
    assert status(office.context)["paused"] == []
    with pytest.raises(Refused, match="a is canceled"):
        queue.pause(office.context, "task:a")


def test_clear_says_what_first_and_then_cancels(office):
    projects.add_project(office.context, "web")
    office.add({"id": "run"}, {"id": "a", "project": "web"}, {"id": "b", "kind": "review"})
    office.lease(1)
    asked = queue.clear(office.context, dry_run=True)
    assert asked == {
        "schema": "fairlane/1",
        "scope": "all",
        "dry_run": True,
        "count": 2,
        "tasks": ["a", "b"],
        "by_kind": {"code": 1, "review": 1},
        "by_project": {"default": 1, "web": 1},
    }
    assert office.status_of("run", "a", "b") == ["leased", "queued", "queued"]
    assert queue.clear(office.context) == asked | {"dry_run": False}
    assert office.status_of("run", "a", "b") == ["leased", "canceled", "canceled"]
    assert listing.show(office.context, "a")["task"]["reason"] == "cleared"


@pytest.mark.parametrize(
    ("scope", "gone"),
    [
        ("project:web", ["a"]),
        ("kind:review", ["b"]),
        ("group:top", ["c", "d"]),
        ("pool:anthropic", ["e"]),
        ("task:f", ["f"]),
    ],
)
def test_clear_a_scope(office, scope, gone):
    projects.add_project(office.context, "web", {"agent": "codex"})
    projects.set_project(office.context, "default", {"agent": "codex"})
    add_group(office.context, "top")
    add_group(office.context, "under", parent="top")
    office.add({"id": "a", "project": "web"}, {"id": "b", "kind": "review"})
    office.add({"id": "c", "group": "top"}, {"id": "d", "group": "under"})
    office.add({"id": "e", "agent": "claude"}, {"id": "f"})
    assert queue.clear(office.context, scope)["tasks"] == gone


def test_clear_takes_what_waits_too_and_cancels_once(office):
    office.policy('readiness.upstream = "cancel"')
    office.add({"id": "a"}, {"id": "b", "needs": ["a"]}, {"id": "c", "needs": ["b"]})
    assert queue.clear(office.context)["count"] == 3
    kinds = [event["kind"] for event in listing.show(office.context, "c")["events"]]
    assert kinds == ["added", "canceled"]


def test_many_are_cleared_page_by_page(office):
    office.add(*({} for _ in range(2_500)))
    answer = queue.clear(office.context)
    assert (answer["count"], len(answer["tasks"])) == (2_500, 1_000)
    assert status(office.context)["queued"]["total"] == 0


class Between(FixedClock):
    """Does something whenever somebody pauses."""

    action = staticmethod(lambda: None)

    def wait(self, timeout, *waitables):
        self.action()
        return []


def pausing(office, monkeypatch, action):
    monkeypatch.setattr(queue, "PART", 10)
    monkeypatch.setattr(Between, "action", staticmethod(action))
    office.context.clock = Between(office.clock.at)


def test_others_write_while_many_are_cleared_and_what_they_add_stays(office, monkeypatch):
    office.add(*({} for _ in range(30)))
    pausing(office, monkeypatch, lambda: office.add({}))
    assert queue.clear(office.context)["count"] == 30
    assert status(office.context)["queued"]["total"] == 3
    with office.context.store.read() as reading:
        events = reading.events(limit=1000)
    assert [each.data["count"] for each in events if each.kind == "cleared"] == [10] * 3


def test_an_interrupted_clear_says_how_many_and_is_repeated_for_the_rest(office, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    office.add(*({} for _ in range(30)))
    pausing(office, monkeypatch, interrupt)
    with pytest.raises(Interrupted) as interrupted:
        queue.clear(office.context)
    assert interrupted.value.message == "interrupted: 10 tasks were cleared"
    assert interrupted.value.hint == "Run `fairlane clear` again for the rest."
    assert interrupted.value.exit_code == 130
    office.context.clock = office.clock
    assert queue.clear(office.context)["count"] == 20


def test_a_clear_that_finds_the_store_busy_says_how_many(office, monkeypatch):
    def fail():
        raise TryLater("the store is busy", "Try again.", "busy")

    office.add(*({} for _ in range(30)))
    pausing(office, monkeypatch, fail)
    with pytest.raises(TryLater) as refused:
        queue.clear(office.context)
    assert refused.value.message == "the store is busy (10 tasks were cleared)"
    assert refused.value.error_code == "busy"
    assert status(office.context)["queued"]["total"] == 20
