"""A board of Agency, moved over: the same cards start, in the same order, whatever happens."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairlane.intake.sources.base import Where
from fairlane.model.instant import SECOND
from fairlane.service import tasks
from fairlane.service.conversion import operation
from fairlane.service.sync.importing import ImportOptions, bring_in
from tests.moving import agency
from tests.unit.contexts import TestContext

pytestmark = pytest.mark.slow


class Moved:
    """A board, and the same board here."""

    def __init__(self, board: agency.Board, home: Path) -> None:
        home.mkdir()
        self.board, self.home = board, TestContext(home)
        operation.write(self.home.context, "agency", str(board.folder))
        self.answer: Any = self.bring()
        self.leases: dict[str, str] = {}  # card -> lease

    def bring(self) -> Any:
        where = Where(self.board.folder)
        return bring_in(self.home.context, "cards", where, ImportOptions())

    def known(self) -> dict[str, str]:
        """Card -> task."""
        with self.home.context.store.read() as reading:
            rows = reading.tasks([row["id"] for row in self.answer["created"]])
        return {str(task.meta["source_id"]): task.id for task in rows.values()}

    def start(self) -> list[str]:
        names = {task: card for card, task in self.known().items()}
        leases = self.home.lease()
        self.leases |= {names[row["task"]]: row["lease"] for row in leases}
        return [names[row["task"]] for row in leases]


@pytest.mark.parametrize("seed", range(12))
def test_every_card_comes_in_or_is_named(tmp_path, seed):
    board = agency.made(tmp_path / "project", seed, 60)
    moved = Moved(board, tmp_path / "home")
    known, cards = moved.known(), [card.id for card in board.cards]
    assert list(known) == cards
    assert len(set(known.values())) == len(cards)
    out = {row["id"] for row in moved.answer["skipped"]}
    assert board.broken | board.closed <= out
    with moved.home.context.store.read() as reading:
        found = reading.tasks(known.values())
    for card in board.cards:
        task = found[known[card.id]]
        assert (task.kind, task.parallel) == (card.flow, card.parallel)
        assert task.prompt.startswith(f"# {card.path.stem}\n\nSummary:")
        assert "History" not in task.prompt
        assert task.meta["points"] == "3"
    groups = {card.phase: found[known[card.id]].group for card in board.cards}
    assert len(set(groups.values())) == len(groups)


@pytest.mark.parametrize("seed", range(25))
def test_the_same_cards_start_in_the_same_order(tmp_path, seed):
    random = Random(seed)
    board = agency.made(tmp_path / "project", seed)
    theirs, ours = agency.Scheduler(board), Moved(board, tmp_path / "home")
    for _ in range(40):
        assert ours.start() == [card.id for card in theirs.drain()]
        assert ours.leases.keys() == theirs.running.keys()
        _happens(random, theirs, ours)


def _happens(random: Random, theirs: agency.Scheduler, ours: Moved) -> None:
    """One thing, on both sides."""
    home, known = ours.home, ours.known()
    deed = random.choice(["succeed", "succeed", "fail", "wait", "cancel", "caps", "rerun"])
    running = sorted(ours.leases)
    queued = sorted(row[2].id for queue in theirs.queues.values() for row in queue)
    if deed == "succeed" and running:
        name = random.choice(running)
        theirs.succeed(name)
        home.finish(ours.leases.pop(name))
    elif deed == "fail" and running:
        name = random.choice(running)
        theirs.fail(name)
        home.fail(ours.leases.pop(name))
    elif deed == "wait":
        seconds = random.randrange(1, 40)
        theirs.wait(seconds)
        home.wait(seconds * SECOND)
    elif deed == "cancel" and queued:
        name = random.choice(queued)
        theirs.cancel(name)
        tasks.cancel(home.context, [known[name]])
    elif deed == "rerun" and theirs.failed:
        name = random.choice(sorted(theirs.failed))
        (card,) = [card for card in theirs.board.cards if card.id == name]
        theirs.rerun(name, card)
        tasks.retry(home.context, [known[name]])
    elif deed == "caps":
        theirs.board.most = random.randrange(1, 6)
        theirs.board.per_flow[random.choice(agency.FLOWS)] = random.randrange(1, 4)
        file = theirs.board.write_config()
        operation.write(home.context, "agency", str(file))


@pytest.mark.parametrize("seed", range(2))
def test_a_board_above_the_hard_limit_comes_in_in_order_and_is_worked_off(tmp_path, seed):
    board = agency.made(tmp_path / "project", seed, 55)
    board.write_config(queue="")  # as the document computes them
    soft = max(4 * board.most, 8)
    moved = Moved(board, tmp_path / "home")
    cards = [card.id for card in board.cards]
    room = 2 * soft + board.most  # what can start at once is not in the queue
    assert [*moved.known()] == cards[:room]
    assert [row["id"] for row in moved.answer["deferred"]] == cards[room:]
    done: list[str] = []
    while len(done) < len(cards):
        started = moved.start()
        assert started or moved.leases
        name = min(moved.leases, key=cards.index)
        moved.home.finish(moved.leases.pop(name))
        done.append(name)
        if len(moved.known()) < len(cards):
            (row,) = moved.bring()["created"]  # one ended, one comes in
            moved.answer["created"].append(row)
    assert sorted(done) == sorted(cards)
