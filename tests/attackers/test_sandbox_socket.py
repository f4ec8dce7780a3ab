"""An agent in a sandbox sees no store: its own commands reach Fairlane through its socket."""

from __future__ import annotations

import sys

import pytest

from tests.attackers.test_sandbox_walls import PAIRS, name_of, settle_in
from tests.daemon.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

FAIRLANE = f"{sys.executable} -m fairlane"


@pytest.mark.parametrize(("kind", "executor"), PAIRS)
def test_it_reports_adds_a_child_and_completes(world: World, kind: str, executor: str) -> None:
    settle_in(world, kind, executor)
    world.policy("retry.max_attempts = 1\nattempt.may_add.command = true\n")
    task = name_of(world)
    script = (
        f'set -e; test -z "$FAIRLANE_HOME"; {FAIRLANE} report --tokens input=5,output=7; '
        f"{FAIRLANE} add --id {task}-child -- true; if {FAIRLANE} list; then exit 9; fi; "
        f"{FAIRLANE} complete"
    )
    world.add({"id": task, "command": ["sh", "-c", script]})
    world.run()
    stderr = (world.home / "runs" / task / "1" / "stderr.log").read_text()
    assert world.statuses() == {task: "done", f"{task}-child": "done"}, stderr
    (attempt,) = world.attempts(task)
    assert (attempt.outcome, attempt.tokens) == ("succeeded", (5, 7, 0, 0)), stderr
