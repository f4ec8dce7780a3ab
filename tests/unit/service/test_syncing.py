"""Sync: configured sources are followed; one that cannot be asked changes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane.model.errors import Invalid, NotFound
from fairlane.model.instant import MINUTE
from fairlane.service import explain
from fairlane.service.reports import listing, status
from fairlane.service.sync import syncing
from tests import holder
from tests.unit.contexts import TestContext


class Backlog:
    """A home with one file of tasks as its source."""

    def __init__(self, home: Path, *rules: dict[str, Any]) -> None:
        self.file = home / "tasks.jsonl"
        rules = rules or ({"type": "jsonl", "path": "tasks.jsonl"},)
        self.office = TestContext(home, {"source": list(rules)})

    def has(self, *rows: dict[str, Any]) -> None:
        lines = [json.dumps({"prompt": "go", "agent": "shell"} | row) for row in rows]
        self.file.write_text("".join(f"{line}\n" for line in lines))

    def sync(self, **wish: Any) -> Any:
        return syncing.sync(self.office.context, **wish)

    def row(self, **wish: Any) -> dict[str, Any]:
        (row,) = self.sync(**wish)["sources"]
        found: dict[str, Any] = row
        return found

    def statuses(self) -> dict[str, str]:
        rows = listing.list_tasks(self.office.context)["tasks"]
        return {row["id"]: row["status"] for row in rows}

    def events(self) -> list[str]:
        with self.office.context.store.read() as reading:
            return [each.kind for each in reading.events() if each.kind.startswith("source")]


@pytest.fixture
def backlog(tmp_path: Path) -> Backlog:
    return Backlog(tmp_path)


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]


def test_a_closed_or_removed_item_cancels_what_has_not_started(backlog: Backlog) -> None:
    backlog.has({"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"})
    assert names(backlog.row()["created"]) == ["a", "b", "c", "d"]
    taken = holder.lease(backlog.office.context, 1, "w", ())["leases"][0]["task"]
    assert taken == "a"
    backlog.has({"id": "b", "status": "done"}, {"id": "d"})
    row = backlog.row()
    assert names(row["canceled"]) == ["b", "c"]
    assert names(row["conflicts"]) == ["a"]  # it runs: a person decides
    (shown,) = status.status(backlog.office.context)["warnings"]
    assert shown["message"].endswith("a: gone from jsonl, but it has started (it is leased)")
    assert backlog.statuses() == {"a": "leased", "b": "canceled", "c": "canceled", "d": "queued"}
    assert backlog.row()["canceled"] == []


def test_a_dry_run_shows_what_follows_and_leaves_no_trace(backlog: Backlog) -> None:
    backlog.has({"id": "a"})
    before = backlog.row(dry_run=True)
    assert names(before["created"]) == ["a"]
    assert backlog.statuses() == {}
    assert syncing.configured(backlog.office.context)[0].key.endswith("tasks.jsonl")
    with backlog.office.context.store.read() as reading:
        assert reading.mark().version == 0
    assert names(backlog.row()["created"]) == ["a"]


def test_a_source_that_cannot_be_asked_changes_nothing_and_is_a_warning(backlog: Backlog) -> None:
    backlog.has({"id": "a"})
    backlog.sync()
    backlog.file.unlink()
    document = backlog.sync()
    path = str(backlog.file)
    assert document["sources"][0]["error"]["code"] == "unreadable"
    text = f"source jsonl {path} cannot be asked: {path}: cannot be read: No such file or directory"
    assert document["warnings"] == [text]
    assert backlog.statuses() == {"a": "queued"}
    shown = status.status(backlog.office.context)["warnings"]
    assert shown == [{"code": "source", "message": f"{text} (2026-01-30T12:00:00Z)"}]
    backlog.sync()
    assert backlog.events() == ["source_failed"]  # once
    backlog.has({"id": "a"})
    assert backlog.sync()["warnings"] == []
    assert backlog.events() == ["source_failed", "source_healthy"]
    assert status.status(backlog.office.context)["warnings"] == []


def test_what_a_source_has_parked_is_parked_until_it_is_free(tmp_path: Path) -> None:
    backlog = Backlog(tmp_path, {"type": "queue.json", "path": "queue.json"})

    def has(**more: Any) -> None:
        entry = {"id": "q-1", "repo": "/r", "status": "pending", **more}
        document = {"schemaVersion": 1, "entries": [entry]}
        (tmp_path / "queue.json").write_text(json.dumps(document))

    has(status="parked", parkedReason="waits for legal")
    row = backlog.row()
    assert row["parked"] == [{"id": "q-1", "reason": "waits for legal"}]
    assert backlog.statuses() == {"q-1": "parked"}
    has()
    assert names(backlog.row()["changed"]) == ["q-1"]
    assert explain.why(backlog.office.context, "q-1")["holds"] == []
    assert backlog.statuses() == {"q-1": "queued"}


def test_one_source_is_named_by_its_type_or_path(tmp_path: Path) -> None:
    rules = [{"type": "jsonl", "path": path} for path in ("tasks.jsonl", "more.jsonl")]
    backlog = Backlog(tmp_path, *rules)
    backlog.has({"id": "a"})
    (tmp_path / "more.jsonl").write_text('{"id": "m", "prompt": "go", "agent": "shell"}\n')
    assert backlog.row(only="more.jsonl")["path"] == str(tmp_path / "more.jsonl")
    assert backlog.statuses() == {"m": "queued"}
    assert len(backlog.sync(only="jsonl")["sources"]) == 2
    with pytest.raises(NotFound, match="no source 'jsnl' is configured") as caught:
        backlog.sync(only="jsnl")
    assert caught.value.hint == "Did you mean 'jsonl'?"


def test_nothing_is_configured(tmp_path: Path) -> None:
    office = TestContext(tmp_path)
    document = syncing.sync(office.context)
    assert document == {"schema": "fairlane/1", "dry_run": False, "sources": [], "warnings": []}
    with pytest.raises(NotFound) as caught:
        syncing.sync(office.context, "cards")
    assert caught.value.hint == "Add a [[source]] to fairlane.toml in the home folder."


def test_what_reads_files_can_be_fed_by_a_program(tmp_path: Path) -> None:
    good = 'print(\'{"id": "p", "prompt": "go", "agent": "shell"}\')'
    backlog = Backlog(tmp_path, {"type": "jsonl", "command": [sys.executable, "-c", good]})
    assert names(backlog.row()["created"]) == ["p"]
    bad = "import sys; sys.exit('the tracker is down')"
    broken = Backlog(tmp_path, {"type": "jsonl", "command": [sys.executable, "-c", bad]})
    assert broken.row()["error"]["message"] == f"{sys.executable}: the tracker is down"


def test_an_unknown_source_or_project_is_that_sources_error(tmp_path: Path) -> None:
    rules = [
        {"type": "jsonl", "path": "tasks.jsonl", "project": "nobody"},
        {"type": "jsnl", "path": "tasks.jsonl"},
        {"type": "jsonl", "path": "tasks.jsonl"},
    ]
    backlog = Backlog(tmp_path, *rules)
    backlog.has({"id": "a"})
    first, second, third = backlog.sync()["sources"]
    assert "nobody" in first["error"]["message"]
    assert second["error"]["hint"] == "Did you mean 'jsonl'?"
    assert names(third["created"]) == ["a"]


def test_a_broken_policy_refuses_everything(backlog: Backlog) -> None:
    backlog.has({"id": "a"})
    backlog.office.policy("nonsense = 1\n")
    with pytest.raises(Invalid, match="nonsense"):
        backlog.sync()


def test_write_back_comes_with_sync_when_asked(tmp_path: Path) -> None:
    backlog = Backlog(tmp_path, {"type": "cards", "path": "cards"})
    card = tmp_path / "cards" / "a.md"
    card.parent.mkdir()
    card.write_text("---\nagent_flow: code\nagent_status: idle\n---\n# A\n")
    backlog.sync()
    assert "idle" in card.read_text()
    assert backlog.row(dry_run=True, write_back=True)["written"] == ["a"]
    assert "idle" in card.read_text()
    assert backlog.row(write_back=True)["written"] == ["a"]
    assert "agent_status: queued" in card.read_text()
    assert backlog.row(write_back=True)["written"] == []
    assert backlog.statuses() == {"a": "queued"}  # what it said itself is no news


def test_what_cannot_be_told_is_a_warning(backlog: Backlog) -> None:
    backlog.has({"id": "a"})
    document = backlog.sync(write_back=True)
    path = backlog.file
    assert document["warnings"] == [
        f"source jsonl {path} cannot be told: nothing can be written back to jsonl"
    ]
    assert backlog.statuses() == {"a": "queued"}


def test_the_same_result_is_noted_once_a_minute(backlog: Backlog) -> None:
    def version() -> int:
        with backlog.office.context.store.read() as reading:
            return reading.mark().version

    backlog.has({"id": "a"})
    backlog.sync()
    backlog.sync()
    before = version()
    backlog.sync()
    assert version() == before
    backlog.office.wait(2 * MINUTE)
    backlog.sync()
    assert version() > before


def test_a_broken_record_that_may_be_any_item_keeps_all_that_is_missing(backlog: Backlog) -> None:
    backlog.has({"id": "a"}, {"id": "b"})
    backlog.row()
    backlog.has({"id": "a"})
    with backlog.file.open("a") as file:
        file.write('{"id": "b", \n')
    row = backlog.row()
    reason = "not in jsonl, unless tasks.jsonl:2 is it: mend that"
    assert row["conflicts"] == [{"id": "b", "reason": reason}]
    assert backlog.statuses() == {"a": "queued", "b": "queued"}
    (shown,) = status.status(backlog.office.context)["warnings"]
    assert shown["message"] == f"source jsonl {backlog.file}: b: {reason}"
    backlog.has({"id": "a"})
    assert names(backlog.row()["canceled"]) == ["b"]


def test_a_broken_card_keeps_no_other_card(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text("---\nagent_flow: implement\n---\n# Go\n")
    cards = Backlog(tmp_path, {"type": "cards", "path": "project"})
    cards.row()
    (folder / "a.md").write_text("---\nagent_flow: [\n---\n")
    (folder / "odd.md").write_text("---\nagent_flow: [\n---\n")
    (folder / "b.md").unlink()
    assert names(cards.row()["canceled"]) == ["b"]
    assert cards.statuses() == {"a": "queued", "b": "canceled", "c": "queued"}


def test_a_file_that_is_empty_changes_nothing(backlog: Backlog) -> None:
    backlog.has({"id": "a"})
    backlog.row()
    backlog.file.write_text("")
    assert backlog.row()["error"]["message"].endswith(
        "tasks.jsonl is empty; it may be being written"
    )
    assert backlog.statuses() == {"a": "queued"}
    backlog.has({"id": "b"})
    assert names(backlog.row()["canceled"]) == ["a"]
