"""task-master: both shapes of tasks.json, subtasks, and what its words mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlane.intake.sources import taskmaster
from fairlane.intake.sources.base import Found, Item, Where
from fairlane.model.errors import Invalid


def read(document: Any) -> Found:
    return taskmaster.read(Where(text=json.dumps(document)))


def items(*tasks: dict[str, Any]) -> dict[str, Item]:
    found = read({"tasks": [{"title": f"Task {task['id']}"} | task for task in tasks]})
    assert not found.left_out
    return {item.id: item for item in found.items}


def test_the_older_shape_and_the_tagged_one_tell_the_same():
    tasks = [{"id": 1, "title": "One"}, {"id": 2, "title": "Two", "dependencies": ["1"]}]
    assert read({"tasks": tasks}) == read({"master": {"tasks": tasks, "metadata": {}}})


@pytest.mark.parametrize(
    ("status", "standing", "blocked"),
    [
        ("pending", "open", ""),
        ("in-progress", "taken", ""),
        ("review", "taken", ""),
        ("done", "closed", ""),
        ("completed", "closed", ""),
        ("cancelled", "closed", ""),
        ("deferred", "open", "its status is deferred"),
        ("blocked", "open", "its status is blocked"),
        ("on-hold", "open", "its status is on-hold"),
    ],
)
def test_what_a_status_says(status, standing, blocked):
    item = items({"id": 1, "status": status})["1"]
    assert (str(item.standing), item.blocked) == (standing, blocked)
    assert item.why == ("" if standing == "open" else status)


def test_priorities_are_numbers():
    found = items(*({"id": word, "priority": word} for word in ("critical", "high", "low", "odd")))
    assert [item.record["priority"] for item in found.values()] == [25, 50, 150, 100]


def test_subtasks_are_items_of_their_tasks_group_and_need_what_it_needs():
    subtasks = [
        {"id": 1, "title": "First", "dependencies": ["2.1"]},
        {"id": "2", "title": "Second", "dependencies": [1]},
        {"id": 3, "title": "Over", "status": "done"},
    ]
    found = read(
        {
            "tasks": [
                {"id": 1, "title": "Before"},
                {"id": 2, "title": "Apart", "subtasks": [{"id": 1, "title": "Part"}]},
                {"id": 5, "title": "All", "dependencies": [1], "subtasks": subtasks},
                {"id": 6, "title": "After", "dependencies": [5]},
            ]
        }
    )
    by_id = {item.id: item for item in found.items}
    assert list(by_id) == ["1", "2.1", "5.1", "5.2", "5.3", "6"]
    assert by_id["5.1"].needs == ("2.1", "1")
    assert by_id["5.2"].needs == ("5.1", "1")
    assert by_id["6"].needs == ("5.1", "5.2", "5.3")  # the whole; 5.3 is closed
    assert {by_id[name].group for name in ("5.1", "5.2", "5.3")} == {"5"}
    assert [(each.id, each.name, each.title) for each in found.collections] == [
        ("2", "tm-2", "Apart"),
        ("5", "tm-5", "All"),
    ]


def test_a_task_whose_subtasks_are_done_is_an_item_again():
    found = items({"id": 5, "subtasks": [{"id": 1, "title": "Part", "status": "done"}]})
    assert (str(found["5"].standing), str(found["5.1"].standing)) == ("open", "closed")


def test_a_need_that_is_missing_or_was_given_up_blocks():
    found = items(
        {"id": 1, "status": "cancelled"},
        {"id": 2, "dependencies": [1, 9]},
        {"id": 3, "status": "done"},
        {"id": 4, "dependencies": [3]},
    )
    assert found["2"].blocked == "1 is cancelled; needs 9, which is not there"
    assert (found["4"].needs, found["4"].blocked) == (("3",), "")  # it is closed


def test_two_files_and_two_tags_do_not_collide(tmp_path: Path):
    tags = {tag: {"tasks": [{"id": 1, "title": "One"}]} for tag in ("master", "next year")}
    names = []
    for project in ("shop", "site"):
        file = tmp_path / project / ".taskmaster" / "tasks" / "tasks.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(tags), encoding="utf-8")
        for place in (file, tmp_path / project):
            found = taskmaster.read(Where(place))
            assert [item.id for item in found.items] == ["1", "next year:1"]
            assert [group.id for group in found.collections] == ["next year"]
        names += [item.record["id"] for item in found.items]
    assert names == ["shop-1", "shop-next-year-1", "site-1", "site-next-year-1"]


def test_the_prompt_tells_everything():
    task = {"id": 1, "description": "Why.", "details": "How.", "testStrategy": "Try it."}
    item = items(task | {"relevantFiles": [{"path": "a.py", "action": "edit"}]})["1"]
    assert item.record["prompt"] == (
        "Task 1\n\nWhy.\n\nDetails:\nHow.\n\nHow it is tested:\nTry it."
    )
    assert item.record["meta"] == {"relevantFiles": [{"path": "a.py", "action": "edit"}]}


def test_a_broken_task_is_named_and_the_rest_is_read():
    found = read({"tasks": [{"id": 1}, "what", {"id": 2, "title": "Two"}, {"id": 2, "title": "2"}]})
    assert [item.id for item in found.items] == ["2"]
    assert [(left.id, left.reason, left.bad) for left in found.left_out] == [
        ("1", "it has no title", True),
        ("?", "not a record: 'what'", True),
        ("2", "its id appears twice", True),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "-: not JSON"), ("7", "-: no tasks in it"), ('{"a": 1}', "-: no tasks in it")],
)
def test_what_is_no_tasks_file_is_refused(text, message):
    with pytest.raises(Invalid, match=message):
        taskmaster.read(Where(text=text))


def test_a_folder_without_a_file_is_refused(tmp_path):
    with pytest.raises(Invalid, match=r"none of \.taskmaster/tasks/tasks\.json, .* in it"):
        taskmaster.read(Where(tmp_path))
    with pytest.raises(Invalid, match="cannot be read: No such file"):
        taskmaster.read(Where(tmp_path / "none.json"))
