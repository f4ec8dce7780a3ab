"""task-master, told back: a status changes where it stands, and a parent follows its subtasks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Thread

import pytest

from fairlane.intake.sources import taskmaster
from fairlane.intake.sources.base import Where, WriteBack
from fairlane.intake.trackers import taskmaster_file
from fairlane.model.errors import FairlaneError, Refused, TryLater
from fairlane.model.instant import parse_instant

NOON = parse_instant("2026-01-30T12:00:00Z")
TEXT = """{
  "master": {
    "tasks": [
      { "id": 1, "title": "Ä \\u00e4", "status" : "pending", "dependencies": [ 2,3 ], "n": 1.0e2,
        "updatedAt": "x",
        "subtasks": [
          {"id": 1, "title": "a", "status": "pending"},
          {"id": "1.2", "title": "b"},
          {"id": 3, "title": "c", "status": "pending", "note": "\\"status\\": \\"pending\\""}
        ]
      },
      {"id": "2", "title": "t"}
    ],
    "metadata": {}
  },
  "next": {"tasks": [{"id": 1, "title": "n", "status": "pending"}]}
}"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / ".taskmaster" / "tasks" / "tasks.json"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT, encoding="utf-8")
    return path


def update(item: str, status: str, told: str | None = None) -> WriteBack:
    return WriteBack(item, "t", status, NOON, "", {"told": told})


def tell(file: Path, *updates: WriteBack) -> list[str]:
    return taskmaster.write(Where(file), updates)


def test_a_status_is_all_that_changes(file):
    assert tell(file, update("next:1", "running")) == ["next:1"]
    assert file.read_text() == TEXT.replace(
        '"n", "status": "pending"', '"n", "status": "in-progress"'
    )
    assert tell(file, update("2", "done")) == ["2"]
    assert '{"id": "2", "title": "t","status": "done"}' in file.read_text()
    assert not list(file.parent.glob("*.lock"))


def test_a_byte_order_mark_and_line_ends_stay(file):
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    before = file.read_bytes()
    assert tell(file, update("next:1", "running")) == ["next:1"]
    assert file.read_bytes() == before.replace(
        b'"n", "status": "pending"', b'"n", "status": "in-progress"'
    )


def statuses(file: Path) -> list[str]:
    task = json.loads(file.read_text())["master"]["tasks"][0]
    return [task["status"], *(part.get("status", "-") for part in task["subtasks"])]


def test_a_parent_follows_its_subtasks(file):
    tell(file, update("1.1", "leased"))
    assert statuses(file) == ["in-progress", "in-progress", "-", "pending"]
    assert '"updatedAt": "2026-01-30T12:00:00.000Z"' in file.read_text()
    tell(file, update("1.1", "queued", "leased"))
    assert statuses(file) == ["pending", "pending", "-", "pending"]
    tell(file, update("1.1", "done", "queued"), update("1.2", "parked"))
    assert statuses(file) == ["in-progress", "done", "blocked", "pending"]
    tell(file, update("1.2", "done", "parked"), update("1.3", "done"))
    assert statuses(file) == ["done", "done", "done", "done"]
    assert tell(file, update("1.2", "done", "parked")) == []


def test_what_a_person_has_set_stays(file):
    file.write_text(TEXT.replace('"n", "status": "pending"', '"n", "status": "deferred"'))
    assert tell(file, update("next:1", "done"), update("9", "done")) == []


def test_the_older_shape(file):
    file.write_text('{"tasks":[{"id":1,"title":"a","status":"pending"}],"x":[]}\n')
    assert tell(file, update("1", "canceled")) == ["1"]
    assert file.read_text() == '{"tasks":[{"id":1,"title":"a","status":"cancelled"}],"x":[]}\n'


def test_the_lock_of_the_program_is_kept(file, monkeypatch):
    monkeypatch.setattr(taskmaster_file, "LOCK_SECONDS", 0.1)
    lock = file.with_name("tasks.json.lock")
    for make in (lock.mkdir, lock.touch):
        make()
        with pytest.raises(TryLater, match=r"tasks\.json\.lock is held by another program"):
            tell(file, update("2", "done"))
        assert file.read_text() == TEXT
        os.utime(lock, (0, 0))  # left over
        assert tell(file, update("2", "done")) == ["2"]
        assert not lock.exists()
        file.write_text(TEXT)


def test_writers_at_the_same_time_lose_nothing(file):
    rows = [{"id": number, "title": "t", "status": "pending"} for number in range(20)]
    file.write_text(json.dumps({"tasks": rows}, indent=2))
    threads = [
        Thread(target=tell, args=(file, update(str(number), "done"))) for number in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {row["status"] for row in json.loads(file.read_text())["tasks"]} == {"done"}


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 700 + b"]" * 700])
def test_what_is_no_tasks_file_is_not_written(file, content):
    file.write_bytes(content)
    with pytest.raises(FairlaneError, match=r"tasks\.json: "):
        tell(file, update("1", "done"))
    assert file.read_bytes() == content
    assert not list(file.parent.glob("*.lock"))


def test_a_folder_that_cannot_be_written_is_named(file, monkeypatch):
    def no(lock: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", no)
    with pytest.raises(Refused, match="Permission denied"):
        tell(file, update("1", "done"))
