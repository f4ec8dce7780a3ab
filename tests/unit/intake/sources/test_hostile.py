"""Lists of work that were made to break an import, or what is written into them."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from fairlane.intake import atomic_write
from fairlane.intake.sources import source_named
from fairlane.intake.sources.base import Found, Where, Writable, WriteBack
from fairlane.model.errors import FairlaneError, Refused, TryLater

pytestmark = pytest.mark.slow

#: Nothing here takes a second; what grows with the square of its input takes minutes.
SOON = pytest.mark.timeout(60)


def read(source: str, path: Path, text: str) -> Found:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return source_named(source).read(Where(path=path))


def tasks_md(count: int, words: str = "") -> str:
    return "\n".join(f"- [ ] T{number} {words}task" for number in range(count))


@SOON
@pytest.mark.parametrize(
    "text",
    [
        f"- [ ] T1 a, depends on T{'1' * 5000}-T2",
        f"##{' ' * 50_000}x{' #' * 50_000}y\n- [ ] T1 a",
        f"- [ ] T1 a depends on {'T1 , ' * 20_000}!",
    ],
)
def test_a_line_of_spec_kit_is_read_in_time(tmp_path: Path, text: str) -> None:
    assert len(read("spec-kit", tmp_path / "f" / "tasks.md", text).items) == 1


@SOON
def test_a_feature_with_too_many_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="more than 2,000 tasks"):
        read("spec-kit", tmp_path / "f" / "tasks.md", tasks_md(20_000))


@SOON
@pytest.mark.parametrize("text", [f"# x{' #' * 400_000}y", "# #", f"{' ' * 400_000}x"])
def test_a_heading_of_a_card_is_read_in_time(tmp_path: Path, text: str) -> None:
    page = f"---\nagent_flow: code\n---\n{text}\n"
    (item,) = read("cards", tmp_path / "phase-1" / "backlog" / "c.md", page).items
    assert item.record["title"]


@SOON
@pytest.mark.parametrize("text", ["<!--" * 100_000, f"{' ' * 400_000}x"])
def test_a_comment_of_a_backlog_page_is_read_in_time(tmp_path: Path, text: str) -> None:
    page = f"---\nid: task-1\ntitle: t\nstatus: To Do\n---\n{text}\n"
    assert read("backlog", tmp_path / "backlog" / "tasks" / "task-1 - t.md", page).items


@SOON
def test_many_subtasks_are_read_in_time(tmp_path: Path) -> None:
    subtasks = [{"id": n, "title": "s", "status": "done"} for n in range(1, 20_000)]
    whole = {"id": 1, "title": "w", "subtasks": subtasks}
    others = [{"id": n, "title": "o", "dependencies": [1]} for n in range(2, 3_000)]
    text = json.dumps({"master": {"tasks": [whole, *others]}})
    assert read("taskmaster", tmp_path / "tasks.json", text).items


@SOON
def test_beads_one_in_another_are_read_in_time(tmp_path: Path) -> None:
    rows = [{"id": f"gt-{n}", "title": "t", "parent": f"gt-{n - 1}"} for n in range(1, 8_000)]
    found = read("beads", tmp_path / "issues.jsonl", "\n".join(map(json.dumps, rows)))
    assert len(found.items) == len(rows)


FACTS = {
    "attempts": 1, "failures": 0, "lease": None, "lease_expires_at": None, "backoff_until": None,
}  # fmt: skip
QUEUE = '{"entries":[{"id":"other","x":1.50,"big":1e400},{"id":"a"%s}]}'


def done(source: str, path: Path, *names: str) -> list[str]:
    writable = source_named(source)
    assert isinstance(writable, Writable)
    updates = [WriteBack(name, "t", "done", 10**15, facts=FACTS) for name in names]
    return writable.write(Where(path=path), updates)


@pytest.mark.parametrize(
    ("source", "file", "item"),
    [
        ("queue.json", "queue.json", "a"),
        ("taskmaster", "tasks.json", "1"),
        ("cards", "phase-1/backlog/a.md", "phase-1/a"),
    ],
)
def test_a_file_that_became_a_pipe_is_not_waited_for(
    tmp_path: Path, source: str, file: str, item: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / file)
    given = tmp_path if source == "cards" else tmp_path / file
    with pytest.raises(Refused, match="a pipe"):
        done(source, given, item)


def test_a_folder_that_another_program_locks_is_not_waited_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_write, "LOCK_SECONDS", 0.1)
    (tmp_path / "queue.json").write_text(QUEUE % "")
    holder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(TryLater, match="locked by another program"):
            done("queue.json", tmp_path / "queue.json", "a")
    finally:
        os.close(holder)
    assert done("queue.json", tmp_path / "queue.json", "a") == ["a"]


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("more", ["", ',"half":"\\ud800","whole":"\u00e9"', ',"n":[]'])
def test_every_byte_of_another_entry_is_kept(tmp_path: Path, start: str, more: str) -> None:
    file = tmp_path / "queue.json"
    file.write_text(start + QUEUE % more)
    assert done("queue.json", file, "a") == ["a"]
    text = file.read_text()
    assert text.startswith(start + '{"entries":[{"id":"other","x":1.50,"big":1e400},{"id":"a"')
    assert json.loads(text.removeprefix(start))["entries"][1]["status"] == "drained"


@pytest.mark.parametrize("text", [QUEUE % ',"x":1e400', "\udcff"])
def test_what_no_program_could_read_afterwards_is_not_written(tmp_path: Path, text: str) -> None:
    file = tmp_path / "queue.json"
    file.write_bytes(before := text.encode(errors="surrogateescape"))
    with pytest.raises(FairlaneError):
        done("queue.json", file, "a")
    assert file.read_bytes() == before


def test_a_list_in_a_folder_is_not_written_through_a_link_that_leads_out(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text(before := '{"tasks":[{"id":1,"title":"x","status":"pending"}]}')
    (tmp_path / "project" / "tasks").mkdir(parents=True)
    (tmp_path / "project" / "tasks" / "tasks.json").symlink_to(outside)
    with pytest.raises(Refused, match="leads out"):
        done("taskmaster", tmp_path / "project", "1")
    assert outside.read_text() == before
    assert done("taskmaster", tmp_path / "project" / "tasks" / "tasks.json", "1") == ["1"]


@SOON
def test_many_subtasks_are_told_in_time(tmp_path: Path) -> None:
    subtasks = [{"id": n, "title": "s", "status": "pending"} for n in range(10_000)]
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps({"tasks": [{"id": 1, "title": "w", "subtasks": subtasks}]}))
    assert len(done("taskmaster", file, *(f"1.{n}" for n in range(1_000)))) == 1_000
    assert json.loads(file.read_text())["tasks"][0]["status"] == "in-progress"
