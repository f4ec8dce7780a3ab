"""Importing through the command line: what people read, what programs read, exit codes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.commands import fairlane

pytestmark = pytest.mark.slow  # each call is a process

ENTRY = {"repo": "/srv/site", "appId": "site", "enqueuedAt": "2026-01-30T08:00:00Z"}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """Three tasks; the second needs the first, the third is over."""
    file = tmp_path / "tasks.jsonl"
    rows = [
        {"id": "web-1", "title": "Fix the login form"},
        {"id": "web-2", "title": "Write the page", "depends_on": ["web-1"]},
        {"id": "web-3", "title": "Old", "status": "done"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_a_dry_run_shows_exactly_what_the_import_then_does(home, tasks):
    before = home.ask("status") and home.dump()
    told = home.ask("import", "jsonl", tasks, "--dry-run")
    assert home.dump() == before
    done = home.ask("import", "jsonl", tasks)
    assert told | {"dry_run": False, "import": 1} == done
    assert [row["id"] for row in done["created"]] == ["web-1", "web-2"]
    after = home.dump()
    again = home.ask("import", "jsonl", tasks)
    assert again["unchanged"] == ["web-1", "web-2"]
    assert home.dump() == after
    assert home.lease().keys() == {"web-1"}


def test_what_people_read(home, tasks):
    shown = home.run("import", "jsonl", tasks)
    assert shown.code == 0
    assert shown.out == (
        f"jsonl {tasks}: 2 tasks created, 1 left out\n"
        "  new in default: web-1, web-2\n"
        "  left out: web-3 (its status is done)\n"
        "  To take it back: fairlane undo 1\n"
    )
    home.lease()
    text = tasks.read_text().replace("Fix", "Mend").replace("Write", "Draw")
    tasks.write_text(text + '{"id": "web-4", "needs": ["x"], "title": "T"}\n{bad\n')
    shown = home.run("import", "jsonl", tasks, "--group", "spring")
    assert shown.out == (
        f"jsonl {tasks}: 1 task created, 1 changed, 2 left out, 1 in conflict\n"
        "  new in default: web-4\n"
        "  changed: web-2 (title)\n"
        "  waits for its source: web-4 (needs x, which is not imported)\n"
        "  left as it is: web-1 (title changed in jsonl, but it has started (it is leased))\n"
        "  left out: tasks.jsonl:5 (not JSON: Expecting property name enclosed in double quotes:"
        " line 1\n    column 2 (char 1))\n"
        "  left out: web-3 (its status is done)\n"
        "  new groups: spring\n"
        "  To take it back: fairlane undo 2\n"
    )
    words = home.run("undo", 2, "--dry-run").out.split()  # lines break where the path lets them
    assert " ".join(words) == f"import 2 (jsonl {tasks}): 1 task would be canceled: web-4"
    words = home.run("undo", 1).out.split()
    assert " ".join(words) == (
        f"import 1 (jsonl {tasks}): 1 task canceled: web-2 "
        "goes on: web-1 (it has started (it is leased))"
    )


def test_a_record_without_an_id_is_named_by_its_place(home, tmp_path):
    file = tmp_path / "beads.json"
    file.write_text(json.dumps([{"title": "Lost"}, *({"id": f"hq-{n}"} for n in range(12))]))
    shown = home.run("import", "beads", file)
    assert f"  left out: {file}, bead 1 (it has no id)" in shown.out.replace("\n    ", " ")
    assert shown.out.endswith("  … and 3 more left out; --json names them\n")


def test_where_nothing_is_found_that_is_said(home, tmp_path):
    shown = home.run("import", "cards", tmp_path)
    assert shown.out == f"cards {tmp_path}: no task created, there is nothing of its kind\n"


def test_exit_codes_say_what_happened(home, tasks, tmp_path):
    assert home.error("import", "jsnl", tasks, code=2)["code"] == "unknown_source"
    assert home.error("import", "jsonl", tmp_path / "no", code=2)["code"] == "unreadable"
    assert home.error("import", "jsonl", tasks, "web-9")["code"] == "unknown_item"
    assert home.error("import", "jsonl", tasks, "web-3")["code"] == "closed_item"
    assert home.error("import", "jsonl", tasks, "--project", "nope")["code"] == "unknown_project"
    assert home.error("import", "jsonl", tasks, "--group", "a b", code=2)["code"] == "invalid"
    assert (
        "nothing can be written back"
        in home.error("import", "jsonl", tasks, "--write-back")["message"]
    )
    assert home.error("undo")["code"] == "unknown_import"
    home.policy("balanced", "caps.all=0", "backpressure.soft=0", "backpressure.hard=0")
    error = home.error("import", "jsonl", tasks, code=75)
    assert (error["code"], error["message"]) == (
        "deferred",
        "deferred: the queue is full: hard limit 0",
    )
    with tasks.open("a") as more:
        more.write("{bad\n")
    assert home.error("import", "jsonl", tasks, "--strict", code=2)["code"] == "bad_records"
    assert home.tasks() == {}


def test_what_there_is_no_room_for_is_named_and_comes_in_later(home, tasks):
    home.policy("balanced", "caps.all=1", "backpressure.soft=0", "backpressure.hard=0")
    said = home.run("import", "jsonl", tasks)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"jsonl {tasks}: 1 task created, 1 left out, 1 deferred\n")
    assert "  deferred: web-2 (the queue is full: hard limit 0)\n" in said.out
    home.ask("complete", home.lease()["web-1"])
    answer = home.ask("import", "jsonl", tasks)
    assert ([row["id"] for row in answer["created"]], answer["deferred"]) == (["web-2"], [])


def test_an_old_queue_file_imports_and_plans_and_stays_as_it_is(home, tmp_path):
    file = tmp_path / "queue.json"
    orders = {"c": 50, "a": 10, "b": 10, "d": 100}
    entries = [ENTRY | {"id": name, "priority": number} for name, number in orders.items()]
    file.write_text(json.dumps({"schemaVersion": 1, "entries": entries}))
    before = file.read_bytes()
    home.policy("fail-closed", "caps.all=2")
    home.ask("import", "queue.json", file)
    assert home.picks() == ["a", "b"]
    assert home.picks() == ["a", "b"]
    assert file.read_bytes() == before


def test_an_unreadable_queue_file_changes_nothing(tmp_path):
    file = tmp_path / "queue.json"
    file.write_text("{ not a queue")
    said = fairlane("--home", tmp_path / "home", "--json", "import", "queue.json", file)
    assert (said.code, said.err) == (2, "")
    assert list(said.document) == ["schema", "error"]
    assert file.read_text() == "{ not a queue"


def test_a_queue_file_is_told_when_asked(home, tmp_path):
    file = tmp_path / "queue.json"
    new = ENTRY | {"id": "q-1", "priority": 5, "status": "ready", "attempts": 0}
    file.write_text(
        json.dumps({"schemaVersion": 1, "entries": [new, new | {"id": "q-2"}]}, indent=2)
    )
    assert home.ask("import", "queue.json", file, "--write-back")["written"] == []
    lease = home.lease("--limit", 1)["q-1"]
    home.ask("import", "queue.json", file)
    assert json.loads(file.read_text())["entries"][0] == new
    home.ask("import", "queue.json", file, "--write-back")
    assert json.loads(file.read_text())["entries"][0]["status"] == "leased"
    home.ask("complete", lease)
    home.ask("import", "queue.json", file, "--write-back")
    first, second = json.loads(file.read_text())["entries"]
    assert (first["status"], second["status"]) == ("drained", "ready")


def test_standard_input_is_a_source_too(tmp_path):
    home = tmp_path / "home"
    text = '{"id": "x", "command": ["true"]}\n'
    said = fairlane("--home", home, "--json", "import", "jsonl", "-", text=text)
    assert said.document["path"] == "-"
    assert [row["id"] for row in said.document["created"]] == ["x"]
    said = fairlane("--home", home, "--json", "import", "jsonl", "-", text=text)
    assert said.document["unchanged"] == ["x"]


def test_in_direct_mode_what_is_imported_starts_at_once(home, tmp_path):
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"id": "x", "command": ["true"]}\n')
    home.policy("balanced", "capacity.mode=direct")
    [note] = home.ask("import", "jsonl", file, "--dry-run")["notes"]
    assert "what is ready would start at once" in note
    assert home.tasks() == {}
    [note] = home.ask("import", "jsonl", file)["notes"]
    assert "what is ready starts at once" in note
    assert home.task("x")["attempts"] == 1


def test_an_item_with_another_projects_prefix_comes_in_by_force_and_can_be_changed(home, tmp_path):
    home.ask("project", "add", "web", "--prefix", "web-")
    home.ask("project", "add", "api")
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"id": "web-1", "title": "T", "project": "api"}\n')
    [left] = home.ask("import", "jsonl", file)["skipped"]
    assert left["reason"].endswith("it cannot be added to api; --force imports it")
    home.ask("import", "jsonl", file, "--force")
    home.ask("edit", "web-1", "--priority", "5")
    file.write_text('{"id": "web-1", "title": "Other", "project": "api"}\n')
    document = home.ask("import", "jsonl", file)
    assert document["changed"] == [{"id": "web-1", "fields": ["title"]}]
    task = home.task("web-1")
    assert (task["project"], task["priority"], task["title"]) == ("api", 5, "Other")
    home.ask("project", "add", "docs")
    assert home.error("edit", "web-1", "--project", "docs")["code"] == "foreign_prefix"


def test_broken_records_and_boxes_without_an_id_are_named_with_their_line(home, tmp_path):
    file = tmp_path / "tasks.md"
    lines = ("## Phase 1: Setup", "- [ ] T001 Set up", "- [ ]T002 Run", "- [ ] Tell the team")
    file.write_text("\n".join(lines))
    shown = " ".join(home.run("import", "spec-kit", file).out.split())
    assert f"left out: - [ ]T002 Run, {file}:3 (not of the form" in shown
    assert f"left out: - [ ] Tell the team, {file}:4 (it has no id" in shown


def test_many_processes_import_the_same_once(tmp_path):
    file, home = tmp_path / "tasks.jsonl", tmp_path / "home"
    file.write_text("".join(f'{{"id": "w{at}", "title": "T"}}\n' for at in range(200)))
    fairlane("--home", home, "status")
    words = ("--home", home, "--json", "import", "jsonl", file)
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda _: fairlane(*words), range(4)))
    assert [each.code for each in said] == [0] * 4
    counts = sorted(len(each.document["created"]) for each in said)
    assert counts == [0, 0, 0, 200]
    assert sorted(len(each.document["unchanged"]) for each in said) == [0, 200, 200, 200]
