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
    assert (task.needs, task.blocked) == (("task-1",), "needs task-9, which is not there")
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


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("assignee: @ann", "@ann"),
        ("assignee: [@ann, '@bob', c]", ["@ann", "@bob", "c"]),
        ("assignee:\n  - @ann", ["@ann"]),
        ("assignee: a@b.c", "a@b.c"),
    ],
)
def test_names_are_read_as_people_write_them(board, line, names):
    write(board, "task-1", f"title: mail @ann\nstatus: To Do\n{line}")
    [item] = read(board).items
    assert item.record["meta"] == {"assignee": names}
    assert item.record["title"] == "mail @ann"


def test_a_subtask_is_told_what_it_is_part_of_and_its_whole_comes_last(board):
    body = (
        "## Description\n\n<!-- SECTION:DESCRIPTION:BEGIN -->\nMake it\n\n"
        "## Acceptance Criteria\n- [ ] React\n\n## Implementation Notes\n\nlong story\n"
    )
    write(board, "task-1", "title: Login form\nstatus: To Do\ndependencies: [task-3]", body)
    write(board, "task-1.1", "title: Button\nstatus: To Do\nparent_task_id: task-1")
    write(board, "task-2", "title: Page\nstatus: To Do\ndependencies: [task-1]")
    write(board, "task-3", "title: Base\nstatus: To Do")
    found = read(board)
    items = {item.id: item for item in found.items}
    assert items["task-1.1"].record["prompt"] == (
        "Button\n\n---\nFor context only: the task above is a part of task-1: Login form\n\n"
        "> ## Description\n>\n> Make it\n>\n> ## Acceptance Criteria\n> - [ ] React"
    )
    assert str(items["task-1"].record["prompt"]).endswith("before this one:\n\n- task-1.1: Button")
    assert {name: item.needs for name, item in items.items()} == {
        "task-1": ("task-3", "task-1.1"), "task-1.1": ("task-3",), "task-2": ("task-1",),
        "task-3": (),
    }  # fmt: skip
    assert items["task-1"].group == items["task-1.1"].group == "task-1"


def test_what_its_parts_are_told_is_bounded(board):
    write(board, "task-1", "title: All\nstatus: To Do", "## Description\n" + "x" * 100_000)
    write(board, "task-1.1", "title: Part\nstatus: To Do\nparent_task_id: task-1")
    prompt = str(read(board).items[1].record["prompt"])
    assert len(prompt) < 5_000
    assert prompt.endswith("… (cut)")


def test_a_part_of_a_part_of_itself_is_no_part(board):
    for number in range(1, 201):
        under = f"parent_task_id: task-{number - 1 or 200}"
        write(board, f"task-{number}", f"title: a\nstatus: To Do\n{under}")
    assert len(read(board).items) == 200


def test_a_draft_is_named_and_what_is_archived_is_gone(board):
    for folder in ("drafts", "archive/tasks"):
        (board.parent / folder).mkdir(parents=True)
    write(board.parent / "drafts", "draft-1", "title: Perhaps\nstatus: Draft")
    write(board.parent / "archive/tasks", "task-1", "title: Old\nstatus: To Do")
    write(board, "task-2", "title: b\nstatus: To Do\ndependencies: [task-1]")
    found = read(board)
    assert [(left.id, left.reason, left.bad) for left in found.left_out] == [
        ("draft-1", "it is a draft", False)
    ]
    assert [(item.id, item.blocked) for item in found.items] == [
        ("task-2", "needs task-1, which is not there")
    ]


def test_one_file_that_cannot_be_read_keeps_nobody(board, tmp_path):
    write(board, "task-1", "title: a\nstatus: To Do")
    (board / "task-2 - b.md").write_bytes(b"---\nid: task-2\ntitle: \xff\n---\n")
    (tmp_path / "outside.md").write_text("---\nid: task-3\ntitle: c\n---\n")
    (board / "task-3 - c.md").symlink_to(tmp_path / "outside.md")
    found = read(board)
    assert [item.id for item in found.items] == ["task-1"]
    assert [left.id for left in found.left_out] == ["task-2", "task-3"]


def test_the_settings_may_be_above_and_name_the_folder(tmp_path):
    tasks = tmp_path / "work" / "board" / "tasks"
    tasks.mkdir(parents=True)
    settings = "backlog_directory: work/board\nproject_name: Site\nstatuses: [Now, Then]\n"
    (tmp_path / "backlog.config.yml").write_text(settings)
    write(tasks, "task-1", "title: a\nstatus: Now")
    for path in (tmp_path, tmp_path / "work" / "board"):
        assert [item.record["id"] for item in backlog.read(Where(path)).items] == ["Site-task-1"]


def test_settings_that_cannot_be_read_refuse_the_board_by_name(board):
    write(board, "task-1", "title: a\nstatus: To Do")
    (board.parent / "config.yml").write_text("statuses: [a\n")
    with pytest.raises(Invalid, match=r"config\.yml: the file is not YAML"):
        read(board)


def test_a_milestone_has_its_title(board):
    (board.parent / "milestones").mkdir()
    write(board.parent / "milestones", "m-0", "title: Spring 2026")
    write(board, "task-1", "title: a\nstatus: To Do\nmilestone: m-0")
    found = read(board)
    assert [(each.id, each.name, each.title) for each in found.collections] == [
        ("milestone:m-0", "shop-Spring-2026", "Spring 2026"),
    ]
