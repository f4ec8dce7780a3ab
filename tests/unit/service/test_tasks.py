"""Edit, list, show, cancel, retry."""

from __future__ import annotations

import pytest

from fairlane.lifecycle.transitions import IllegalTransition
from fairlane.model.errors import Invalid, NotFound, Refused
from fairlane.model.instant import MINUTE, SECOND
from fairlane.service import projects, queue, tasks
from fairlane.service.groups import add_group
from fairlane.service.reports import listing
from tests.unit.contexts import hold_code


def listed(office, **filters):
    return [row["id"] for row in listing.list_tasks(office.context, **filters)["tasks"]]


def hold(office, name):
    return listing.show(office.context, name)["hold"]


def test_edit_changes_what_has_not_started(office):
    office.add({"id": "a"}, {"id": "b"})
    answer = tasks.edit(
        office.context,
        ["a", "b"],
        {"priority": 5, "prompt": "new", "group": "g", "labels": ["gpu"]},
    )
    assert [row["priority"] for row in answer["tasks"]] == [5, 5]
    shown = listing.show(office.context, "a")
    assert (shown["task"]["prompt"], shown["task"]["group"]) == ("new", "g")
    assert shown["events"][-1]["kind"] == "edited"
    assert shown["events"][-1]["data"]["fields"] == ["group", "labels", "priority", "prompt"]
    assert hold_code(shown) == "no_label"
    tasks.edit(office.context, ["a"], {"labels": None, "group": None})
    assert (hold(office, "a"), listing.show(office.context, "a")["task"]["group"]) == (None, None)


def test_edit_moves_a_task_in_time_and_between_projects(office):
    projects.add_project(office.context, "web")
    office.add({"id": "a"})
    tasks.edit(office.context, ["a"], {"not_before": "2026-01-30T12:05:00Z", "project": "web"})
    assert hold(office, "a")["code"] == "not_before"
    assert office.lease() == []
    tasks.edit(office.context, ["a"], {"not_before": None})
    assert [(lease["task"], lease["project"]) for lease in office.lease()] == [("a", "web")]


def test_a_new_agent_brings_its_pool(office):
    office.add({"id": "a", "agent": "claude"})
    tasks.edit(office.context, ["a"], {"agent": "codex"})
    assert listing.show(office.context, "a")["task"]["pool"] == "openai"


def who(office, name="a"):
    shown = listing.show(office.context, name)["task"]
    return shown["agent"], shown["pool"]


def test_without_an_agent_or_a_pool_a_task_has_the_default_ones_again(office):
    projects.add_project(office.context, "web", {"agent": "gemini"})
    office.add({"id": "a", "agent": "codex"}, {"id": "b", "agent": "codex", "project": "web"})
    tasks.edit(office.context, ["a", "b"], {"agent": None})
    assert (who(office), who(office, "b")) == (("claude", "anthropic"), ("gemini", "google"))
    tasks.edit(office.context, ["a"], {"pool": "second"})
    assert who(office) == ("claude", "second")
    tasks.edit(office.context, ["a"], {"pool": None})
    assert who(office) == ("claude", "anthropic")
    tasks.edit(office.context, ["a"], {"agent": None, "pool": "second"})
    assert who(office) == ("claude", "second")


def test_without_an_agent_a_command_is_run_by_the_shell_again(office):
    office.add({"id": "a", "agent": "codex", "command": ["make"]})
    tasks.edit(office.context, ["a"], {"agent": None})
    assert who(office) == ("shell", None)


def test_a_task_that_gets_or_loses_its_command_is_run_by_another(office):
    office.add({"id": "a"}, {"id": "b", "agent": "codex", "command": ["make"]})
    tasks.edit(office.context, ["a", "b"], {"command": ["true"]})
    assert (who(office), who(office, "b")) == (("shell", None), ("codex", "openai"))
    tasks.edit(office.context, ["a"], {"command": None})
    assert who(office) == ("claude", "anthropic")


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"project": "nowhere"}, NotFound, "there is no project 'nowhere'"),
        ({"template": "nothing"}, Refused, "there is no template 'nothing'"),
        ({"priority": "high"}, Invalid, "priority: not a whole number"),
        ({"prority": 1}, Invalid, "unknown field 'prority'"),
        ({"prority": None}, Invalid, "unknown field 'prority'"),
        ({"needs": ["b"]}, Invalid, "field 'needs' cannot be changed"),
        ({"id": "b"}, Invalid, "field 'id' cannot be changed"),
        ({}, Invalid, "there is nothing to change"),
    ],
)
def test_edit_keeps_the_rules(office, changes, error, said):
    office.add({"id": "a"})
    with pytest.raises(error, match=said):
        tasks.edit(office.context, ["a"], changes)


def test_edit_refuses_what_has_started_and_changes_nothing(office):
    office.add({"id": "a"}, {"id": "b"})
    office.lease(1)
    with pytest.raises(Refused, match="a is leased") as refused:
        tasks.edit(office.context, ["b", "a"], {"priority": 1})
    assert refused.value.hint == "Only a task that has not started can be edited."
    assert listing.show(office.context, "b")["task"]["priority"] == 100


def test_a_list_says_what_holds_each_task(office):
    office.policy('[caps]\n"kind:code" = 2\n"kind:review" = 0')
    office.add({"id": "a"}, {"id": "b", "kind": "review"}, {"id": "c", "needs": ["a"]})
    office.add({"id": "d"}, {"id": "e"}, {"id": "f"})
    office.lease(1)
    rows = {row["id"]: row for row in listing.list_tasks(office.context)["tasks"]}
    assert [rows[name]["status"] for name in "abcdef"] == ["leased", *["queued"] * 5]
    assert [rows[name]["ready"] for name in "abcdef"] == [False, True, False, True, True, True]
    codes = [rows[name]["hold"] and hold_code(rows[name]) for name in "abcdef"]
    assert codes == [None, "cap_zero", "needs", None, "cap", "cap"]
    assert rows["c"]["hold"] == {
        "gate": "readiness",
        "code": "needs",
        "reason": "waits for a",
        "until": None,
        "holders": ["a"],
    }


def test_filters(office):
    projects.add_project(office.context, "web")
    office.policy("[caps]\nall = 1")
    office.add({"id": "a"}, {"id": "b", "project": "web", "kind": "review"}, {"id": "c"}, group="g")
    office.add({"id": "d"}, {"id": "e", "needs": ["d"]})
    queue.pause(office.context, "task:d")
    queue.pause(office.context, "project:web")
    assert listed(office, project="web") == ["b"]
    assert listed(office, kind="code") == ["a", "c", "d", "e"]
    assert listed(office, group="g") == ["a", "b", "c"]
    assert listed(office, held_by="paused") == ["b", "d"]
    assert listed(office, held_by="cap") == ["c"]
    assert listed(office, held_by="caps") == ["c"]
    assert listed(office, held_by="readiness") == ["d", "e"]
    assert listed(office, held_by="paused", project="web") == ["b"]
    assert listed(office, held_by="budget") == []
    office.lease()
    assert listed(office, status=["leased"]) == ["a"]
    assert listed(office, status=["leased", "queued"]) == ["a", "b", "c", "d", "e"]


def test_unknown_words_in_filters_are_named(office):
    with pytest.raises(Invalid, match="no hold is called 'budgt'") as refused:
        listing.list_tasks(office.context, held_by="budgt")
    assert refused.value.hint == "Did you mean 'budget'?"
    with pytest.raises(Invalid, match="there is no status 'ready'"):
        listing.list_tasks(office.context, status=["ready"])


def test_pages(office):
    office.add(*({"id": f"x{number}"} for number in range(5)))
    first = listing.list_tasks(office.context, limit=2)
    second = listing.list_tasks(office.context, limit=3, cursor=first["cursor"] or 0)
    assert [row["id"] for row in first["tasks"]] == ["x0", "x1"]
    assert [row["id"] for row in second["tasks"]] == ["x2", "x3", "x4"]
    assert second["cursor"] is None


def test_show_tells_everything_but_the_values_of_env(office):
    office.add({"id": "a", "env": {"TOKEN": "hunter2"}, "timeout": "90s", "vars": {"x": "y"}})
    office.add({"id": "b", "needs": ["a"]})
    lease = office.lease(1)[0]["lease"]
    office.fail(lease, "exit 2")
    shown = listing.show(office.context, "a")
    assert shown["task"]["env"] == ["TOKEN"]
    assert "hunter2" not in str(shown)
    assert shown["task"]["timeout"] == "1m30s"
    assert hold_code(shown) == "backoff"
    assert shown["dependents"] == [{"id": "b", "status": "queued"}]
    attempt = shown["attempts"][0]
    assert (attempt["attempt"], attempt["outcome"], attempt["detail"]) == (1, "failed", "exit 2")
    assert attempt["tokens"] == {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
    assert [event["kind"] for event in shown["events"]] == ["added", "leased", "failed", "backoff"]
    assert str(shown["events"][-1]["data"]["until"]).startswith("2026-01-30T12:00:")
    assert listing.show(office.context, "b")["needs"] == [{"id": "a", "status": "queued"}]


@pytest.mark.parametrize(
    "call",
    [
        lambda context: listing.show(context, "x"),
        lambda context: tasks.cancel(context, ["x"]),
        lambda context: tasks.retry(context, ["x"]),
        lambda context: tasks.edit(context, ["x"], {"priority": 1}),
    ],
)
def test_an_unknown_task_is_named(office, call):
    with pytest.raises(NotFound, match="there is no task 'x'") as refused:
        call(office.context)
    assert refused.value.hint == "`fairlane list` shows what there is."


def test_cancel_queued_and_in_flight(office):
    office.add({"id": "a"}, {"id": "b"})
    lease = office.lease(1)[0]["lease"]
    rows = tasks.cancel(office.context, ["a", "b"], reason="not needed")["tasks"]
    assert [(row["status"], row["stop_requested"]) for row in rows] == [
        ("leased", "cancel: not needed"),
        ("canceled", ""),
    ]
    office.fail(lease, outcome="canceled")
    assert listing.show(office.context, "a")["task"]["reason"] == "not needed"


def test_cancel_a_tree(office):
    office.add({"id": "a"}, {"id": "b", "parent": "a"}, {"id": "c", "parent": "b"}, {"id": "d"})
    tasks.cancel(office.context, ["a"], tree=True)
    assert office.status_of(*"abcd") == ["canceled", "canceled", "canceled", "queued"]


def test_cancel_a_group_and_those_under_it(office):
    add_group(office.context, "top")
    add_group(office.context, "under", parent="top")
    office.add({"id": "a", "group": "top"}, {"id": "b", "group": "under"}, {"id": "c"})
    office.finish(office.lease(1)[0]["lease"])
    rows = tasks.cancel(office.context, group="top")["tasks"]
    assert [row["id"] for row in rows] == ["b"]
    assert office.status_of(*"abc") == ["done", "canceled", "queued"]
    with pytest.raises(NotFound, match="there is no group 'toop'"):
        tasks.cancel(office.context, group="toop")


def test_cancel_of_what_is_over_is_refused_with_its_story(office):
    office.add({"id": "a"}, {"id": "b"})
    office.finish(office.lease(1)[0]["lease"])
    with pytest.raises(IllegalTransition, match="a is done and cannot be canceled") as refused:
        tasks.cancel(office.context, ["b", "a"])
    assert "Last events of a:" in refused.value.hint
    assert office.status_of("b") == ["queued"]


def test_cancel_works_beside_a_broken_policy(office):
    office.add({"id": "a"})
    office.policy("nonsense = 1")
    tasks.cancel(office.context, ["a"])
    assert office.status_of("a") == ["canceled"]


def test_retry_of_parked_and_of_backoff(office):
    office.policy("retry.max_attempts = 1")
    office.add({"id": "a"}, {"id": "b", "max_attempts": 2})
    for lease in office.lease():
        office.fail(lease["lease"])
    assert office.status_of("a", "b") == ["parked", "queued"]
    assert office.lease() == []
    office.wait(SECOND)
    rows = tasks.retry(office.context, ["a", "b"])["tasks"]
    assert [row["status"] for row in rows] == ["queued", "queued"]
    assert sorted(lease["task"] for lease in office.lease()) == ["a", "b"]


def test_retry_of_what_neither_is_parked_nor_waits_is_refused(office):
    office.add({"id": "a"})
    with pytest.raises(IllegalTransition, match="a is queued and cannot be retried"):
        tasks.retry(office.context, ["a"])


def test_nothing_named_is_wrong_usage(office):
    with pytest.raises(Invalid, match="nothing to cancel"):
        tasks.cancel(office.context)
    with pytest.raises(Invalid, match="nothing to retry"):
        tasks.retry(office.context, [])


def test_a_timer_that_has_passed_is_no_wait(office):
    office.add({"id": "a", "not_before": "2026-01-30T12:01:00Z"})
    assert listing.list_tasks(office.context)["tasks"][0]["ready"] is False
    office.wait(2 * MINUTE)
    row = listing.list_tasks(office.context)["tasks"][0]
    assert (row["ready"], row["hold"]) == (True, None)
