"""task-master itself sees what became of its tasks, and what is done with it is followed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import World, until
from tests.trackers.conftest import Program, follow

pytestmark = pytest.mark.slow


def task(number: int, title: str, description: str, **more: object) -> dict[str, object]:
    """A task or subtask with the keys that the program gives it."""
    return {
        "id": number, "title": title, "description": description, "details": "",
        "testStrategy": "", "status": "pending", "dependencies": [], "priority": "medium",
        "subtasks": [], **more,
    }  # fmt: skip


@pytest.fixture
def file(project: Path) -> Path:
    """Its file, in the form that the program writes."""
    path = project / ".taskmaster" / "tasks" / "tasks.json"
    path.parent.mkdir(parents=True)
    parts = [task(1, "Button", "", parentTaskId=1), task(2, "Field", "", dependencies=[1])]
    tasks = [
        task(1, "Login form", "Make it", details="React", priority="high", subtasks=parts),
        task(2, "Page", "All of it", dependencies=[1]),
        task(3, "Broken", "FAIL", priority="low"),
    ]
    text = json.dumps({"master": {"tasks": tasks, "metadata": {"created": "x"}}}, indent=2)
    path.write_text(text, encoding="utf-8")
    return path


def document(printed: str) -> Any:
    """What it prints, without the news for users that may follow."""
    return json.JSONDecoder().raw_decode(printed, printed.index("{"))[0]


def listed(task_master: Program) -> dict[str, str]:
    """The status of each task and subtask, as the program tells."""
    rows = document(task_master("list", "--with-subtasks", "--json"))["tasks"]
    found = {str(row["id"]): row["status"] for row in rows}
    for row in rows:
        found |= {f"{row['id']}.{part['id']}": part["status"] for part in row["subtasks"]}
    return found


def test_from_pending_to_done(
    world: World, project: Path, file: Path, task_master: Program
) -> None:
    follow(world, "taskmaster", project)
    world.fairlane("run")
    assert world.statuses() == {
        "shop-1.1": "done", "shop-1.2": "done", "shop-2": "done", "shop-3": "parked",
    }  # fmt: skip
    assert listed(task_master) == {
        "1": "done", "1.1": "done", "1.2": "done", "2": "done", "3": "blocked",
    }  # fmt: skip
    assert document(task_master("next", "--format", "json"))["task"] is None
    button = (world.marks / "shop-1.1").read_text(encoding="utf-8")
    assert button == (
        "Button\n\n---\nFor context only: the task above is a part of 1: Login form\n\n"
        "> Make it\n>\n> Details:\n> React"
    )
    answer = world.fairlane("sync")["sources"][0]
    assert answer["created"] == answer["changed"] == answer["canceled"] == answer["conflicts"] == []


def test_what_people_do_with_the_program_is_followed(
    world: World, project: Path, file: Path, task_master: Program
) -> None:
    follow(world, "taskmaster", project)
    world.fairlane("pause")
    world.up()
    until(lambda: len(world.statuses()) == 4)
    task_master("set-status", "--id=1.1", "--status=in-progress")
    until(lambda: world.fairlane("show", "shop-1.1")["task"]["source_hold"] == "in-progress")
    task_master("set-status", "--id=1.1", "--status=done")
    until(lambda: world.statuses()["shop-1.1"] == "canceled")
    world.fairlane("resume")
    ends = {"shop-1.1": "canceled", "shop-1.2": "done", "shop-2": "done", "shop-3": "parked"}
    until(lambda: world.statuses() == ends)
    until(lambda: "pending" not in file.read_text(encoding="utf-8"))
    world.fairlane("down")
    ends = {"1": "done", "1.1": "done", "1.2": "done", "2": "done", "3": "blocked"}
    assert listed(task_master) == ends
