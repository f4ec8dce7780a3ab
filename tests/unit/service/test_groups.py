"""Groups in groups: whole trees at once, their priority, their end, and what is told of them."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.intake.tree import DEPTH_MAX, parse_tree
from fairlane.model.documents.groups import FullGroupDocument
from fairlane.model.errors import FairlaneError, Invalid, Refused
from fairlane.model.instant import MINUTE
from fairlane.service import projects, queue, tasks
from fairlane.service.groups import add_group, add_tree, set_group
from fairlane.service.reports.groups import list_groups, show_group

TREE: dict[str, Any] = {
    "title": "The spring release",
    "priority": 40,
    "tasks": [{"id": "web-ship", "needs": ["web-page", "api-login"]}],
    "groups": [
        {"name": "login", "tasks": [{"id": "api-login"}, {"id": "web-login", "priority": 5}]},
        {
            "name": "looks",
            "priority": 60,
            "groups": [{"name": "pages", "tasks": [{"id": "web-page", "needs": ["web-login"]}]}],
        },
    ],
}


@pytest.fixture
def town(office):
    """Two projects that are told by prefixes."""
    for name in ("web", "api"):
        projects.add_project(office.context, name, {"prefix": f"{name}-"})
    return office


def task(office, name: str):
    with office.context.store.read() as reading:
        return reading.task(name)


def events(office, kind: str) -> list[dict[str, Any]]:
    with office.context.store.read() as reading:
        return [dict(each.data) for each in reading.events(limit=10_000) if each.kind == kind]


def shown(office, name: str) -> FullGroupDocument:
    return show_group(office.context, name)["group"]


def test_a_tree_is_added_whole(town):
    told = add_tree(town.context, "spring", TREE)
    assert list(told)[:6] == ["schema", "created", "group", "tasks", "groups", "unrouted"]
    assert [row["id"] for row in told["tasks"]] == [
        "web-ship",
        "api-login",
        "web-login",
        "web-page",
    ]
    assert (told["created"], told["unrouted"], told["deferred"]) == (True, [], False)
    assert told["groups"] == [
        {"name": "spring", "parent": None, "created": True},
        {"name": "login", "parent": "spring", "created": True},
        {"name": "looks", "parent": "spring", "created": True},
        {"name": "pages", "parent": "looks", "created": True},
    ]
    assert told["group"] is not None
    assert (told["group"]["title"], told["group"]["total"]) == ("The spring release", 4)
    assert (task(town, "api-login").project, task(town, "web-page").group) == ("api", "pages")
    # A priority of its own, else that of the nearest group above that has one.
    names = ("web-ship", "api-login", "web-login", "web-page")
    assert [task(town, name).priority for name in names] == [40, 40, 5, 60]
    assert [each["group"] for each in events(town, "group_added")] == [
        "spring", "login", "looks", "pages",
    ]  # fmt: skip


def test_the_same_tree_again_changes_nothing(town):
    add_tree(town.context, "spring", TREE)
    before = town.count()
    told = add_tree(town.context, "spring", TREE)
    assert not told["created"]
    assert not any(row["created"] for row in [*told["tasks"], *told["groups"]])
    assert (town.count(), len(events(town, "group_added"))) == (before, 4)


def test_a_dry_run_tells_the_same_and_leaves_no_trace(town):
    dry = add_tree(town.context, "spring", TREE, dry_run=True)
    assert (town.count(), events(town, "group_added")) == (0, [])
    assert dry.pop("dry_run")
    assert add_tree(town.context, "spring", TREE) == dry


def test_what_cannot_be_routed_is_named_with_what_needs_it(town):
    tree = {
        "tasks": [
            {"id": "zz-1"},
            {"id": "web-1", "needs": ["zz-1"]},
            {"id": "web-2", "parent": "web-1"},
            {"id": "web-3"},
            {"id": "odd", "project": "api"},
            {"prompt": "no id: as `add` does"},
        ]
    }
    told = add_tree(town.context, "g", tree)
    assert told["unrouted"] == [
        {
            "id": "zz-1",
            "reason": "its id begins with no project's prefix, and it names no project",
        },
        {"id": "web-1", "reason": "it needs zz-1, which is left out"},
        {"id": "web-2", "reason": "it needs web-1, which is left out"},
    ]
    assert [row["id"] for row in told["tasks"]] == ["web-3", "odd", "t1"]
    assert add_tree(town.context, "g", tree, project="web")["unrouted"] == []


def test_without_prefixes_everything_has_a_place(office):
    told = add_tree(office.context, "g", {"tasks": [{"id": "zz-1"}]})
    assert (told["unrouted"], task(office, "zz-1").project) == ([], "default")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"tasks": [{"id": "web-1"}, {"id": "web-2", "prio": 1}]}, "g, task 2: unknown field"),
        ({"groups": [{"name": "x", "tasks": [{"id": "a b"}]}]}, "x, task 1: id: not a proper name"),
        ({"tasks": [{"id": "web-1", "needs": ["web-9"]}]}, "g, task 1: web-1 needs 'web-9'"),
        ({"task": []}, "group g: unknown key 'task'"),
        ({"groups": [{"tasks": []}]}, "group g: group 1 under it has no name"),
        ({"groups": [{"name": "g"}]}, "group g appears twice in the tree"),
        ({"groups": [{"name": "x", "parent": "y"}]}, "group x stands under g, not y"),
        ({"tasks": [{"id": "web-1", "group": "x"}]}, "g: task 1 is of group 'x'"),
        ({"tasks": {"id": "web-1"}}, "group g: tasks: not a list of tables"),
        ({"name": "h"}, "the tree is of group 'h', not of 'g'"),
        ({"parent": "nowhere"}, "there is no group 'nowhere'"),
        ({"priority": "high"}, "group g: priority: not a whole number: 'high'"),
        (
            {"tasks": [{"id": "web-1", "needs": ["web-2"]}, {"id": "web-2", "needs": ["web-1"]}]},
            "a cycle: ",
        ),
    ],
)
def test_a_bad_tree_changes_nothing(town, tree, message):
    with pytest.raises(FairlaneError) as refused:
        add_tree(town.context, "g", tree)
    assert message in refused.value.message
    assert (town.count(), list_groups(town.context)["groups"]) == (0, [])


def test_a_group_that_is_there_and_different_is_refused(town):
    add_group(town.context, "login", priority=7)
    with pytest.raises(Refused, match="group login is there already"):
        add_tree(town.context, "spring", TREE)
    assert town.count() == 0


def test_a_tree_has_a_bound(town):
    tree: dict[str, Any] = {}
    for at in range(DEPTH_MAX + 1):
        tree = {"groups": [tree | {"name": f"g{at}"}]}
    with pytest.raises(Invalid, match=f"deeper than {DEPTH_MAX} groups"):
        add_tree(town.context, "top", tree)


def test_toml_and_json_are_the_same_tree():
    text = 'priority = 4\n[[tasks]]\nid = "a"\n[[groups]]\nname = "x"\n[[groups.tasks]]\nid = "b"\n'
    assert parse_tree(text, "f") == parse_tree(
        '{"priority": 4, "tasks": [{"id": "a"}],'
        ' "groups": [{"name": "x", "tasks": [{"id": "b"}]}]}',
        "f",
    )
    with pytest.raises(Invalid, match="f: not TOML"):
        parse_tree("tasks = [", "f")
    with pytest.raises(Invalid, match="stdin: not JSON"):
        parse_tree('{"tasks": ', "stdin")


def test_queued_tasks_follow_their_groups_priority(town):
    add_tree(town.context, "spring", TREE)
    assert set_group(town.context, "spring", {"priority": 10})["followed"] == 2
    names = ("web-ship", "api-login", "web-login", "web-page")
    assert [task(town, name).priority for name in names] == [10, 10, 5, 60]
    assert set_group(town.context, "looks", {"priority": None})["followed"] == 1
    assert task(town, "web-page").priority == 10
    assert [row["task"] for row in town.lease(1)] == ["web-login"]
    assert set_group(town.context, "spring", {"priority": None})["followed"] == 3
    assert [task(town, name).priority for name in names] == [100, 100, 5, 100]


def test_what_has_started_keeps_its_priority(office):
    office.add({"id": "a"}, {"id": "b"}, group="g")
    office.lease(1)
    assert set_group(office.context, "g", {"priority": 3})["followed"] == 1
    assert [task(office, name).priority for name in ("a", "b")] == [100, 3]


def test_pausing_a_group_holds_those_under_it(town):
    add_tree(town.context, "spring", TREE)
    queue.pause(town.context, "group:spring")
    assert town.lease() == []
    [hold] = [each for each in shown(town, "spring")["holds"] if each["code"] == "paused"]
    assert (hold["count"], hold["tasks"]) == (2, ["api-login", "web-login"])
    assert hold["reason"] == "group spring is paused by ann since 2026-01-30T12:00:00Z"
    queue.resume(town.context, "group:spring")
    assert {row["task"] for row in town.lease()} == {"api-login", "web-login"}


def test_canceling_a_group_cancels_those_under_it(town):
    add_tree(town.context, "spring", TREE)
    tasks.cancel(town.context, group="looks")
    assert town.status_of("web-page", "web-ship") == ["canceled", "queued"]
    tasks.cancel(town.context, group="spring")
    assert set(town.status_of("web-ship", "api-login", "web-login")) == {"canceled"}
    assert events(town, "group_done") == []  # nothing of it was done


def test_the_end_of_a_group_is_told_once_and_after_those_under_it(town):
    add_tree(town.context, "spring", TREE)
    while leases := town.lease():
        for row in leases:
            town.finish(row["lease"])
    told = [each["group"] for each in events(town, "group_done")]
    assert told == ["login", "pages", "looks", "spring"]
    assert shown(town, "spring")["done"]


def test_a_group_whose_last_open_task_is_canceled_is_done(office):
    office.add({"id": "a"}, {"id": "b"}, {"id": "c", "needs": ["b"]}, group="g")
    office.policy('readiness.upstream = "cancel"\n')
    office.finish(office.lease(1)[0]["lease"])
    assert events(office, "group_done") == []
    tasks.cancel(office.context, ["b"])
    assert [each["group"] for each in events(office, "group_done")] == ["g"]
    group = shown(office, "g")
    assert (group["done"], group["progress"]) == (True, "1 of 3 done, 2 canceled")


def test_a_group_with_a_parked_task_is_not_done(office):
    office.policy("retry.max_attempts = 1\n")
    office.add({"id": "a"}, {"id": "b"}, group="g")
    first, second = office.lease()
    office.fail(first["lease"])
    office.finish(second["lease"])
    assert (events(office, "group_done"), shown(office, "g")["done"]) == ([], False)


def test_the_story_of_a_group(town):
    town.policy("retry.max_attempts = 1\ncaps.all = 2\n")
    add_tree(town.context, "spring", TREE)
    add_tree(
        town.context, "more", {"parent": "spring", "tasks": [{"id": "web-x"}, {"id": "web-y"}]}
    )
    first = town.lease(1)[0]
    assert first["task"] == "web-login"
    town.wait(3 * MINUTE)
    town.finish(first["lease"], output=700, usd=250_000)
    [running, failing] = town.lease(2)
    town.fail(failing["lease"], "exit 1")
    group = shown(town, "spring")
    assert [each["id"] for each in group["running"]] == [running["task"]]
    assert group["running"][0]["worker"] == "box"
    assert group["parked"] == [
        {
            "id": failing["task"],
            "group": task(town, failing["task"]).group,
            "reason": "failed: exit 1 (attempt 1 of 1)",
        }
    ]
    assert (group["tokens"], group["usd"]) == (700, 0.25)
    assert group["span"] == {"from": "2026-01-30T12:00:00Z", "until": None}
    assert [(each["name"], each["depth"]) for each in group["tree"]] == [
        ("spring", 0), ("login", 1), ("looks", 1), ("pages", 2), ("more", 1),
    ]  # fmt: skip
    held = {each["code"]: each["count"] for each in group["holds"]}
    assert sum(held.values()) + len(group["next"]) == group["by_status"]["queued"]
    assert (group["ready"] + group["waiting"]) == group["by_status"]["queued"]
