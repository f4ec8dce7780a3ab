"""Backlog.md, told back: the status, the date and a note change; every other byte stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.intake.sources import backlog
from fairlane.intake.sources.base import Standing, Where, WriteBack
from fairlane.model.errors import Refused
from fairlane.model.instant import parse_instant

NOON = parse_instant("2026-01-30T12:00:00Z")
HEAD = "id: TASK-1\ntitle: 'A: b'  # kept\nstatus: To Do\nassignee: @ann\nupdated_date: 'x'\n"
BODY = "\n## Description\n\nDo it.\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "backlog" / "tasks" / "task-1 - A.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(f"---\n{HEAD}---\n{BODY}".encode())
    return path


def tell(file: Path, status: str, told: str | None = None, reason: str = "") -> list[str]:
    update = WriteBack("TASK-1", "t", status, NOON, reason, {"told": told})
    return backlog.write(Where(file.parents[1]), [update])


def test_a_status_and_the_date_are_all_that_changes(file):
    before = file.read_bytes()
    assert tell(file, "running") == ["TASK-1"]
    after = before.replace(b"status: To Do", b"status: In Progress")
    assert file.read_bytes() == after.replace(b"'x'", b'"2026-01-30 12:00"')
    assert tell(file, "done", "running") == ["TASK-1"]
    assert b"status: Done\n" in file.read_bytes()
    assert tell(file, "done", "running") == []


def test_line_ends_stay(file):
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    before = file.read_bytes()
    tell(file, "parked", reason="exit 1")
    assert file.read_bytes().count(b"\n") == file.read_bytes().count(b"\r\n")
    assert file.read_bytes().startswith(before[:30])
    [item] = backlog.read(Where(file)).items
    assert item.record["prompt"] == "A: b\n\n## Description\n\nDo it."


def test_the_names_of_the_board_are_used(file):
    (file.parents[1] / "config.yml").write_text("statuses: [To Do, Doing, Review, Shipped]\n")
    tell(file, "leased")
    assert b"status: Doing\n" in file.read_bytes()
    tell(file, "canceled", "leased")
    assert b"status: To Do\n" in file.read_bytes()
    tell(file, "done", "canceled")
    assert b"status: Shipped\n" in file.read_bytes()


def test_what_a_person_has_set_stays(file):
    file.write_text(file.read_text().replace("To Do", "Done"))
    before = file.read_bytes()
    assert tell(file, "running", "queued") == []
    assert file.read_bytes() == before


def test_a_task_that_needs_help_says_why_once_and_keeps_its_prompt(file):
    prompt = backlog.read(Where(file)).items[0].record["prompt"]
    assert tell(file, "parked", "running", "failed:\nexit 1 --> <!-- \x1b") == []  # nobody has it
    tell(file, "running")
    assert tell(file, "parked", "running", "failed:\nexit 1 --> <!-- \x1b") == ["TASK-1"]
    assert tell(file, "parked", "running", "failed:\nexit 1 --> <!-- \x1b") == []
    assert file.read_text().endswith(
        "\n## Implementation Notes\n\n<!-- SECTION:NOTES:BEGIN -->\n"
        "- 2026-01-30 12:00 Fairlane: parked: failed: exit 1\n<!-- SECTION:NOTES:END -->\n"
    )
    assert tell(file, "parked", "parked", "other") == ["TASK-1"]
    [item] = backlog.read(Where(file)).items
    assert (item.record["prompt"], item.standing) == (prompt, Standing.TAKEN)


NOTES = "## Implementation Notes\n\n"
BEGIN, END = "<!-- SECTION:NOTES:BEGIN -->\n", "<!-- SECTION:NOTES:END -->\n\n## Final Summary\nx\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{BEGIN}mine\n{END}", f"{BEGIN}mine\nLINE\n{END}"),
        ("mine", "mine\nLINE\n"),
        ("mine\n\n## More\n", "mine\nLINE\n\n## More\n"),
    ],
)
def test_a_note_joins_those_that_are_there(file, before, after):
    file.write_text(f"---\n{HEAD}---\n{BODY}{NOTES}{before}".replace("To Do", "In Progress"))
    tell(file, "parked", "running", "no")
    line = "- 2026-01-30 12:00 Fairlane: parked: no"
    assert file.read_text().endswith(BODY + NOTES + after.replace("LINE", line))


def test_what_cannot_be_written_is_refused_by_name(file, tmp_path):
    file.write_text("---\nid: TASK-1\ntitle: A\nstatus: >-\n  To Do\n---\n")
    with pytest.raises(Refused, match=r"task-1 - A\.md: the value of 'status' is not one line"):
        tell(file, "running")
    outside = tmp_path / "outside.md"
    outside.write_text(f"---\n{HEAD}---\n")
    file.unlink()
    file.symlink_to(outside)
    with pytest.raises(Refused, match="leads out of"):
        tell(file, "running")
    assert outside.read_text() == f"---\n{HEAD}---\n"


def test_a_task_that_moved_or_went_away_is_left_alone(file):
    done = file.parents[1] / "completed"
    done.mkdir()
    file.rename(done / file.name)
    assert tell(file, "running") == []


def again(file: Path) -> str:
    return backlog.read(Where(file)).items[0].again


def test_who_puts_a_task_back_wants_it_again(file):
    tell(file, "running")
    tell(file, "done", "running")
    assert (again(file), b"Fairlane: done" in file.read_bytes()) == ("", True)
    file.write_text(file.read_text().replace("status: Done", "status: To Do"))
    assert again(file) == "1"
    assert tell(file, "leased", "done") == ["TASK-1"]  # it was queued for a moment only
    tell(file, "parked", "leased", "exit 1")
    file.write_text(file.read_text().replace("status: In Progress", "status: To Do"))
    assert again(file) == "2"
    assert tell(file, "queued", "parked") == ["TASK-1"]
    assert again(file) == ""


def test_what_is_canceled_or_retried_here_was_not_put_back(file):
    tell(file, "running")
    tell(file, "parked", "running", "exit 1")
    tell(file, "queued", "parked")
    assert (again(file), b"status: To Do" in file.read_bytes()) == ("", True)
    tell(file, "parked", "queued", "exit 1")
    tell(file, "canceled", "parked")
    assert (again(file), b"status: To Do" in file.read_bytes()) == ("", True)
