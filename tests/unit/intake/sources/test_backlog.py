"""Backlog.md: its statuses, its ids, and what is read of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.intake.sources import backlog
from fairlane.intake.sources.base import Found, Where
from fairlane.model.errors import Invalid
from tests.conformance.samples.backlog import make


@pytest.fixture
def board(tmp_path: Path) -> Path:
    tasks = tmp_path / "shop" / "backlog" / "tasks"
    tasks.mkdir(parents=True)
    return tasks


def write(tasks: Path, name: str, head: str, body: str = "") -> None:
    (tasks / f"{name} - x.md").write_text(f"---\nid: {name}\n{head}\n---\n{body}")


def read(tasks: Path) -> Found:
    return backlog.read(Where(tasks.parent))


def test_the_usual_statuses(board):
    for number, status in enumerate(("To Do", "In Progress", "Done", "to do"), 1):
        write(board, f"task-{number}", f"title: a\nstatus: {status}")
    found = read(board)
    assert [str(item.standing) for item in found.items] == ["open", "taken", "closed", "open"]
    assert [item.why for item in found.items] == ["", "In Progress", "Done", ""]


def test_a_status_that_the_board_does_not_have_is_named(board):
    write(board, "task-1", "title: a\nstatus: Icebox")
    assert [left.reason for left in read(board).left_out] == ["no status of this board: 'Icebox'"]
    (board.parent / "config.yml").write_text("statuses: [Icebox, Done]\n")
    assert [str(item.standing) for item in read(board).items] == ["open"]


@pytest.mark.parametrize("need", ["TASK-1", "task-1", "BACK-1", "1"])
def test_dependencies_are_found_in_any_case_and_with_any_prefix(board, need):
    write(board, "task-1", "title: a\nstatus: To Do")
    write(board, "task-11", f"title: b\nstatus: To Do\ndependencies: [{need}]")
    assert read(board).items[1].needs == ("task-1",)


def test_a_dependency_that_is_not_there_blocks_and_one_that_is_completed_does_not(board):
    (board.parent / "completed").mkdir()
    write(board.parent / "completed", "task-1", "title: a\nstatus: Done")
    write(board, "task-2", "title: b\nstatus: To Do\ndependencies: [task-1, task-9]")
    [task, old] = read(board).items
    assert (task.needs, task.blocked) == ((), "needs task-9, which is not there")
    assert str(old.standing) == "closed"


def test_the_default_prefix_gets_the_projects_name_in_front(board):
    write(board, "task-1", "title: a\nstatus: To Do\nmilestone: v1.0")
    found = read(board)
    assert [item.record["id"] for item in found.items] == ["shop-task-1"]
    assert [(each.id, each.name) for each in found.collections] == [
        ("milestone:v1.0", "shop-v1.0"),
    ]


def test_numbers_sort_as_numbers_and_comments_are_no_part_of_the_prompt(board):
    for name in ("task-10", "task-9", "task-9.2", "task-9.10"):
        write(board, name, "title: a\nstatus: To Do", "\n<!-- AC:BEGIN -->\n- [ ] it works\n")
    found = read(board)
    assert [item.id for item in found.items] == ["task-9", "task-9.2", "task-9.10", "task-10"]
    assert found.items[0].record["prompt"] == "a\n\n- [ ] it works"


def test_one_file_alone_knows_its_board(tmp_path):
    sample = make(tmp_path)
    assert sample.where.path is not None
    file = next(sample.where.path.glob("backlog/tasks/back-5 *"))
    [item] = backlog.read(Where(file)).items
    assert (item.id, str(item.standing)) == ("BACK-5", "taken")


def test_a_folder_without_tasks_is_refused(tmp_path):
    with pytest.raises(Invalid, match="no task in it"):
        backlog.read(Where(tmp_path))
