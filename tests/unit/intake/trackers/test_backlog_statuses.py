"""Boards as people name their columns."""

from __future__ import annotations

import pytest

from fairlane.intake.trackers.backlog_statuses import Statuses

O, T, C = "open", "taken", "closed"  # noqa: E741 - a table to look at


@pytest.mark.parametrize(
    ("names", "standings", "said"),
    [
        ("", [], ("To Do", "In Progress", "Done")),
        ("To Do|In Progress|Done", [O, T, C], ("To Do", "In Progress", "Done")),
        ("Next|Doing|Review|Shipped", [O, T, T, C], ("Next", "Doing", "Shipped")),
        ("To Do|In Progress|Done|Won't Do", [O, T, C, C], ("To Do", "In Progress", "Done")),
        ("Backlog|To Do|In Progress|Done", [O, O, T, C], ("To Do", "In Progress", "Done")),
        ("Icebox|Blocked|Ready|WIP|Done", [O, T, O, T, C], ("Icebox", "WIP", "Done")),
        ("A|B|Cancelled|D", [O, T, C, C], ("A", "B", "D")),
        ("To Do|Done", [O, C], ("To Do", "To Do", "Done")),
        ("Done", [C], ("Done", "Done", "Done")),
    ],
)
def test_what_the_names_mean(names, standings, said):
    listed = names.split("|")
    board = Statuses(listed, "to do")
    if names:
        assert [str(board.standing(name)) for name in listed] == standings
    assert tuple(board.said(task) for task in ("queued", "running", "done")) == said
    assert board.said("parked") == board.said("leased") == said[1]
    assert board.said("canceled") == said[0]
