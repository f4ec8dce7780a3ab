"""Sling contexts: what was scheduled in Gas Town is scheduled here, with all that it was given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.intake.sources import beads
from fairlane.intake.sources.base import Where
from fairlane.model.instant import SECOND, show_instant
from fairlane.model.task import Task
from fairlane.service import projects, tasks
from fairlane.service.sync import importing
from fairlane.service.sync.importing import ImportOptions
from tests.conformance.samples.beads import bead, calls, edges, stand_in
from tests.unit.contexts import TestContext

pytestmark = pytest.mark.slow


def sling(work: str, status: str = "open", why: str = "", **fields: Any) -> dict[str, Any]:
    """A sling context, as Gas Town writes it."""
    said = {"version": 1, "work_bead_id": work, "target_rig": "web", **fields}
    closed = {"status": status, "close_reason": why} if status != "open" else {}
    name = f"gt-ctx-{work}-{len(why)}{len(fields)}"
    return bead(
        name, f"sling-context: {work}", description=json.dumps(said), ephemeral=True,
        labels=["gt:sling-context"], dependencies=edges(name, work, sort="tracks"), **closed,
    )  # fmt: skip


class Town:
    """A list of beads that is imported."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.office = folder, TestContext(folder)
        self.where = Where(folder / "issues.jsonl")
        projects.add_project(self.office.context, "web", {"prefix": "gt-"})

    def bring(self, *rows: dict[str, Any], ids: tuple[str, ...] = (), **more: Any) -> Any:
        assert self.where.path is not None
        self.where.path.write_text("\r\n".join(map(json.dumps, rows)) + "\r\n")
        options = ImportOptions(ids=ids, **more)
        return importing.bring_in(self.office.context, "beads", self.where, options)

    def task(self, name: str) -> Task:
        with self.office.context.store.read() as reading:
            return reading.tasks([name])[name]


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]


def test_a_slung_bead_comes_with_everything(town: Town) -> None:
    when = town.office.context.now() - 600 * SECOND
    context = sling(
        "gt-abc", formula="mol-polecat-work", args="Keep it small.",
        vars="topic=login\nnoise\n a = b=c", enqueued_at=show_instant(when), merge="direct",
        convoy="hq-cv-1", base_branch="dev", account="work", agent="codex", hook_raw_bead=True,
        owned=True, mode="ralph",
        dispatch_failures=2, last_failure="no session", posting="scout", mood="fine",
    )  # fmt: skip
    answer = town.bring(bead("gt-abc", "Login form", description="Write it."), context)
    assert (names(answer["created"]), answer["skipped"], answer["parked"]) == (["gt-abc"], [], [])
    task = town.task("gt-abc")
    assert task.prompt == "Login form\n\nWrite it.\n\nInstructions:\nKeep it small."
    assert (task.project, task.agent, task.base, task.merge) == ("web", "codex", "dev", "merge")
    assert (task.created_at, task.ready_since, task.failures) == (when, when, 2)
    assert (dict(task.vars), task.group) == ({"topic": "login", "a": "b=c"}, "hq-cv-1")
    assert task.meta["sling"] == {
        "context": context["id"], "formula": "mol-polecat-work", "account": "work", "mode": "ralph",
        "hook_raw_bead": True, "owned": True, "convoy": "hq-cv-1", "posting": "scout",
        "merge": "direct", "vars": ["noise"], "mood": "fine",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "merge"),
    [
        ({"merge": "direct"}, "merge"), ({"merge": "mr"}, "merge"), ({"merge": "local"}, "keep"),
        ({"merge": "mr", "no_merge": True}, "keep"), ({}, "keep"), ({"merge": "later"}, "keep"),
    ],
)  # fmt: skip
def test_merge_strategies(town: Town, fields: dict[str, Any], merge: str) -> None:
    town.bring(bead("gt-abc", "x"), sling("gt-abc", **fields))
    assert town.task("gt-abc").merge == merge


def test_what_nobody_slung_comes_only_when_it_is_named(town: Town) -> None:
    rows = [bead("gt-abc", "x"), bead("gt-def", "y"), sling("gt-abc")]
    answer = town.bring(*rows)
    assert names(answer["created"]) == ["gt-abc"]
    assert [(row["id"], row["reason"]) for row in answer["skipped"]] == [
        ("gt-def", "it is not slung; to import it, name it")
    ]
    assert names(town.bring(*rows, ids=("gt-def",))["created"]) == ["gt-def"]
    assert town.bring(*rows, sync=True)["canceled"] == [], "what was named stays"


def test_where_nothing_was_ever_slung_every_open_bead_is_work(town: Town) -> None:
    assert names(town.bring(bead("gt-abc", "x"), bead("gt-def", "y"))["created"]) == [
        "gt-abc", "gt-def",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("dispatched", "it was dispatched and is open again; to import it, name it"),
        ("dispatch-close-failed", "it was dispatched and is open again; to import it, name it"),
        ("cleared", "it was cleared; to import it, name it"),
        ("stale-work-bead", "it was unscheduled (stale-work-bead); to import it, name it"),
    ],
)
def test_a_closed_context_schedules_nothing(town: Town, why: str, reason: str) -> None:
    answer = town.bring(bead("gt-abc", "x"), sling("gt-abc", "closed", why))
    assert (answer["created"], answer["skipped"][0]["reason"]) == ([], reason)


def test_what_was_dispatched_and_runs_is_taken(town: Town) -> None:
    rows = [
        bead("gt-abc", "x", "hooked", assignee="toast"),
        sling("gt-abc", "closed", "dispatched"),
    ]
    answer = town.bring(*rows)
    assert answer["skipped"][0]["reason"].startswith("hooked by toast")


@pytest.mark.parametrize(
    ("status", "why", "failures"), [("closed", "circuit-broken", 3), ("open", "", 3)]
)
def test_what_is_broken_is_parked_and_retry_brings_it_back(
    town: Town, status: str, why: str, failures: int
) -> None:
    fields = {"dispatch_failures": failures, "last_failure": "no tmux", "base_branch": "dev"}
    answer = town.bring(bead("gt-abc", "x"), sling("gt-abc", status, why, **fields))
    assert answer["parked"] == [{"id": "gt-abc", "reason": "circuit-broken: no tmux"}]
    task = town.task("gt-abc")
    assert (task.status, task.failures, task.base) == ("parked", 3, "dev")
    tasks.retry(town.office.context, ["gt-abc"])
    assert (town.task("gt-abc").status, town.task("gt-abc").failures) == ("queued", 0)


def test_what_is_slung_again_is_scheduled_again(town: Town) -> None:
    broken = sling("gt-abc", "closed", "circuit-broken", dispatch_failures=3, last_failure="e")
    town.bring(bead("gt-abc", "x"), broken)
    town.bring(bead("gt-abc", "x"), broken, sling("gt-abc"), sync=True)
    assert town.task("gt-abc").status == "queued"


def test_sync_follows_the_scheduler_there(town: Town) -> None:
    rows = [bead("gt-abc", "x"), bead("gt-def", "y"), sling("gt-abc")]
    town.bring(*rows, sync=True)
    later = town.bring(*rows, sling("gt-def"), sync=True)
    assert names(later["created"]) == ["gt-def"]
    broken = sling("gt-def", "closed", "circuit-broken", dispatch_failures=3, last_failure="e")
    answer = town.bring(*rows, broken, sync=True)
    assert answer["changed"] == [{"id": "gt-def", "fields": ["status"]}]
    assert town.task("gt-def").reason == "circuit-broken: e"
    over = [bead("gt-abc", "x", "closed"), bead("gt-def", "y", "closed")]
    assert set(names(town.bring(*over, sync=True)["canceled"])) == {"gt-abc", "gt-def"}


def test_of_two_open_contexts_the_older_counts(town: Town) -> None:
    now = town.office.context.now()
    first = sling("gt-abc", enqueued_at=show_instant(now - 60 * SECOND), base_branch="first")
    later = sling("gt-abc", enqueued_at=show_instant(now), base_branch="later", owned=True)
    town.bring(bead("gt-abc", "x"), later, first)
    assert town.task("gt-abc").base == "first"


def test_a_blocked_one_waits_though_it_is_slung(town: Town) -> None:
    rows = [bead("gt-a", "x"), bead("gt-b", "y", dependencies=edges("gt-b", "gt-a"))]
    town.bring(*rows, sling("gt-a"), sling("gt-b"))
    assert town.task("gt-b").needs == ("gt-a",)
    assert [row["task"] for row in town.office.lease()] == ["gt-a"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "description: not JSON"),
        ("[]", "description: not a table"),
        ('{"version": 2, "work_bead_id": "gt-abc"}', "version 2 is not known"),
        ('{"version": 1, "work_bead_id": "gt-abc", "agent": 7}', "agent: not text: 7"),
        ('{"work_bead_id": "gt-abc", "enqueued_at": "soon"}', "enqueued_at: not a time: 'soon'"),
    ],
)
def test_a_context_that_cannot_be_read_is_named(town: Town, text: str, reason: str) -> None:
    broken = sling("gt-abc") | {"id": "gt-ctx", "description": text}
    answer = town.bring(bead("gt-abc", "x"), bead("gt-def", "y"), sling("gt-def"), broken)
    assert names(answer["created"]) == ["gt-def"]
    said = {row["id"]: row["reason"] for row in answer["skipped"]}
    assert reason in said["gt-ctx"]
    assert "not slung" in said["gt-abc"]


def test_a_context_without_its_bead_is_named(town: Town) -> None:
    rows = [sling("gt-gone"), sling("gt-over", "closed", "dispatched"), sling("ap-far")]
    answer = town.bring(bead("gt-abc", "x"), *rows)
    said = [row["reason"] for row in answer["skipped"]]
    assert "its bead gt-gone is not in the list" in said
    assert answer["notes"] == ["Slung, but in no list that was read: ap-far."]


def test_a_rig_that_is_no_project_is_named_with_its_command(town: Town) -> None:
    answer = town.bring(bead("sh-abc", "x"), sling("sh-abc", target_rig="shop"))
    (row,) = answer["skipped"]
    assert "there is no project 'shop'" in row["reason"]
    assert "fairlane project add shop" in row["reason"]


def test_an_agent_that_is_not_known_holds_its_task_and_is_said(town: Town) -> None:
    answer = town.bring(bead("gt-abc", "x"), sling("gt-abc", agent="amp"))
    assert town.task("gt-abc").agent == "amp"
    assert any("gt-abc: agent amp is not known here" in note for note in answer["notes"])


def test_members_of_the_town_itself_are_named(town: Town) -> None:
    convoy = bead(
        "hq-cv-1", "All", issue_type="convoy",
        dependencies=edges("hq-cv-1", "gt-abc", "hq-note", "hq-far", sort="tracks"),
    )  # fmt: skip
    rows = [convoy, bead("gt-abc", "x"), bead("gt-def", "y"), bead("hq-note", "z")]
    answer = town.bring(*rows, ids=("hq-cv-1",))
    assert names(answer["created"]) == ["gt-abc"]
    assert {row["id"]: row["reason"] for row in answer["skipped"]} == dict.fromkeys(
        ("hq-note", "hq-far"), "hq- beads belong to the town itself; they are not work"
    )


def test_contexts_are_asked_of_bd_too(tmp_path: Path) -> None:
    rows = [
        bead("gt-abc", "x"), bead("gt-def", "y"), bead("gt-ghi", "z"), sling("gt-abc"),
        sling("gt-def", "closed", "circuit-broken", last_failure="e"),
    ]  # fmt: skip
    found = beads.read(Where(command=stand_in(tmp_path, rows)))
    assert {item.id: (item.parked, bool(item.unasked)) for item in found.items} == {
        "gt-abc": ("", False), "gt-def": ("circuit-broken: e", False), "gt-ghi": ("", True),
    }  # fmt: skip


def test_contexts_of_the_town_above_are_asked_for_too(tmp_path: Path) -> None:
    rig = tmp_path / "town" / "web"
    (tmp_path / "town" / "mayor").mkdir(parents=True)
    (tmp_path / "town" / "mayor" / "town.json").write_text("{}")
    rig.mkdir()
    command = stand_in(tmp_path, [bead("gt-abc", "x"), sling("gt-abc")])
    found = beads.read(Where(rig, command=command))
    assert [item.id for item in found.items] == ["gt-abc"]
    asked = [call[1] for call in calls(tmp_path) if "--label" in call]
    assert asked == [str(rig), str(tmp_path / "town")]


def test_equal_ones_go_by_the_id_of_their_context(town: Town) -> None:
    when = show_instant(town.office.context.now() - 60 * SECOND)
    last, first = sling("gt-a", enqueued_at=when), sling("gt-b", enqueued_at=when)
    rows = [last | {"id": "gt-ctx-2"}, first | {"id": "gt-ctx-1"}]
    town.bring(bead("gt-a", "x"), bead("gt-b", "y"), *rows)
    assert [row["task"] for row in town.office.lease()] == ["gt-b", "gt-a"]


KEYS = (
    "version", "work_bead_id", "target_rig", "formula", "args", "vars", "enqueued_at", "merge",
    "convoy", "base_branch", "no_merge", "account", "agent", "hook_raw_bead", "owned", "mode",
    "dispatch_failures", "last_failure", "else",
)  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(("web", "gt-abc", "../up", "2026-01-30T12:00:00Z", "-x", "\x1b[31m", "a=b"))
)  # fmt: skip
JUNK = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3), max_leaves=4)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(KEYS), JUNK), st.booleans())
def test_whatever_a_context_holds_nothing_vanishes(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any], closed: bool
) -> None:
    town = Town(tmp_path_factory.mktemp("town"))
    context = sling("gt-abc") | {"description": json.dumps({"work_bead_id": "gt-abc", **fields})}
    more = {"status": "closed", "close_reason": "circuit-broken"} if closed else {}
    answer = town.bring(bead("gt-abc", "x"), context | more)
    named = {row["id"] for key in ("created", "skipped") for row in answer[key]}
    assert "gt-abc" in named
