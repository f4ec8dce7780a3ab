"""Lists of work that were made to break an import: one bad item is left out, and soon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlane.intake.sources import source_named
from fairlane.intake.sources.base import Found, Where

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
