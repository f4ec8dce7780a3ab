"""Importing: what a source has becomes tasks, and what has started is left as it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlane.intake.sources.base import Collection, Found, Item, LeftOut, Standing, Where
from fairlane.model.errors import Invalid, NotFound, Refused
from fairlane.model.instant import SECOND
from fairlane.model.project import Group
from fairlane.service import projects, tasks
from fairlane.service.reports import listing
from fairlane.service.sync.importing import ImportOptions, apply
from fairlane.service.sync.mapping import live_entries, source_key
from tests.unit.contexts import NOON, TestContext

WHERE = Where(Path("/backlog/list"))


def item(name: str, *needs: str, **values: Any) -> Item:
    """An open item; what an `Item` has beside its record is given by name."""
    apart = {"standing", "blocked", "group", "why", "failures"} & values.keys()
    beside = {key: values.pop(key) for key in apart}
    return Item(
        name, {"title": f"Do {name}", **values}, needs=needs, where=f"list:{name}", **beside
    )


def bring(office: TestContext, *items: Item, found: Found | None = None, **wishes: Any) -> Any:
    """Import items of one source."""
    whole = replace(found or Found(), items=items)
    return apply(office.context, "list", WHERE, whole, ImportOptions(**wishes))


def task(office: TestContext, name: str) -> Any:
    with office.context.store.read() as reading:
        return reading.task(name)


def hold(office: TestContext, name: str) -> str:
    """The code of what a task waits for."""
    with office.context.store.read() as reading:
        placed = reading.placed(name)
    assert placed is not None
    return placed.wait


def created(answer: dict[str, Any]) -> list[str]:
    return [row["id"] for row in answer["created"]]


def skipped(answer: dict[str, Any]) -> dict[str, str]:
    return {row["id"]: row["reason"] for row in answer["skipped"]}


def conflicts(answer: dict[str, Any]) -> dict[str, str]:
    return {row["id"]: row["reason"] for row in answer["conflicts"]}


# Names


def test_ids_that_are_no_names_are_mapped_and_kept(office):
    long = "x" * 300
    answer = bring(
        office, item("a b"), item("..", title="dots"), item("a/b"), item(long), item("a-b")
    )
    ids = created(answer)
    assert ids[4] == "a-b", "a proper name is nobody else's"
    assert ids[0].startswith("a-b-")
    assert ids[2].startswith("a-b-")
    assert ids[1].startswith("item-")
    assert len(set(ids)) == 5
    assert len(ids[3]) <= 128
    assert task(office, ids[0]).meta == {"source": "list", "source_id": "a b"}
    again = bring(office, item("a/b"), item("a b"), item("a-b"))
    assert again["unchanged"] == [ids[2], ids[0], "a-b"]


def test_an_id_that_the_source_proposes_is_used(office):
    bring(office, item("12", id="web-12"))
    assert task(office, "web-12").meta["source_id"] == "12"


def test_an_item_that_appears_twice_counts_once(office):
    answer = bring(office, item("a"), item("a", title="other"))
    assert skipped(answer) == {"a": "a appears twice; the first counts"}
    assert task(office, "a").title == "Do a"


def test_a_task_of_another_origin_is_left_alone(office):
    office.add({"id": "a", "prompt": "mine"})
    answer = bring(office, item("a"), item("b", "a"))
    assert conflicts(answer) == {"a": "there is a task a that did not come from here"}
    assert task(office, "a").prompt == "mine"
    assert task(office, "b").needs == ("a",)


def test_a_task_that_came_from_another_path_of_the_source_says_so(office):
    bring(office, item("a"))
    elsewhere = Where(Path("/backlog"))
    found = Found((item("a"),))
    answer: Any = apply(office.context, "list", elsewhere, found, ImportOptions())
    assert conflicts(answer) == {"a": "it was imported with another PATH; give that one"}


# Which


def test_taken_and_closed_items_are_left_out(office):
    taken = item("a", standing=Standing.TAKEN, why="ann is at it")
    closed = item("b", standing=Standing.CLOSED)
    answer = bring(office, taken, closed, item("c"))
    assert created(answer) == ["c"]
    assert skipped(answer) == {"a": "ann is at it; --force imports it", "b": "it is closed"}
    assert created(bring(office, taken, closed, item("c"), force=True)) == ["a"]
    assert bring(office, taken, closed, item("c"))["unchanged"] == ["a", "c"]


TREE = Found(
    collections=(
        Collection("E1", "epic-1", "The epic"),
        Collection("P1", "part 1", parent="E1"),
        Collection("E2", "epic-2"),
    )
)


def test_a_collection_stands_for_its_open_members(office):
    members = [
        item("a", group="E1"),
        item("b", group="P1"),
        item("c", group="P1", standing=Standing.CLOSED),
        item("d", group="E2"),
    ]
    answer = bring(office, *members, found=TREE, ids=("E1",))
    assert created(answer) == ["a", "b"]
    assert answer["groups"] == ["epic-1", "part-1"]
    with office.context.store.read() as reading:
        groups = reading.table(Group)
    assert (groups["part-1"].parent, groups["epic-1"].parent) == ("epic-1", None)
    assert groups["epic-1"].title == "The epic"
    assert task(office, "b").group == "part-1"
    assert bring(office, *members, found=TREE, ids=("P1", "d"))["groups"] == ["epic-2"]


def test_groups_go_under_the_one_that_is_asked_for(office):
    found = Found(collections=(Collection("A", "a", parent="B"), Collection("B", "b", parent="A")))
    members = (item("x", group="A"), item("y"), item("z", group="own"))
    answer = bring(office, *members, found=found, group="top")
    assert [row["group"] for row in answer["created"]] == ["a", "top", "own"]
    with office.context.store.read() as reading:
        parents = {name: group.parent for name, group in reading.table(Group).items()}
    assert parents == {"a": "b", "b": None, "top": None, "own": "top"}, "around is not nested"


def test_ids_that_cannot_be_meant_are_refused(office):
    items = (item("web-1"), item("web-2", standing=Standing.CLOSED, why="shipped"))
    with pytest.raises(NotFound, match="there is no item 'web-3' in the source") as refusal:
        bring(office, *items, ids=("web-3",))
    assert refusal.value.hint == "Did you mean 'web-2'?"
    with pytest.raises(Refused, match="web-2 is closed: shipped"):
        bring(office, *items, ids=("web-1", "web-2"))
    empty = bring(office, *items, found=TREE, ids=("E2",))
    assert skipped(empty) == {"E2": "it has no open items"}
    assert office.count() == 0


# Where to


def test_each_goes_to_its_project(office):
    for name, prefix in (("web", "web-"), ("api", "api-"), ("docs", None)):
        projects.add_project(office.context, name, {"prefix": prefix} if prefix else {})
    items = [item("web-1"), item("api-1"), item("x-1"), item("x-2", project="docs")]
    answer = bring(office, *items)
    assert {row["id"]: row["project"] for row in answer["created"]} == {
        "web-1": "web", "api-1": "api", "x-2": "docs",
    }  # fmt: skip
    assert list(skipped(answer)) == ["x-1"]
    assert "x-1 cannot be routed" in skipped(answer)["x-1"]
    assert created(bring(office, *items, project="docs")) == ["x-1"]


def test_a_whole_group_is_routed_member_by_member(office):
    for name in ("web", "api"):
        projects.add_project(office.context, name, {"prefix": f"{name}-"})
    members = [item(name, group="E1") for name in ("web-1", "x-1", "api-1")]
    answer = bring(office, *members, found=TREE, ids=("E1",))
    assert answer["created"] == [
        {"id": "web-1", "project": "web", "group": "epic-1"},
        {"id": "api-1", "project": "api", "group": "epic-1"},
    ]
    assert list(skipped(answer)) == ["x-1"]


def test_another_projects_prefix_is_refused_unless_forced(office):
    projects.add_project(office.context, "web", {"prefix": "web-"})
    projects.add_project(office.context, "api", {})
    answer = bring(office, item("web-1"), item("x"), project="api")
    assert created(answer) == ["x"]
    assert "web-1 begins with 'web-', the prefix of project web" in skipped(answer)["web-1"]
    forced = bring(office, item("web-1"), project="api", force=True)
    assert forced["created"] == [{"id": "web-1", "project": "api", "group": None}]
    with pytest.raises(NotFound, match="there is no project 'aip'"):
        bring(office, item("y"), project="aip")


# What they wait for


def test_what_was_not_asked_for_is_told_only_when_its_wait_has_changed(office):
    items = [item("a", "x", "y"), item("b"), item("x")]
    assert len(bring(office, *items, ids=("a",))["held"]) == 1
    assert bring(office, *items, ids=("b",))["held"] == []
    held = [{"id": "a", "reason": "needs y, which is not imported"}]
    assert bring(office, *items, ids=("x",))["held"] == held


def test_edges_become_needs_or_a_hold(office):
    items = [
        item("a"),
        item("b", "a", "over"),
        item("c", "away"),
        item("d", blocked="blocked by gt-7"),
        item("e", "c", "taken", blocked="deferred"),
        item("over", standing=Standing.CLOSED),
        item("taken", standing=Standing.TAKEN),
    ]
    answer = bring(office, *items)
    assert {row["id"]: row["reason"] for row in answer["held"]} == {
        "c": "needs away, which is not imported",
        "d": "blocked by gt-7",
        "e": "deferred; needs taken, which is not imported",
    }
    assert (task(office, "b").needs, task(office, "e").needs) == (("a",), ("c",))
    assert [hold(office, name) for name in "abcde"] == ["", "needs", "source", "source", "needs"]
    why = listing.show(office.context, "d")["task"]["hold"]
    assert why is not None
    assert (why["code"], why["reason"]) == ("source", "its source holds it: blocked by gt-7")
    again = bring(office, *items)
    assert (again["unchanged"], again["held"]) == (list("abcde"), answer["held"])


def test_what_the_source_frees_is_ready_from_then_on(office):
    bring(office, item("a", blocked="deferred"), item("b"))
    office.wait(60 * SECOND)
    answer = bring(office, item("a"), item("b", blocked="blocked by a"))
    fields = ["source_hold"]
    assert answer["changed"] == [{"id": "a", "fields": fields}, {"id": "b", "fields": fields}]
    assert (hold(office, "a"), hold(office, "b")) == ("", "source")
    assert task(office, "a").ready_since == NOON + 60 * SECOND
    assert task(office, "b").ready_since is None
    assert office.lease(5)[0]["task"] == "a"


def test_what_somebody_else_takes_waits_until_it_is_open_again(office):
    taken = item("a", standing=Standing.TAKEN, why="in_progress by bob")
    bring(office, item("a"))
    answer = bring(office, taken)
    assert answer["held"] == [{"id": "a", "reason": "in_progress by bob"}]
    assert (hold(office, "a"), office.lease(5)) == ("source", [])
    assert bring(office, taken, force=True)["changed"] == [{"id": "a", "fields": ["source_hold"]}]
    assert bring(office, taken)["unchanged"] == ["a"], "it is wanted all the same"
    bring(office, item("a"))
    assert bring(office, taken)["held"], "somebody took it another time"
    bring(office, item("a"))
    assert [row["task"] for row in office.lease(5)] == ["a"]
    assert bring(office, taken)["held"] == [], "that somebody is us"


def test_one_that_was_not_asked_for_is_freed_too(office):
    items = [item("a", "b"), item("b"), item("c")]
    bring(office, *items, ids=("a",))
    assert hold(office, "a") == "source"
    answer = bring(office, items[0], items[1], replace(items[2]), ids=("b",))
    assert created(answer) == ["b"]
    assert answer["changed"] == [{"id": "a", "fields": ["needs", "source_hold"]}]
    assert (hold(office, "a"), task(office, "a").needs) == ("needs", ("b",))


def test_edges_follow_the_source(office):
    bring(office, item("a"), item("b", "a"), item("c"))
    answer = bring(office, item("a", "c"), item("b"), item("c"))
    assert [row["id"] for row in answer["changed"]] == ["a", "b"]
    assert (task(office, "a").needs, task(office, "b").needs) == (("c",), ())
    assert [row["task"] for row in office.lease(5)] == ["b", "c"]


def test_a_cycle_is_named_and_the_rest_comes_in(office):
    answer = bring(office, item("a", "b"), item("b", "a"), item("c", "c"), item("d", "b"))
    assert created(answer) == ["b", "d"]
    assert skipped(answer) == {"a": "a cycle: a → b → a", "c": "a cycle: c → c"}
    assert hold(office, "b") == "source"
    with pytest.raises(Invalid, match="1 bad record: list:x: a cycle: x → y → x"):
        bring(office, item("x", "y"), item("y", "x"), strict=True)


def test_many_cycles_take_few_passes(office):
    """One pass for each would take minutes."""
    pairs = [(f"a{at}", f"b{at}") for at in range(3000)]
    answer = bring(office, *(item(*pair) for pair in pairs), *(item(b, a) for a, b in pairs))
    assert (len(answer["skipped"]), len(answer["created"])) == (3000, 3000)


def test_an_edge_that_leads_around_through_the_store_is_refused(office):
    bring(office, item("a"), item("b"))
    office.add({"id": "mine", "prompt": "p", "needs": ["a"]})
    answer = bring(office, item("a", "mine", title="New"), item("b"))
    assert list(skipped(answer)) == ["a"]
    assert "cycle" in skipped(answer)["a"]
    assert (task(office, "a").needs, task(office, "a").title) == ((), "New")


def test_a_parent_is_an_item_or_a_task(office):
    bring(office, item("the top"), item("b", parent="the top"))
    assert task(office, "b").parent == "the-top"
    assert task(office, "b").depth == 1
    answer = bring(office, item("c", parent="b"), item("d", parent="none"), item("e", parent="d"))
    assert created(answer) == ["c"]
    assert skipped(answer) == {
        "d": "its parent 'none' is not known",
        "e": "its parent 'd' is not known",
    }


# What changed


def test_field_by_field_the_one_who_changed_it_wins(office):
    bring(office, item("a", prompt="one", priority=5, locks=["x"]))
    tasks.edit(office.context, ["a"], {"prompt": "ours"})
    changed = item("a", prompt="theirs", priority=6, title="New", labels=["gpu"])
    answer = bring(office, changed)
    assert answer["changed"] == [{"id": "a", "fields": ["labels", "locks", "priority", "title"]}]
    assert conflicts(answer) == {"a": "prompt changed here and in list; ours stays"}
    now = task(office, "a")
    assert (now.prompt, now.priority, now.title, now.locks) == ("ours", 6, "New", ())
    assert now.labels == ("gpu",)
    tasks.edit(office.context, ["a"], {"prompt": "theirs"})
    assert bring(office, changed)["unchanged"] == ["a"]


def test_a_change_that_breaks_a_rule_is_named(office):
    bring(office, item("a"), item("b"))
    answer = bring(office, item("a", project="nowhere"), item("b", priority="high"))
    assert "there is no project 'nowhere'" in skipped(answer)["a"]
    assert "priority: not a whole number" in skipped(answer)["b"]
    assert (answer["changed"], task(office, "a").project) == ([], "default")
    with pytest.raises(Invalid, match="1 bad record: list:a: there is no project 'nowhere'"):
        bring(office, item("a", project="nowhere"), item("b", title="New"), strict=True)
    assert task(office, "b").title == "Do b"


def test_a_parked_or_waiting_attempt_has_started(office):
    office.policy("retry.max_attempts = 2\n")
    bring(office, item("a"))
    office.fail(office.lease(1)[0]["lease"])
    answer = bring(office, item("a", title="New"))
    assert conflicts(answer) == {"a": "title changed in list, but it has started (it is queued)"}


def test_what_failed_before_counts(office):
    bring(office, item("a", failures=2, not_before="2026-01-30T12:00:10Z"))
    assert (task(office, "a").failures, task(office, "a").attempts) == (2, 0)
    assert hold(office, "a") == "not_before"
    office.wait(10 * SECOND)
    office.fail(office.lease(1)[0]["lease"])
    assert (office.status_of("a"), task(office, "a").reason) == (
        ["parked"], "failed: exit 1 (attempt 3 of 3)",
    )  # fmt: skip


def test_what_is_reset_in_its_source_starts_to_count_anew(office):
    bring(office, item("a", failures=3, blocked="parked: exit 1"))
    answer = bring(office, item("a"))
    assert answer["changed"] == [{"id": "a", "fields": ["source_hold", "failures"]}]
    assert (task(office, "a").failures, hold(office, "a")) == (0, "")
    assert bring(office, item("a"))["unchanged"] == ["a"]


# All or nothing


def test_bad_records_are_skipped_or_refuse_all(office):
    found = Found(left_out=(LeftOut("line 4", "not JSON", "list:4", bad=True),))
    items = (item("a"), item("b", kind="no kind"), item("c", surprise=1))
    with pytest.raises(Invalid, match="3 bad records: list:4: not JSON; list:b: kind") as refusal:
        bring(office, *items, found=found, strict=True)
    assert (refusal.value.error_code, refusal.value.exit_code) == ("bad_records", 2)
    assert office.count() == 0
    answer = bring(office, *items, found=found)
    assert created(answer) == ["a"]
    assert [row["where"] for row in answer["skipped"]] == ["list:4", "list:b", "list:c"]


def test_events_say_where_a_task_came_from(office):
    bring(office, item("a"))
    with office.context.store.read() as reading:
        events = [(event.kind, event.data.get("source")) for event in reading.events()]
    assert events == [("added", "list"), ("imported", "list")]


def test_a_source_is_known_by_its_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert source_key("jsonl", Where(Path("a/../b"))) == f"jsonl:{tmp_path}/b"
    assert source_key("jsonl", Where(text="{}")) == "jsonl:-"
    assert source_key("beads", Where(command=("bd", "-q"))) == "beads:bd -q"
    assert source_key("beads", Where(Path("/x"), command=("bd",))) == "beads:/x bd"


def test_what_is_remembered_can_be_asked(office):
    bring(office, item("a b"))
    with office.context.store.read() as reading:
        assert live_entries(reading, source_key("list", WHERE))["a b"]["task"] == "a-b"


def test_agent_and_pool_follow_what_the_source_says(office):
    found = []
    for said in ({}, {"agent": "codex"}, {}):
        bring(office, item("a", **said))
        found.append((task(office, "a").agent, task(office, "a").pool))
    assert found == [("claude", "anthropic"), ("codex", "openai"), ("claude", "anthropic")]


def test_an_item_with_too_many_needs_keeps_no_other_out(office):
    needed = [f"n{number}" for number in range(1_001)]
    answer = bring(office, *map(item, needed), item("last", *needed), item("after", "last"))
    assert created(answer) == [*needed, "after"]
    assert [row["id"] for row in answer["skipped"]] == ["last"]
    assert "more than 1,000" in answer["skipped"][0]["reason"]
    assert task(office, "after").source_hold == "needs last, which is not imported"
