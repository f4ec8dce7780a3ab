"""Projects, groups, pools, workers."""

from __future__ import annotations

import pytest

from fairlane.model.errors import Invalid, NotFound, Refused
from fairlane.model.instant import MINUTE
from fairlane.service import leases, projects, queue, tasks
from fairlane.service.ending import Report
from fairlane.store.base import WorkerRow
from tests.unit.desks import NOON


def test_default_always_exists(office):
    rows = projects.list_projects(office.desk)["projects"]
    assert [(row["name"], row["weight"], row["status"]) for row in rows] == [
        ("default", 1, "active")
    ]
    with pytest.raises(Refused, match="project default always exists"):
        projects.remove_project(office.desk, "default")


def test_add_set_show(office, tmp_path):
    made = projects.add_project(
        office.desk, "web", {"weight": 3, "prefix": "web-", "repo": str(tmp_path)}
    )
    assert made["created"] is True
    budget = {"tokens": 50000, "window": "7d"}
    projects.set_project(
        office.desk, "web", {"max_in_flight": 2, "workspaces": ["w1"], "budgets": [budget]}
    )
    office.add({"project": "web"}, {"id": "web-2"})
    office.finish(office.lease(1)[0]["lease"], 700, 1_500_000)
    shown = projects.show_project(office.desk, "web")["project"]
    assert (shown["weight"], shown["max_in_flight"], shown["workspaces"]) == (3, 2, ["w1"])
    assert shown["budgets"] == [
        budget | {"scope": "project:web", "warn_at": 0.8, "on_exceeded": "finish"}
    ]
    assert (shown["tasks"]["queued"], shown["tasks"]["done"]) == (1, 1)
    assert (shown["tokens"], shown["usd"], shown["completions"]) == (700, 1.5, 1)
    projects.set_project(office.desk, "web", {"workspaces": None, "budgets": None})
    shown = projects.show_project(office.desk, "web")["project"]
    assert (shown["workspaces"], shown["budgets"]) == (None, [])


def test_a_new_project_begins_where_everybody_is(office):
    with office.desk.store.write() as tx:
        tx.put_value("clock", 77)
    projects.add_project(office.desk, "web")
    with office.desk.store.read() as reading:
        assert reading.projects()["web"].clock == 77


def test_adding_twice_is_once_unless_something_else_is_asked(office):
    projects.add_project(office.desk, "web", {"weight": 2})
    assert projects.add_project(office.desk, "web")["created"] is False
    assert projects.add_project(office.desk, "web", {"weight": 2})["created"] is False
    with pytest.raises(Refused, match="project web is there already") as refused:
        projects.add_project(office.desk, "web", {"weight": 3})
    assert "fairlane project set web" in refused.value.hint


REFUSED = {
    "key": ({"wieght": 1}, "unknown key 'wieght'", "Did you mean 'weight'?"),
    "weight": ({"weight": 1.5}, "weight: not a whole number: 1.5", ""),
    "below": ({"weight": -1}, "weight: -1 is out of range", "from 0"),
    "status": ({"status": "on"}, "status: 'on' is none of active, paused, archived", ""),
    "repo": ({"repo": "/nowhere/at/all"}, "repo: /nowhere/at/all is no folder", ""),
    "prefix": ({"prefix": "a b"}, "prefix: not a prefix: 'a b'", ""),
    "budget": ({"budgets": [{"tokns": 1}]}, "budgets: unknown key 'tokns'", "'tokens'"),
    "budget both": ({"budgets": [{"window": "1h"}]}, "tokens or usd, one of them", ""),
    "budget value": ({"budgets": [{"tokens": -1}]}, "tokens = -1 is refused", ""),
    "budgets": ({"budgets": 5}, "budgets: not a list of tables", ""),
}


@pytest.mark.parametrize(("values", "said", "hint"), REFUSED.values(), ids=REFUSED)
def test_wrong_values_are_named(office, values, said, hint):
    with pytest.raises(Invalid) as refused:
        projects.add_project(office.desk, "web", values)
    assert refused.value.message.startswith("project web: ")
    assert said in refused.value.message
    assert hint in refused.value.hint
    with pytest.raises(NotFound, match="there is no project 'web'"):
        projects.show_project(office.desk, "web")


def test_a_prefix_is_one_projects(office):
    projects.add_project(office.desk, "web", {"prefix": "w-"})
    with pytest.raises(Refused, match="prefix 'w-' belongs to project web"):
        projects.add_project(office.desk, "wide", {"prefix": "w-"})


def test_a_project_with_unfinished_tasks_stays(office):
    projects.add_project(office.desk, "web")
    office.add({"id": "a", "project": "web"}, {"id": "b", "project": "web"})
    office.lease(1)
    with pytest.raises(Refused) as refused:
        projects.remove_project(office.desk, "web")
    assert refused.value.message == "project web has unfinished tasks: 1 leased, 1 queued"
    assert "fairlane clear project:web" in refused.value.hint


def test_a_project_without_tasks_goes(office):
    projects.add_project(office.desk, "web")
    queue.pause(office.desk, "project:web")
    answer = projects.remove_project(office.desk, "web")
    assert (answer["removed"], answer["archived"]) == ("web", False)
    names = [row["name"] for row in projects.list_projects(office.desk)["projects"]]
    assert names == ["default"]


def test_a_project_whose_tasks_are_over_is_archived_and_can_come_back(office):
    projects.add_project(office.desk, "web", {"weight": 4})
    office.add({"id": "a", "project": "web"})
    tasks.cancel(office.desk, ["a"])
    assert projects.remove_project(office.desk, "web")["archived"] is True
    assert projects.show_project(office.desk, "web")["project"]["status"] == "archived"
    assert tasks.show(office.desk, "a")["task"]["status"] == "canceled"
    again = projects.add_project(office.desk, "web")
    assert (again["created"], again["project"]["status"]) == (True, "active")
    assert again["project"]["weight"] == 4


def test_progress_of_a_group_with_those_under_it(office):
    projects.add_group(office.desk, "epic", priority=9)
    projects.add_group(office.desk, "phase", parent="epic")
    office.policy("retry.max_attempts = 1")
    office.add({"id": "a"}, {"id": "b"}, {"id": "c"}, group="epic")
    office.add({"id": "d"}, group="phase")
    first, second = office.lease(2)
    office.finish(first["lease"])
    office.fail(second["lease"])
    group = projects.show_group(office.desk, "epic")["group"]
    assert group["progress"] == "1 of 4 done, 1 parked"
    assert (group["groups"], group["priority"], group["ready"]) == (["phase"], 9, 2)
    assert (group["done"], group["stranded"]) == (False, False)
    assert len(group["tasks"]) == 3
    rows = projects.list_groups(office.desk)["groups"]
    assert [(row["name"], row["progress"]) for row in rows] == [
        ("epic", "1 of 4 done, 1 parked"),
        ("phase", "0 of 1 done"),
    ]


def test_a_group_is_done_when_all_are_done(office):
    office.add({"id": "a"}, group="g")
    office.finish(office.lease()[0]["lease"])
    assert projects.show_group(office.desk, "g")["group"]["done"] is True


def test_a_group_without_capacity_is_stranded(office):
    office.policy('[caps]\nall = 4\n"kind:review" = 1')
    office.add({"id": "x", "kind": "review"})
    office.lease(1)
    office.add({"kind": "review", "group": "g"}, {"kind": "review", "group": "g"})
    assert projects.show_group(office.desk, "g")["group"]["stranded"] is True
    office.add({"kind": "code", "group": "g"})
    assert projects.show_group(office.desk, "g")["group"]["stranded"] is False


def test_groups_form_no_cycle(office):
    projects.add_group(office.desk, "a")
    projects.add_group(office.desk, "b", parent="a")
    with pytest.raises(Refused, match="a cycle of groups: a → b → a"):
        projects.set_group(office.desk, "a", {"parent": "b"})
    with pytest.raises(NotFound, match="there is no group 'x'"):
        projects.add_group(office.desk, "c", parent="x")
    with pytest.raises(Invalid, match="unknown key 'weight'"):
        projects.set_group(office.desk, "a", {"weight": 2})
    changed = projects.set_group(office.desk, "b", {"parent": None, "priority": 4})["group"]
    assert (changed["parent"], changed["priority"]) == (None, 4)


def test_adding_a_group_twice_is_once(office):
    projects.add_group(office.desk, "a", priority=1)
    assert projects.add_group(office.desk, "a")["created"] is False
    with pytest.raises(Refused, match="group a is there already"):
        projects.add_group(office.desk, "a", priority=2)


def test_pools_tell_cooldown_cap_and_pause(office):
    office.policy('[caps]\n"pool:anthropic" = 3')
    office.add({"agent": "claude"}, {"agent": "claude"})
    first, _ = office.lease(2)
    told = Report(detail="429", retry_after=5 * MINUTE)
    leases.release(office.desk, first["lease"], "throttled", told)
    queue.pause(office.desk, "pool:openai", "not logged in")
    rows = {row["name"]: row for row in projects.list_pools(office.desk)["pools"]}
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
    pool = projects.show_pool(office.desk, "anthropic")["pool"]
    assert (pool["cooldown"], pool["until"], pool["probing"]) == (False, None, True)
    with pytest.raises(NotFound, match="there is no pool 'antropic'"):
        projects.show_pool(office.desk, "antropic")


def test_workers_tell_slots_and_whether_they_live(office):
    with office.desk.store.write() as tx:
        tx.put_worker(WorkerRow("box", "host", 2, ("gpu",), NOON))
        tx.put_worker(WorkerRow("gone", "other", 4, (), NOON - 10 * MINUTE))
    office.add({"id": "a"})
    office.lease(1)
    box, gone = projects.list_workers(office.desk)["workers"]
    assert (box["live"], box["free"], box["tasks"], box["labels"]) == (True, 3, ["a"], ["gpu"])
    office.policy("caps.all = 9")  # this machine's own slots follow it
    assert projects.show_worker(office.desk, "box")["worker"]["slots"] == 9
    assert (gone["live"], gone["free"], gone["tasks"]) == (False, 4, [])
    assert projects.show_worker(office.desk, "gone")["worker"] == gone
