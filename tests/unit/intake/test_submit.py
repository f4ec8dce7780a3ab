"""Tasks come in by the rules of the model, all of them or none."""

from __future__ import annotations

import pytest

from fairlane.intake.fields import parse_jsonl
from fairlane.model.errors import Invalid, NotFound, Refused
from fairlane.service import projects, tasks
from fairlane.service.groups import add_group
from fairlane.service.reports import listing
from fairlane.service.reports.groups import list_groups
from tests import holder
from tests.unit.contexts import NOON, TestContext, hold_code


def show(office, name):
    return listing.show(office.context, name)["task"]


def refusal(office, *records, kind=Refused, **options):
    """The error of an add that must leave no trace."""
    before = office.count()
    with pytest.raises(kind) as refused:
        office.add(*records, **options)
    assert office.count() == before
    return refused.value


def test_the_answer_is_exact(office):
    assert tasks.add(office.context, [{"id": "a"}]) == {
        "schema": "fairlane/1",
        "tasks": [{"id": "a", "created": True, "status": "queued", "position": 1}],
        "deferred": False,
    }


def test_ids_are_generated_and_never_one_that_exists(office):
    office.add({"id": "t2"})
    rows = office.add({"prompt": "x"}, {"prompt": "y"}, {"id": "t4"}, {})
    assert [row["id"] for row in rows] == ["t1", "t3", "t4", "t5"]


def test_seq_grows_in_the_order_of_the_records(office):
    office.add({"id": "z"}, {"id": "a"})
    assert show(office, "z")["seq"] < show(office, "a")["seq"]


def test_a_known_id_changes_nothing(office):
    office.add({"id": "a", "prompt": "first"})
    row = office.add({"id": "a", "prompt": "second", "project": "nowhere"})[0]
    assert row == {"id": "a", "created": False, "status": "queued", "position": None}
    assert show(office, "a")["prompt"] == "first"


def test_an_id_twice_in_one_call_is_one_task(office):
    rows = office.add({"id": "a"}, {"id": "a"})
    assert [row["created"] for row in rows] == [True, False]
    assert office.count() == 1


def test_again_puts_back_what_is_done_or_canceled(office):
    office.add({"id": "a"}, {"id": "b"}, {"id": "c"})
    office.finish(office.lease(1)[0]["lease"])
    tasks.cancel(office.context, ["b"])
    rows = office.add({"id": "a"}, {"id": "b"}, {"id": "c"}, again=True)
    assert [(row["created"], row["status"]) for row in rows] == [(False, "queued")] * 3
    assert office.status_of("a", "b", "c") == ["queued"] * 3
    assert show(office, "a")["attempts"] == 1


def test_without_again_a_done_task_is_returned_as_it_is(office):
    office.add({"id": "a"})
    office.finish(office.lease()[0]["lease"])
    assert office.add({"id": "a"})[0]["status"] == "done"


def test_an_unknown_project_is_named_with_the_nearest(office):
    projects.add_project(office.context, "website")
    error = refusal(office, {"id": "a"}, {"project": "websit"}, kind=NotFound)
    assert error.message == "task 2: there is no project 'websit'"
    assert error.hint == "Did you mean 'website'? To add it: fairlane project add websit."
    assert error.exit_code == 1


def test_an_archived_project_takes_no_work(office):
    projects.add_project(office.context, "old", {"status": "archived"})
    assert refusal(office, {"project": "old"}).message == "project old is archived"


def test_a_prefix_belongs_to_its_project(office):
    projects.add_project(office.context, "web", {"prefix": "web-"})
    error = refusal(office, {"id": "web-1", "project": "default"})
    assert error.message == (
        "web-1 begins with 'web-', the prefix of project web; it cannot be added to default"
    )
    assert "--force" in error.hint
    office.add({"id": "web-1", "project": "default"}, force=True)
    assert show(office, "web-1")["project"] == "default"
    office.add({"id": "web-2"})
    assert show(office, "web-2")["project"] == "web"


def test_a_missing_need_or_parent_is_refused(office):
    office.add({"id": "alpha"})
    error = refusal(office, {"id": "b", "needs": ["alpha", "x"]})
    assert error.message == "b needs 'x', which is not known"
    assert error.exit_code == 1
    error = refusal(office, {"id": "b", "parent": "x"})
    assert error.message == "the parent of b, 'x', is not known"
    error = refusal(office, {"id": "beta"}, {"id": "c", "needs": ["betta"]})
    assert error.message.startswith("task 2: c needs 'betta'")
    assert error.hint == "Did you mean 'beta'?"


def test_a_later_line_may_be_needed(office):
    office.add({"id": "a", "needs": ["b"]}, {"id": "b"})
    assert [lease["task"] for lease in office.lease()] == ["b"]


@pytest.mark.parametrize(
    ("records", "way"),
    [
        ([{"id": "a", "needs": ["a"]}], "a → a"),
        ([{"id": "a", "parent": "a"}], "a → a"),
        ([{"id": "a", "needs": ["b"]}, {"id": "b", "needs": ["a"]}], "a → b → a"),
        (
            [{"id": "x", "needs": ["a"]}, {"id": "a", "needs": ["b"]}, {"id": "b", "parent": "a"}],
            "a → b → a",
        ),
    ],
)
def test_a_cycle_is_refused(office, records, way):
    assert refusal(office, *records).message.endswith(f"a cycle: {way}")


def test_a_diamond_is_no_cycle(office):
    needs = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    office.add(*({"id": name, "needs": each} for name, each in needs.items()))
    assert office.count() == 4


def test_depth_is_the_number_of_ancestors(office):
    office.add({"id": "plan"}, {"id": "spec", "parent": "plan"})
    office.add({"id": "code", "parent": "phase"}, {"id": "phase", "parent": "spec"})
    depths = [show(office, name)["depth"] for name in ("plan", "spec", "phase", "code")]
    assert depths == [0, 1, 2, 3]


def test_an_attempt_may_add_so_many_children(office):
    office.policy("limits.children = 2\nlimits.depth = 2")
    office.add({"id": "p"})
    office.add(*({"parent": "p"} for _ in range(3)))  # nobody runs it: a person may add more
    office.lease(1)
    error = refusal(office, {"parent": "p"})
    assert error.message.endswith("an attempt of p may add 2 children (limits.children)")
    assert error.error_code == "limit"


def test_an_attempt_may_add_so_deep(office):
    office.policy("limits.depth = 2")
    office.add({"id": "p"})
    office.lease(1)
    office.add({"id": "c", "parent": "p"}, {"id": "d", "parent": "c"})
    error = refusal(office, {"id": "e", "parent": "p"}, {"id": "f", "parent": "e"}, {"parent": "f"})
    assert "would be 3 deep (limits.depth is 2)" in error.message


def test_agent_and_pool_follow_from_the_project(tmp_path):
    office = TestContext(tmp_path, {"agent": "codex", "agents": {"mine": {"pool": "house"}}})
    projects.add_project(office.context, "web", {"agent": "claude"})
    office.add({"id": "a"}, {"id": "b", "project": "web"}, {"id": "c", "agent": "mine"})
    office.add({"id": "d", "command": ["true"]}, {"id": "e", "agent": "nobody"})
    office.add({"id": "f", "agent": "claude", "pool": "second"})
    found = [(show(office, name)["agent"], show(office, name)["pool"]) for name in "abcdef"]
    assert found == [
        ("codex", "openai"),
        ("claude", "anthropic"),
        ("mine", "house"),
        ("shell", None),
        ("nobody", None),
        ("claude", "second"),
    ]


def test_where_nobody_names_an_agent_it_is_claude_with_its_pool(office):
    office.add({"id": "a"}, {"id": "b", "command": ["true"]})
    found = [(show(office, name)["agent"], show(office, name)["pool"]) for name in "ab"]
    assert found == [("claude", "anthropic"), ("shell", None)]
    holder.release(office.context, office.lease(1)[0]["lease"], "throttled")
    assert hold_code(listing.show(office.context, "a")) == "cooldown"


def test_an_unknown_agent_is_accepted_and_held(office):
    office.add({"id": "a", "agent": "nobody"})
    assert hold_code(listing.show(office.context, "a")) == "unknown_agent"


def test_a_group_is_made_on_first_use_and_lends_its_priority(office):
    add_group(office.context, "g", priority=7)
    office.add({"id": "a"}, {"id": "b", "priority": 3}, group="g")
    office.add({"id": "c", "group": "new"})
    assert [show(office, name)["priority"] for name in "abc"] == [7, 3, 100]
    names = [row["name"] for row in list_groups(office.context)["groups"]]
    assert names == ["g", "new"]


def test_a_workspace_must_be_declared_where_any_is(office):
    projects.add_project(office.context, "web", {"workspaces": ["main", "side"]})
    error = refusal(office, {"project": "web", "workspace": "mian"}, kind=NotFound)
    assert error.message == "project web has no workspace 'mian'"
    assert error.hint == "Did you mean 'main'?"
    office.add({"workspace": "anything"}, {"project": "web", "workspace": "side"})


def test_chain_makes_each_need_the_one_before(office):
    office.add({"id": "a"}, {"prompt": "x"}, {"id": "c", "needs": ["a"]}, chain=True)
    assert [need["id"] for need in listing.show(office.context, "t1")["needs"]] == ["a"]
    assert [need["id"] for need in listing.show(office.context, "c")["needs"]] == ["a", "t1"]


def test_one_bad_line_among_many_is_named_and_nothing_is_added(office):
    lines = [f'{{"id": "x{number}"}}' for number in range(10_000)]
    lines[7_654] = '{"id": "x7654", "priority": "high"}'
    with pytest.raises(Invalid) as refused:
        tasks.add(office.context, parse_jsonl("\n".join(lines), "f.jsonl"))
    assert refused.value.message == "f.jsonl:7655: priority: not a whole number: 'high'"
    assert office.count() == 0


def test_a_dry_run_leaves_no_trace_not_even_a_counter(office):
    answer = tasks.add(office.context, [{"prompt": "x", "group": "g"}], dry_run=True)
    assert answer["dry_run"] is True
    assert answer["tasks"][0]["id"] == "t1"
    assert office.count() == 0
    assert list_groups(office.context)["groups"] == []
    assert office.add({})[0]["id"] == "t1"


def test_a_broken_policy_accepts_nothing(office):
    office.policy("caps.al = 4")
    assert refusal(office, {"id": "a"}, kind=Invalid).exit_code == 2


def test_not_before_waits_until_its_time(office):
    office.add({"id": "a", "not_before": "2026-01-30T12:01:00Z"}, {"id": "b", "not_before": NOON})
    assert show(office, "a")["hold"]["code"] == "not_before"
    assert [lease["task"] for lease in office.lease()] == ["b"]
    office.wait(60_000_000)
    assert [lease["task"] for lease in office.lease()] == ["a"]


def test_every_task_has_its_own_event(office):
    office.add({"id": "a"}, {"id": "b"})
    events = [event for name in "ab" for event in listing.show(office.context, name)["events"]]
    assert [(event["kind"], event["task"], event["data"]) for event in events] == [
        ("added", "a", {"by": "ann"}),
        ("added", "b", {"by": "ann"}),
    ]


def test_position_is_the_place_among_the_ready_of_its_project(office):
    office.add({"id": "a"}, {"id": "b", "priority": 50}, {"id": "w", "needs": ["a"]})
    rows = office.add({"id": "c", "priority": 70}, {"id": "d"})
    assert [row["position"] for row in rows] == [2, 4]
    projects.add_project(office.context, "web")
    assert office.add({"project": "web"})[0]["position"] == 1
    assert office.add({"id": "x", "needs": ["a"]})[0]["position"] is None


def test_positions_beyond_a_hundred_are_not_told(office):
    office.add(*({} for _ in range(100)))
    assert office.add({})[0]["position"] is None
