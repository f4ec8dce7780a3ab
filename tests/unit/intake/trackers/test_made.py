"""Whatever a tracker's file holds: all of it is read or named, and write-back keeps the rest."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.intake.sources import backlog, spec_kit, taskmaster
from fairlane.intake.sources.base import Found, Standing, Where, WriteBack
from fairlane.model.errors import FairlaneError, Invalid
from fairlane.model.instant import parse_instant
from tests.unit.intake.trackers.made import (
    LINES,
    REASONS,
    STATUSES,
    Board,
    boards,
    task_files,
)

pytestmark = pytest.mark.slow

NOON = parse_instant("2026-01-30T12:00:00Z")


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@contextmanager
def on_disk(board: Board) -> Iterator[Path]:
    with folder() as root:
        tasks = root / "backlog" / "tasks"
        tasks.mkdir(parents=True)
        for name, content in board.files.items():
            (tasks / name).write_bytes(content)
        yield tasks


def update(item: str, status: str, reason: str, told: str | None) -> WriteBack:
    return WriteBack(item, "t", status, NOON, reason, {"told": told})


@given(board=boards())
def test_every_file_of_a_board_is_an_item_or_named(board):
    with on_disk(board) as tasks:
        found = backlog.read(Where(tasks.parent))
        names = {Path(item.where).name for item in found.items}
        assert names >= board.whole.keys()
        assert names | {Path(left.where).name for left in found.left_out} == board.files.keys()


#: What write-back may change in a file of Backlog.md.
CHANGED = re.compile(
    r"^(?:status|updated_date):[^\r\n]*(\r?\n)|^- 2026-01-30 12:00 Fairlane:[^\r\n]*(\r?\n|\Z)"
    r"|\r?\n## Implementation Notes\s+<!-- SECTION:NOTES:BEGIN -->\s+"
    r"<!-- SECTION:NOTES:END -->\s*\Z",
    re.MULTILINE,
)


def rest(content: bytes) -> str:
    """A file without that; what was added at its end leaves no line end behind."""
    text = content.decode()
    for _ in range(2):  # a section of ours is empty without its lines
        text = CHANGED.sub("", text)
    return text.rstrip()


@given(board=boards(), data=st.data())
def test_a_board_keeps_all_but_what_is_told(board, data):
    with on_disk(board) as tasks:
        before = {item.id: item for item in backlog.read(Where(tasks.parent)).items}
        told: str | None = None
        for status in data.draw(st.lists(st.sampled_from(STATUSES), max_size=4)):
            reason = data.draw(REASONS)
            updates = [update(item, status, reason, told) for item in before]
            told = status
            backlog.write(Where(tasks.parent), updates)
            once = {path.name: path.read_bytes() for path in tasks.iterdir()}
            assert backlog.write(Where(tasks.parent), updates) == []
            assert {path.name: path.read_bytes() for path in tasks.iterdir()} == once
        for name, content in board.files.items():
            after = (tasks / name).read_bytes()
            if name in board.whole:
                assert rest(after) == rest(content)
            else:
                assert after == content
        for item in backlog.read(Where(tasks.parent)).items:
            assert item.record == before[item.id].record


def without_statuses(text: str) -> str:
    pattern = r'(?:,\s*)?"(?:status|updatedAt)": "(?:[a-z-]+|[\d:.TZ-]+)"'
    return re.sub(pattern, "", text)


@given(text=task_files(), data=st.data())
def test_tasks_json_keeps_all_but_statuses(text, data):
    with folder() as root:
        file = root / "tasks.json"
        file.write_bytes(text.encode())
        found = taskmaster.read(Where(file))
        ids = [item.id for item in found.items]
        chosen = data.draw(st.lists(st.sampled_from(ids), unique=True) if ids else st.just([]))
        status = data.draw(st.sampled_from(STATUSES))
        updates = [update(item, status, "", None) for item in chosen]
        written = taskmaster.write(Where(file), updates)
        after = file.read_bytes().decode()
        assert without_statuses(after) == without_statuses(text)
        assert taskmaster.write(Where(file), updates) == []
        if status == "done":
            assert closed(taskmaster.read(Where(file))) >= set(written)
        json.loads(after.removeprefix("\ufeff"))


def closed(found: Found) -> set[str]:
    return {item.id for item in found.items if item.standing is Standing.CLOSED}


@given(text=task_files(), at=st.integers(0, 10_000))
def test_half_of_a_file_is_refused_and_left_alone(text, at):
    half = text.rstrip()[: at % max(1, len(text.rstrip()) - 1)]
    with folder() as root:
        file = root / "tasks.json"
        file.write_text(half, encoding="utf-8", newline="")
        content = file.read_bytes()
        with pytest.raises(Invalid, match=r"tasks\.json"):
            taskmaster.read(Where(file))
        with pytest.raises(FairlaneError, match=r"tasks\.json"):
            taskmaster.write(Where(file), [update("1", "done", "", None)])
        assert file.read_bytes() == content
        assert [path.name for path in root.iterdir()] == ["tasks.json"]


BOX = re.compile(r"\s*- \[.\] ")


@given(lines=LINES)
def test_every_box_is_a_task_named_or_part_of_a_prompt(lines):
    text = "\n".join(lines)
    found = spec_kit.read(Where(text=text))
    taken = {int(item.where.rpartition(":")[2]) for item in found.items}
    taken |= {int(left.where.rpartition(":")[2]) for left in found.left_out}
    prompts = "\n".join(str(item.record["prompt"]) for item in found.items)
    if any(mark in text for mark in ("```", "<!--")):
        return  # what is in an example is nothing
    for number, line in enumerate(lines, 1):
        if BOX.match(line):
            assert number in taken or line.strip() in prompts, line
