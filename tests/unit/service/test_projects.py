"""Projects, groups, pools, workers."""

from __future__ import annotations

import pytest

from fairlane.engine.end_attempt import Report
from fairlane.model.errors import Invalid, NotFound, Refused
from fairlane.model.instant import MINUTE
from fairlane.model.project import Project, WorkerRow
from fairlane.service import projects, queue, tasks
from fairlane.service.groups import add_group, set_group
from fairlane.service.reports import listing
from fairlane.service.reports.groups import list_groups, show_group
from fairlane.service.reports.resources import list_pools, list_workers, show_pool, show_worker
from tests import holder
from tests.unit.contexts import NOON


def test_default_always_exists(office):
    rows = projects.list_projects(office.context)["projects"]
    assert [(row["name"], row["weight"], row["status"]) for row in rows] == [
        ("default", 1, "active")
    ]
    with pytest.raises(Refused, match="project default always exists"):
        projects.remove_project(office.context, "default")


def test_add_set_show(office, tmp_path):
    made = projects.add_project(
        office.context, "web", {"weight": 3, "prefix": "web-", "repo": str(tmp_path)}
    )
    assert made["created"] is True
    budget = {"tokens": 50000, "window": "7d"}
    projects.set_project(
        office.context, "web", {"max_in_flight": 2, "workspaces": ["w1"], "budgets": [budget]}
    )
    office.add({"project": "web"}, {"id": "web-2"})
    office.finish(office.lease(1)[0]["lease"], 700, 1_500_000)
    shown = projects.show_project(office.context, "web")["project"]
    assert (shown["weight"], shown["max_in_flight"], shown["workspaces"]) == (3, 2, ["w1"])
    assert shown["budgets"] == [
        budget | {"scope": "project:web", "warn_at": 0.8, "on_exceeded": "finish"}
    ]
    assert (shown["tasks"]["queued"], shown["tasks"]["done"]) == (1, 1)
    assert (shown["tokens"], shown["usd"], shown["completions"]) == (700, 1.5, 1)
    projects.set_project(office.context, "web", {"workspaces": None, "budgets": None})
    shown = projects.show_project(office.context, "web")["project"]
    assert (shown["workspaces"], shown["budgets"]) == (None, [])


def test_a_new_project_begins_where_everybody_is(office):
    with office.context.store.write() as tx:
        tx.put_value("clock", 77)
    projects.add_project(office.context, "web")
    with office.context.store.read() as reading:
        assert reading.table(Project)["web"].clock == 77


def test_adding_twice_is_once_unless_something_else_is_asked(office):
    projects.add_project(office.context, "web", {"weight": 2})
    assert projects.add_project(office.context, "web")["created"] is False
    assert projects.add_project(office.context, "web", {"weight": 2})["created"] is False
    with pytest.raises(Refused, match="project web is there already") as refused:
        projects.add_project(office.context, "web", {"weight": 3})
    assert "fairlane project set web" in refused.value.hint


REFUSED = {
    "key": ({"wieght": 1}, "unknown key 'wieght'", "Did you mean 'weight'?"),
    "weight": ({"weight": 1.5}, "weight: not a whole number: 1.5", ""),
    "below": ({"weight": -1}, "weight: -1 is out of range", "from 0"),
    "status": ({"status": "on"}, "status: 'on' is none of active, paused, archived", ""),
    "repo": ({"repo": "/nowhere/at/all"}, "repo: /nowhere/at/all is no folder", ""),
    "prefix": ({"prefix": "a b"}, "prefix: not a prefix: 'a b'", ""),
    "budget": ({"budgets": [{"tokns": 1}]}, "budgets: unknown key budget[0].tokns", "'tokens'"),
    "budget both": ({"budgets": [{"window": "1h"}]}, "budget[0] has neither tokens nor usd", ""),
    "budget value": ({"budgets": [{"tokens": -1}]}, "budget[0].tokens: -1 is out of range", ""),
    "budgets": ({"budgets": 5}, "budgets: not a list of tables", ""),
}


@pytest.mark.parametrize(("values", "said", "hint"), REFUSED.values(), ids=REFUSED)
def test_wrong_values_are_named(office, values, said, hint):
    with pytest.raises(Invalid) as refused:
        projects.add_project(office.context, "web", values)
    assert refused.value.message.startswith("project web: ")
    assert said in refused.value.message
    assert hint in refused.value.hint
    with pytest.raises(NotFound, match="there is no project 'web'"):
        projects.show_project(office.context, "web")


def test_a_prefix_is_one_projects(office):
    projects.add_project(office.context, "web", {"prefix": "w-"})
    with pytest.raises(Refused, match="prefix 'w-' belongs to project web"):
        projects.add_project(office.context, "wide", {"prefix": "w-"})


def test_a_project_with_unfinished_tasks_stays(office):
    projects.add_project(office.context, "web")
    office.add({"id": "a", "project": "web"}, {"id": "b", "project": "web"})
    office.lease(1)
    with pytest.raises(Refused) as refused:
        projects.remove_project(office.context, "web")
    assert refused.value.message == "project web has unfinished tasks: 1 leased, 1 queued"
    assert "fairlane clear project:web" in refused.value.hint


def test_a_project_without_tasks_goes(office):
    projects.add_project(office.context, "web")
    queue.pause(office.context, "project:web")
    answer = projects.remove_project(office.context, "web")
    assert (answer["removed"], answer["archived"]) == ("web", False)
    names = [row["name"] for row in projects.list_projects(office.context)["projects"]]
    assert names == ["default"]


def test_a_project_whose_tasks_are_over_is_archived_and_can_come_back(office):
    projects.add_project(office.context, "web", {"weight": 4})
    office.add({"id": "a", "project": "web"})
    tasks.cancel(office.context, ["a"])
    assert projects.remove_project(office.context, "web")["archived"] is True
    assert projects.show_project(office.context, "web")["project"]["status"] == "archived"
    assert listing.show(office.context, "a")["task"]["status"] == "canceled"
    again = projects.add_project(office.context, "web")
    assert (again["created"], again["project"]["status"]) == (True, "active")
    assert again["project"]["weight"] == 4


def test_progress_of_a_group_with_those_under_it(office):
    add_group(office.context, "epic", priority=9)
    add_group(office.context, "phase", parent="epic")
    office.policy("retry.max_attempts = 1")
    office.add({"id": "a"}, {"id": "b"}, {"id": "c"}, group="epic")
    office.add({"id": "d"}, group="phase")
    first, second = office.lease(2)
    office.finish(first["lease"])
    office.fail(second["lease"])
    group = show_group(office.context, "epic")["group"]
    assert group["progress"] == "1 of 4 done, 1 parked"
    assert (group["groups"], group["priority"], group["ready"]) == (["phase"], 9, 2)
    assert (group["done"], group["stranded"]) == (False, False)
    assert len(group["tasks"]) == 3
    rows = list_groups(office.context)["groups"]
    assert [(row["name"], row["progress"]) for row in rows] == [
        ("epic", "1 of 4 done, 1 parked"),
        ("phase", "0 of 1 done"),
    ]


def test_a_group_is_done_when_all_are_done(office):
    office.add({"id": "a"}, group="g")
    office.finish(office.lease()[0]["lease"])
    assert show_group(office.context, "g")["group"]["done"] is True


def test_a_group_without_capacity_is_stranded(office):
    office.policy('[caps]\nall = 4\n"kind:review" = 1')
    office.add({"id": "x", "kind": "review"})
    office.lease(1)
    office.add({"kind": "review", "group": "g"}, {"kind": "review", "group": "g"})
    assert show_group(office.context, "g")["group"]["stranded"] is True
    office.add({"kind": "code", "group": "g"})
    assert show_group(office.context, "g")["group"]["stranded"] is False


def test_groups_form_no_cycle(office):
    add_group(office.context, "a")
    add_group(office.context, "b", parent="a")
    with pytest.raises(Refused, match="a cycle of groups: a → b → a"):
        set_group(office.context, "a", {"parent": "b"})
    with pytest.raises(NotFound, match="there is no group 'x'"):
        add_group(office.context, "c", parent="x")
    with pytest.raises(Invalid, match="unknown key 'weight'"):
        set_group(office.context, "a", {"weight": 2})
    changed = set_group(office.context, "b", {"parent": None, "priority": 4})["group"]
    assert (changed["parent"], changed["priority"]) == (None, 4)


def test_adding_a_group_twice_is_once(office):
    add_group(office.context, "a", priority=1)
    assert add_group(office.context, "a")["created"] is False
    with pytest.raises(Refused, match="group a is there already"):
        add_group(office.context, "a", priority=2)


def test_pools_tell_cooldown_cap_and_pause(office):
    office.policy('[caps]\n"pool:anthropic" = 3')
    office.add({"agent": "claude"}, {"agent": "claude"})
    first, _ = office.lease(2)
    told = Report(detail="429", retry_after=5 * MINUTE)
    holder.release(office.context, first["lease"], "throttled", told)
    queue.pause(office.context, "pool:openai", "not logged in")
    rows = {row["name"]: row for row in list_pools(office.context)["pools"]}
    assert rows["anthropic"] == {
        "name": "anthropic",
        "cooldown": True,
        "until": "2026-01-30T12:05:00Z",
        "hits": 1,
        "cause": "429",
        "probing": False,
        "in_flight": 1,
        "cap": 3,
        "paused": False,
        "reason": "",
    }
    assert (rows["openai"]["paused"], rows["openai"]["reason"]) == (True, "not logged in")
    office.wait(10 * MINUTE)
    pool = show_pool(office.context, "anthropic")["pool"]
    assert (pool["cooldown"], pool["until"], pool["probing"]) == (False, None, True)
    with pytest.raises(NotFound, match="there is no pool 'antropic'"):
        show_pool(office.context, "antropic")


def test_workers_tell_slots_and_whether_they_live(office):
    with office.context.store.write() as tx:
        tx.put(WorkerRow("box", "host", 2, ("gpu",), NOON))
        tx.put(WorkerRow("gone", "other", 4, (), NOON - 10 * MINUTE))
    office.add({"id": "a"})
    office.lease(1)
    box, gone = list_workers(office.context)["workers"]
    assert (box["live"], box["free"], box["tasks"], box["labels"]) == (True, 3, ["a"], ["gpu"])
    office.policy("caps.all = 9")  # this machine's own slots follow it
    assert show_worker(office.context, "box")["worker"]["slots"] == 9
    assert (gone["live"], gone["free"], gone["tasks"]) == (False, 4, [])
    assert show_worker(office.context, "gone")["worker"] == gone
