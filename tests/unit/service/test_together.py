"""Calls that came at the same time get what single ones would have got."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.engine.end_attempt import Report
from fairlane.model.errors import FairlaneError
from fairlane.service import pull
from fairlane.service.queue import pause
from tests import holder
from tests.unit.contexts import TestContext

SITUATIONS = {
    "plenty": ("", 10, None),
    "all of it": ("", 4, None),
    "too little": ("", 3, None),
    "nothing": ("", 0, None),
    "a cap": ("[caps]\nall = 2\n", 6, None),
    "a batch": ("[capacity]\nbatch = 3\n", 6, None),
    "everything paused": ("", 6, "all"),
    "its project paused": ("", 6, "project:default"),
}


def prepared(home: Path, policy: str, tasks: int, paused: str | None) -> TestContext:
    home.mkdir()
    found = TestContext(home)
    found.policy(f'preset = "balanced"\n{policy}')
    if tasks:
        found.add(*({"prompt": f"do {number}"} for number in range(tasks)))
    if paused:
        pause(found.context, paused)
    return found


@pytest.mark.parametrize("limits", [(1, 1, 1, 1), (2, 1), (1, 3), (1, 2), (5, 5)])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_requests_that_came_together_are_answered_as_one_after_the_other(
    tmp_path: Path, situation: str, limits: tuple[int, ...]
) -> None:
    first = prepared(tmp_path / "one", *SITUATIONS[situation])
    second = prepared(tmp_path / "all", *SITUATIONS[situation])
    alone = [holder.lease(first.context, limit, "box", ()) for limit in limits]
    assert pull.lease_batch(second.context, limits, "box", ()) == alone


def ends(answers: list[Any]) -> list[str]:
    return [
        each.error_code if isinstance(each, FairlaneError) else each.get("code", each["status"])
        for each in answers
    ]


def test_results_that_came_together_have_answers_of_their_own(tmp_path: Path) -> None:
    world = prepared(tmp_path / "home", "", 4, None)
    mine = [each["lease"] for each in world.lease(4)]
    world.fail(mine[3])
    told = [
        (lease, Report((0, 7, 0, 0))) for lease in (mine[0], "nobody", mine[1], mine[0], mine[3])
    ]
    answers = pull.finish_each(world.context, told)
    assert ends(answers) == ["done", "unknown_lease", "done", "already_done", "lease_ended"]
    assert world.status_of("t1", "t2", "t3", "t4") == ["done", "done", "leased", "queued"]
