"""Backlog.md itself sees what became of its tasks, and what is done with it is followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.world import World, until
from tests.trackers.conftest import Program, follow

pytestmark = pytest.mark.slow


def test_from_to_do_to_done(world: World, project: Path, backlog: Program) -> None:
    backlog("task", "create", "Login form", "-d", "Make it", "--ac", "React", "-a", "@ann")
    backlog("task", "create", "Button", "-p", "task-1")
    backlog("task", "create", "Page", "--dep", "task-1", "-m", "spring")
    backlog("task", "create", "Broken", "-d", "FAIL")
    backlog("draft", "create", "Perhaps")
    follow(world, "backlog", project)
    world.fairlane("run")
    assert world.statuses() == {
        "Shop-TASK-1": "done", "Shop-TASK-1.1": "done", "Shop-TASK-2": "done",
        "Shop-TASK-3": "parked",
    }  # fmt: skip
    listed = backlog("task", "list", "--plain")
    done, busy = listed.index("Done:"), listed.index("In Progress:")
    assert "To Do:" not in listed
    assert all(listed.index(name, done) for name in ("TASK-1 -", "TASK-1.1 -", "TASK-2 -"))
    assert listed.index("TASK-3 - Broken") > busy
    button = (world.marks / "Shop-TASK-1.1").read_text(encoding="utf-8")
    assert button.startswith("Button\n\n---\n")
    assert "TASK-1: Login form" in button
    assert "Make it" in button
    assert "React" in button
    broken = backlog("task", "view", "3", "--plain")
    assert "Fairlane: parked: failed: exit 1" in broken
    assert "FAIL" in broken
    answer = world.fairlane("sync")["sources"][0]
    assert answer["created"] == answer["changed"] == answer["canceled"] == answer["conflicts"] == []
    (world.marks / "Shop-TASK-2").unlink()
    backlog("task", "edit", "2", "-s", "To Do", "-d", "Once more")
    world.fairlane("run")
    assert "Once more" in (world.marks / "Shop-TASK-2").read_text(encoding="utf-8")
    assert "Status: ✔ Done" in backlog("task", "view", "2", "--plain")


def test_what_people_do_with_the_program_is_followed(
    world: World, project: Path, backlog: Program
) -> None:
    backlog("task", "create", "One")
    follow(world, "backlog", project)
    world.fairlane("pause")
    world.up()
    until(lambda: world.statuses() == {"Shop-TASK-1": "queued"})
    backlog("task", "edit", "1", "-t", "Another", "-d", "With words")
    until(lambda: world.fairlane("show", "Shop-TASK-1")["task"]["title"] == "Another")
    backlog("task", "create", "Two")
    until(lambda: len(world.statuses()) == 2)
    backlog("task", "edit", "2", "-s", "In Progress", "-a", "@ann")
    until(lambda: world.fairlane("show", "Shop-TASK-2")["task"]["source_hold"] == "In Progress")
    backlog("task", "edit", "2", "-s", "Done")
    until(lambda: world.statuses()["Shop-TASK-2"] == "canceled")
    world.fairlane("resume")
    until(lambda: world.statuses()["Shop-TASK-1"] == "done")
    until(lambda: "Done:" in backlog("task", "list", "--plain"))
    world.fairlane("down")
    assert "Status: ✔ Done" in backlog("task", "view", "1", "--plain")
    assert world.statuses() == {"Shop-TASK-1": "done", "Shop-TASK-2": "canceled"}
