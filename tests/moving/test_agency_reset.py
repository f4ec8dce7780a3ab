"""A card that a person sets back to `idle` is a manual rerun; one that nobody wrote to is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.intake.sources.base import Where
from fairlane.service import tasks
from fairlane.service.sync import write_back
from fairlane.service.sync.importing import ImportOptions, bring_in
from tests.unit.contexts import TestContext

pytestmark = pytest.mark.slow

CARD = "---\nagent_flow: implement\nagent_status: idle\n---\n# Mend it\n\nWell.\n"


class Board:
    """One card, kept in step by hand."""

    def __init__(self, office: TestContext, folder: Path) -> None:
        self.office, self.where = office, Where(folder)
        self.path = folder / "phase-1" / "backlog" / "fence.md"
        self.path.parent.mkdir(parents=True)
        self.path.write_text(CARD)
        office.policy('preset = "serial-lanes"\nretry.max_attempts = 1\n')

    def sync(self, tell: bool = True) -> Any:
        answer = bring_in(self.office.context, "cards", self.where, ImportOptions(sync=True))
        if tell:
            write_back.tell(self.office.context, "cards", self.where)
        return answer

    def run(self, *, fails: bool = False) -> None:
        (lease,) = self.office.lease()
        if fails:
            self.office.fail(lease["lease"])
        else:
            self.office.finish(lease["lease"])

    def edit(self, before: str, after: str) -> None:
        text = self.path.read_text()
        assert before in text
        self.path.write_text(text.replace(before, after))

    def reset(self, before: str, to: str = "idle") -> None:
        self.edit(f"agent_status: {before}\n", f"agent_status: {to}".rstrip() + "\n")

    @property
    def status(self) -> str:
        (line,) = [row for row in self.path.read_text().splitlines() if "agent_status" in row]
        return line.partition(": ")[2]

    @property
    def history(self) -> list[str]:
        rows = self.path.read_text().splitlines()
        return [row.partition("- Fairlane: ")[2].split()[0] for row in rows if "- Fairlane" in row]

    @property
    def task(self) -> Any:
        with self.office.context.store.read() as reading:
            return reading.task("phase-1.fence")


@pytest.fixture
def board(office: TestContext, tmp_path: Path) -> Board:
    return Board(office, tmp_path / "project")


def restarted(answer: Any) -> list[str]:
    return [row["id"] for row in answer["restarted"]]


@pytest.mark.parametrize("to", ["idle", "queued", ""])
def test_a_card_that_succeeded_runs_again(board, to):
    board.sync()
    for _ in range(2):  # each time that it is put back
        board.run()
        board.sync()
        assert board.status == "succeeded"
        board.reset("succeeded", to)
        answer = board.sync()
        assert restarted(answer) == ["phase-1.fence"]
        assert (board.task.status, board.status) == ("queued", "queued")
        assert restarted(board.sync()) == []
    board.run()
    board.sync()
    assert (board.task.status, board.status) == ("done", "succeeded")


def test_a_card_that_failed_gets_its_counter_cleared(board):
    board.sync()
    board.run(fails=True)
    board.sync()
    assert (board.task.status, board.task.failures, board.status) == ("parked", 1, "failed")
    board.edit("Well.", "Better.")
    with board.path.open("a") as card:
        card.write("- 2026-02-01 - ann: once more\n")
    board.reset("failed")
    assert restarted(board.sync()) == ["phase-1.fence"]
    assert (board.task.status, board.task.failures, board.status) == ("queued", 0, "queued")
    assert "Better." in board.task.prompt  # with what the card says now


def test_a_card_that_was_canceled_runs_again(board):
    board.sync()
    tasks.cancel(board.office.context, ["phase-1.fence"])
    board.sync()
    assert board.status == "canceled"
    board.reset("canceled")
    assert restarted(board.sync()) == ["phase-1.fence"]
    assert (board.task.status, board.status) == ("queued", "queued")


@pytest.mark.parametrize("fails", [False, True])
def test_a_card_that_nobody_wrote_to_is_no_rerun(board, fails):
    board.sync(tell=False)
    board.run(fails=fails)
    over = board.task
    for _ in range(3):
        assert restarted(board.sync(tell=False)) == []
    assert board.task == over
    assert board.path.read_text() == CARD


def test_one_reset_is_one_rerun_though_nothing_is_written_any_more(board):
    board.sync()
    board.run()
    board.sync()
    board.reset("succeeded")
    assert restarted(board.sync(tell=False)) == ["phase-1.fence"]
    board.run()
    for _ in range(3):
        assert restarted(board.sync(tell=False)) == []
    assert board.task.status == "done"


def test_a_status_set_while_it_runs_stays_and_is_no_rerun(board):
    board.sync()
    (lease,) = board.office.lease()
    board.sync()
    board.reset("running")
    board.office.finish(lease["lease"])
    assert restarted(board.sync()) == []
    assert (board.task.status, board.status) == ("done", "idle")


@pytest.mark.parametrize("put_back", [False, True])
def test_after_a_retry_here_the_card_says_what_its_task_does(board, put_back):
    board.sync()
    board.run(fails=True)
    board.sync()
    tasks.retry(board.office.context, ["phase-1.fence"])
    if put_back:
        board.reset("failed")
    assert restarted(board.sync()) == []
    assert board.status == "queued"
    (lease,) = board.office.lease()
    board.sync()
    assert board.status == "running"
    board.office.finish(lease["lease"])
    assert restarted(board.sync()) == []
    assert board.history == ["queued", "failed", "queued", "running", "succeeded"]


def test_a_full_queue_defers_a_rerun_and_leaves_its_card(board):
    board.sync()
    board.run()
    board.sync()
    board.reset("succeeded")
    board.office.policy(
        'preset = "serial-lanes"\ncaps.all = 0\nbackpressure = {soft = 0, hard = 0}'
    )
    before = board.path.read_text()
    answer = board.sync()
    assert ([row["id"] for row in answer["deferred"]], restarted(answer)) == (["phase-1/fence"], [])
    assert board.path.read_text() == before
    board.office.policy('preset = "serial-lanes"\n')
    assert restarted(board.sync()) == ["phase-1.fence"]


@pytest.mark.parametrize("left", ["queued", "running"])
def test_a_card_that_agency_left_comes_in_by_force_and_is_told(board, left):
    board.reset("idle", left)
    answer = board.sync()
    assert [row["reason"] for row in answer["skipped"]] == [
        f"agent_status is {left}; --force imports it"
    ]
    bring_in(board.office.context, "cards", board.where, ImportOptions(force=True))
    board.sync()
    (lease,) = board.office.lease()
    board.sync()
    assert board.status == "running"
    board.office.finish(lease["lease"])
    board.sync()
    assert board.status == "succeeded"


def test_a_dry_run_tells_and_does_nothing(board):
    board.sync()
    board.run()
    board.sync()
    board.reset("succeeded")
    options = ImportOptions(dry_run=True, sync=True)
    answer = bring_in(board.office.context, "cards", board.where, options)
    assert (restarted(answer), board.task.status) == (["phase-1.fence"], "done")
