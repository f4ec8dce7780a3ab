"""Beads: what a list of them tells, and what `bd` is told.

`bd` cannot be run here. A small stand-in prints the documented JSON and records its arguments.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlane.intake.sources import beads
from fairlane.intake.sources.base import (
    Collection,
    Found,
    Item,
    Standing,
    Where,
    Writable,
    WriteBack,
)
from fairlane.model.errors import Invalid, Refused, TryLater
from fairlane.service.sync.importing import ImportOptions, bring_in
from tests.conformance.samples.beads import bead, calls, edges, known, stand_in


def read(*rows: dict[str, Any]) -> Found:
    return beads.read(Where(text=json.dumps(rows)))


def only(*rows: dict[str, Any]) -> Item:
    return read(*rows).items[0]


def told(status: str, last: str | None = None, reason: str = "") -> WriteBack:
    return WriteBack("gt-abc", "gt-abc", status, 0, reason, {"told": last})


def test_a_bead_becomes_an_item():
    row = bead(
        "gt-abc", "Fix the login", priority=0, issue_type="bug", description="It hangs.",
        design="As drawn.", acceptance_criteria="It does not.", notes="Ask Ann.", owner="ann",
        labels=["web"], assignee="bob", defer_until="2026-02-01T00:00:00.123456789+01:00",
    )  # fmt: skip
    item = only(row)
    assert item.record == {
        "title": "Fix the login",
        "prompt": "Fix the login\n\nIt hangs.\n\nDesign:\nAs drawn.\n\n"
        "Acceptance criteria:\nIt does not.\n\nNotes:\nAsk Ann.",
        "priority": 0,
        "meta": {"type": "bug", "labels": ["web"], "owner": "ann"},
        "not_before": "2026-01-31T23:00:00.123456Z",
    }
    assert (item.id, item.standing, item.where) == ("gt-abc", Standing.OPEN, "-, bead 1")


@pytest.mark.parametrize(
    ("given", "becomes"), [(0, 0), (1, 50), (2, 100), (3, 150), (4, 200), ("P1", 50)]
)
def test_a_priority_of_two_is_the_usual_one(given, becomes):
    assert only(bead("a-1", "x", priority=given)).record["priority"] == becomes


@pytest.mark.parametrize(
    "text",
    [
        '[{"id": "a-1"}, {"id": "a-2"}]',
        '{"schema_version": 1, "data": [{"id": "a-1"}, {"id": "a-2"}]}',
        '{"id": "a-1"}\n\n{"id": "a-2"}\n',
    ],
)
def test_every_shape_of_a_list_is_read(text):
    assert [item.id for item in beads.read(Where(text=text)).items] == ["a-1", "a-2"]


@pytest.mark.parametrize("text", ["", "[]", "null", '{"data": null}'])
def test_a_list_of_none_is_empty(text):
    assert beads.read(Where(text=text)) == Found()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1,", "-: not JSON: "),
        ("nothing here", "-: not JSON: "),
        ('{"error": "no database"}', "-: not a list of beads"),
        ("7", "-: not a list of beads"),
    ],
)
def test_what_is_no_list_is_refused(text, message):
    with pytest.raises(Invalid) as caught:
        beads.read(Where(text=text))
    assert caught.value.message.startswith(message)
    assert caught.value.hint.startswith("Give a folder with .beads in it")


def test_a_bad_record_is_named_and_the_others_are_read(tmp_path):
    file = tmp_path / "issues.jsonl"
    lines = ['{"id": "a-1"}', "{broken", '{"title": "x"}', '{"id": "--help"}', '{"id": "a-1"}',
             '{"id": "a-2", "priority": 9}', '{"id": "a-3", "defer_until": "soon"}', "7",
             '{"id": "a-4", "dependencies": [{}]}']  # fmt: skip
    file.write_text("\n".join(lines))
    found = beads.read(Where(file))
    assert [item.id for item in found.items] == ["a-1"]
    assert [(each.id, each.reason, each.where.rpartition(":")[2]) for each in found.left_out] == [
        ("?", "not a record: '{broken'", "2"),
        ("?", "it has no id", "3"),
        ("--help", "id: not a bead's: '--help'", "4"),
        ("a-1", "its id appears twice", "5"),
        ("?", "not a record: 7", "8"),
        ("a-4", "it has no id", "9"),
        ("a-2", "priority: 9 is none of 0 to 4", "6"),
        ("a-3", "not a time: 'soon'", "7"),
    ]
    assert all(each.bad for each in found.left_out)


@pytest.mark.parametrize(
    ("more", "standing", "why", "blocked"),
    [
        ({}, Standing.OPEN, "", ""),
        ({"status": "in_progress", "assignee": "ann"}, Standing.TAKEN, "in_progress by ann", ""),
        ({"status": "hooked"}, Standing.TAKEN, "hooked", ""),
        ({"status": "pinned"}, Standing.TAKEN, "pinned", ""),
        ({"pinned": True}, Standing.TAKEN, "pinned", ""),
        ({"status": "closed", "close_reason": "fixed"}, Standing.CLOSED, "fixed", ""),
        ({"status": "blocked"}, Standing.OPEN, "", "its status is blocked"),
        ({"status": "deferred"}, Standing.OPEN, "", "its status is deferred"),
        (
            {"status": "deferred", "defer_until": "2026-02-01T00:00:00Z"},
            Standing.OPEN, "", "deferred until 2026-02-01T00:00:00Z",
        ),
        ({"status": "in_review"}, Standing.OPEN, "", "its status is in_review"),
    ],
)  # fmt: skip
def test_what_a_status_says(more, standing, why, blocked):
    item = only(bead("a-1", "x", **more))
    assert (item.standing, item.why, item.blocked) == (standing, why, blocked)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"issue_type": "message"}, "a message is not work"),
        ({"issue_type": "gate"}, "a gate is not work"),
        ({"labels": ["gt:slot"]}, "a slot is not work"),
        ({"id": "hq-1"}, "hq- beads belong to the town itself; they are not work"),
        ({"is_template": True}, "it is a template"),
        ({"ephemeral": True}, "it is ephemeral"),
    ],
)
def test_what_is_no_work_is_left_out_by_name(more, reason):
    found = read(bead("a-1", "x") | more)
    assert found.items == ()
    assert [(each.reason, each.bad) for each in found.left_out] == [(reason, False)]
    assert read(bead("a-1", "x") | more | {"status": "closed"}).left_out == ()


def test_what_blocks_comes_first_and_what_is_closed_does_not_count():
    item = only(
        bead("a-1", "x", dependencies=[
            *edges("a-1", "a-2", "a-3", "a-gone"), *edges("a-1", "a-4", sort="waits-for"),
            *edges("a-1", "a-5", sort="related"), *edges("a-6", "a-1"),
            {"id": "b-7", "title": "of another place", "dependency_type": "blocks"},
        ]),
        bead("a-2", "x"), bead("a-3", "x", "closed"), bead("a-4", "x"), bead("a-5", "x"),
        bead("a-6", "x"),
    )  # fmt: skip
    assert (item.needs, item.blocked) == (("a-2", "a-4", "b-7"), "")


def test_what_cannot_be_a_need_is_told():
    item = only(
        bead("a-1", "x", dependencies=[
            *edges("a-1", "a-2"), *edges("a-1", "a-3", sort="conditional-blocks"),
        ]),
        bead("a-2", "x", issue_type="gate"), bead("a-3", "x"),
    )  # fmt: skip
    assert (item.needs, item.blocked) == ((), "waits for the gate a-2; runs only if a-3 fails")


def part(name: str, of: str, **more: Any) -> dict[str, Any]:
    more["dependencies"] = edges(name, of, sort="parent-child") + more.get("dependencies", [])
    return bead(name, name, **more)


def test_epics_are_groups_in_groups_and_never_parents():
    found = read(
        bead("a-e", "The  whole", issue_type="epic"),
        part("a-f", "a-e", issue_type="epic"),
        part("a-1", "a-f"),
        part("a-2", "a-1"),
        bead("a-3", "x", parent="a-e"),
    )
    assert found.collections == (
        Collection("a-e", "a-e", "The whole"),
        Collection("a-f", "a-f", "a-f", "a-e"),
    )
    assert [(each.id, each.group) for each in found.items] == [
        ("a-1", "a-f"), ("a-2", "a-f"), ("a-3", "a-e"),
    ]  # fmt: skip
    assert not any("parent" in each.record for each in found.items)


def test_a_convoy_is_the_group_of_what_it_tracks_unless_an_epic_is():
    found = read(
        bead("hq-cv-x", "Convoy", issue_type="convoy", dependencies=[
            *edges("hq-cv-x", "a-1", "external:rig:a-e", "a-2", sort="tracks"),
        ]),
        bead("a-e", "Epic", issue_type="epic"),
        bead("a-1", "x"),
        part("a-2", "a-e"),
        bead("hq-cv-y", "By label", labels=["gt:convoy"]),
    )  # fmt: skip
    assert [(each.id, each.group, each.also) for each in found.items] == [
        ("a-1", "hq-cv-x", ()), ("a-2", "a-e", ("hq-cv-x",)),
    ]  # fmt: skip
    parents = {each.id: each.parent for each in found.collections}
    assert parents == {"hq-cv-x": None, "a-e": "hq-cv-x", "hq-cv-y": None}


def test_a_convoy_stands_for_all_it_tracks_though_some_is_in_epics(office):
    rows = [
        bead("hq-cv-x", "Convoy", issue_type="convoy", dependencies=[
            *edges("hq-cv-x", "a-1", "a-2", sort="tracks"),
        ]),
        bead("a-e", "Epic", issue_type="epic"),
        bead("a-1", "x"),
        part("a-2", "a-e"),
        part("a-3", "a-e"),
    ]  # fmt: skip
    where = Where(text=json.dumps(rows))
    answer = bring_in(office.context, "beads", where, ImportOptions(ids=("hq-cv-x",)))
    assert {each["id"]: each["group"] for each in answer["created"]} == {
        "a-1": "hq-cv-x", "a-2": "a-e",
    }  # fmt: skip


def test_parts_wait_for_what_their_epic_waits_for():
    found = read(
        bead("a-e", "Epic", issue_type="epic", dependencies=edges("a-e", "a-f", "a-9")),
        part("a-1", "a-e"),
        bead("a-f", "Epic", issue_type="epic"),
        part("a-2", "a-f"),
        part("a-3", "a-f", status="closed"),
        bead("a-9", "x"),
    )
    assert {each.id: each.needs for each in found.items} == {
        "a-1": ("a-2", "a-9"), "a-2": (), "a-3": (), "a-9": (),
    }  # fmt: skip


def test_parts_that_go_round_in_a_circle_are_in_no_group():
    found = read(part("a-e", "a-f", issue_type="epic"), part("a-f", "a-e", issue_type="epic"),
                 part("a-1", "a-1"))  # fmt: skip
    assert [each.parent for each in found.collections] == [None, None]
    assert found.items[0].group is None


def test_bd_is_asked_for_all_and_for_what_is_ready(tmp_path):
    rows = [
        bead("gt-a", "x"),
        bead("gt-b", "x", dependencies=edges("gt-b", "xy-far")),
        bead("gt-c", "x", dependencies=edges("gt-c", "gt-a")),
        bead("gt-d", "x", "open", dependencies=edges("gt-d", "gt-z")),
        bead("gt-z", "x", "closed"),
        bead("gt-f", "x", dependencies=edges("gt-f", "gt-old")),
    ]
    command = stand_in(tmp_path, rows)
    found = beads.read(Where(tmp_path, command=command))
    assert [call[2:] for call in calls(tmp_path)] == [
        ["list", "--json", "--limit", "0"], ["ready", "--json", "--limit", "0"],
        ["list", "--json", "--limit", "0", "--label", "gt:sling-context", "--all"],
    ]  # fmt: skip
    assert calls(tmp_path)[0][1] == str(tmp_path)
    assert {each.id: (each.needs, each.blocked) for each in found.items} == {
        "gt-a": ((), ""),
        "gt-b": (("xy-far",), ""),
        "gt-c": (("gt-a",), ""),
        "gt-d": ((), ""),
        "gt-f": ((), "bd ready does not list it"),
    }


def test_the_envelope_is_the_users_own_choice(tmp_path, monkeypatch):
    command = stand_in(tmp_path, [bead("gt-a", "x")])
    bare = beads.read(Where(command=command))
    monkeypatch.setenv("BD_JSON_ENVELOPE", "1")
    assert beads.read(Where(command=command)) == bare


def test_a_whole_question_is_asked_as_it_is(tmp_path):
    command = (*stand_in(tmp_path, [bead("gt-abc", "x")]), "ready", "--json")
    assert [item.id for item in beads.read(Where(command=command)).items] == ["gt-abc"]
    assert beads.write(Where(command=command), [told("leased")]) == ["gt-abc"]
    assert [call[2:] for call in calls(tmp_path)] == [
        ["ready", "--json"], ["show", "gt-abc", "--json"], ["update", "gt-abc", "--claim"],
    ]  # fmt: skip


def test_an_export_is_read_without_bd(tmp_path):
    folder = tmp_path / ".beads"
    folder.mkdir()
    (folder / "issues.jsonl").write_text('{"id": "a-1"}\n')
    assert beads.read(Where(folder)).items == beads.read(Where(folder / "issues.jsonl")).items


def test_without_bd_one_is_told_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TryLater, match="bd cannot be started: No such file") as caught:
        beads.read(Where(tmp_path))
    assert caught.value.hint == "Install bd, or give a file instead."


def test_a_bd_that_fails_is_asked_another_time():
    with pytest.raises(TryLater) as caught:
        beads.read(Where(command=("sh", "-c", "echo no database >&2; exit 1")))
    assert caught.value.message.endswith("list --json --limit 0: no database")
    assert caught.value.hint.endswith("or give a file that it printed.")


def test_a_bd_that_hangs_is_ended():
    with pytest.raises(TryLater, match=r"did not answer within 0\.2 s"):
        beads.read(Where(command=("sh", "-c", "sleep 60"), seconds=0.2))


def test_a_bead_is_claimed_and_closed_and_nothing_else(tmp_path):
    assert isinstance(beads, Writable)
    row = bead("gt-abc", "x", description="As it is.")
    where = Where(tmp_path, command=stand_in(tmp_path, [row]))
    last = None
    for status in ("queued", "leased", "running", "queued", "running", "done"):
        wrote = beads.write(where, [told(status, last)])
        assert wrote == (
            ["gt-abc"] if (status, last) in (("leased", "queued"), ("done", "running")) else []
        )
        assert beads.write(where, [told(status, last)]) == []
        last = status
    reason = "Done by Fairlane as task gt-abc"
    assert [call for call in calls(tmp_path) if call[2] != "show"] == [
        ["fairlane", str(tmp_path), "update", "gt-abc", "--claim"],
        ["fairlane", str(tmp_path), "close", "gt-abc", "--reason", reason],
    ]
    told_of = {"status": "closed", "assignee": "fairlane", "close_reason": reason}
    assert known(tmp_path)["gt-abc"] == row | told_of


@pytest.mark.parametrize("status", ["parked", "canceled", "queued"])
def test_of_all_else_beads_is_told_nothing(tmp_path, status):
    where = Where(command=stand_in(tmp_path, [bead("gt-abc", "x")]))
    assert beads.write(where, [told(status, "running")]) == []
    assert not (tmp_path / "calls.jsonl").exists()


@pytest.mark.parametrize(
    "more",
    [{"status": "in_progress", "assignee": "ann"}, {"status": "closed"}, {"status": "hooked"}],
)
@pytest.mark.parametrize("status", ["leased", "done"])
def test_what_others_took_or_closed_stays(tmp_path, more, status):
    row = bead("gt-abc", "x", **more)
    assert beads.write(Where(command=stand_in(tmp_path, [row])), [told(status)]) == []
    assert known(tmp_path)["gt-abc"] == row


def test_a_bead_that_cannot_be_told_is_named(tmp_path):
    where = Where(command=stand_in(tmp_path, [bead("gt-x", "x")]))
    with pytest.raises(Refused, match="bd show gt-abc: Error: no issue found") as caught:
        beads.write(where, [told("leased")])
    assert caught.value.hint == "It is told again at the next sync."


def test_a_mere_file_cannot_be_told(tmp_path: Path):
    file = tmp_path / "list.json"
    file.write_text("[]")
    with pytest.raises(Refused, match="is a file: nothing can be told to it"):
        beads.write(Where(file), [told("leased")])
