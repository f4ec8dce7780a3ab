"""The real claude and codex: what a check printed reaches the session that goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.model_api import Answer, ModelApi, say, use
from tests.checks.coders import starts, waits
from tests.daemon import test_real_agents as real
from tests.daemon.world import World, until
from tests.workspaces.yard import git, make_repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]
programs, settle_in = real.programs, real.settle_in

PROMPT = "Write the word right into the file answer."
FAILED = "3 of 7 failed, see \\033[31mtest_answer\\033[0m"


def conversation(request: dict[str, Any]) -> str:
    return json.dumps(request.get("messages") or request.get("input"))


class Hasty(ModelApi):
    """Says that it is done; only a failed check makes it work."""

    def next_answer(self, request: dict[str, Any]) -> tuple[int, Answer]:
        number, _ = super().next_answer(request)
        text = conversation(request)
        if "The check `answer` failed" not in text:
            return number, say("I have written it.")
        if '"tool_result"' in text or "messages" not in request:
            return number, say("Now I have.")
        return number, use("Write", file_path=self.script[0].text, content="right\n")

    def resumed(self) -> list[str]:
        """The conversations in which the check's output was sent."""
        texts = [conversation(request) for request in self.requests]
        return [text for text in texts if "The check `answer` failed (exit 1)" in text]


@pytest.mark.parametrize("agent", real.AGENTS)
def test_the_session_goes_on_with_what_the_check_printed(
    settle_in: Callable[[ModelApi], World], tmp_path: Path, agent: str
) -> None:
    repo, seen = make_repository(tmp_path / "web"), tmp_path / "seen"
    again = f"test -e {seen} || {{ touch {seen}; printf '{FAILED}'; exit 1; }}"
    fixed = f"test -e answer || {{ printf '{FAILED}'; exit 1; }}"
    script = fixed if agent == "claude" else again  # codex may have no sandbox to write in
    check = {"name": "answer", "argv": ["sh", "-c", script]}
    api = Hasty(say(""))
    with api:
        world = settle_in(api)
        api.script = [say(str(world.home / "worktrees" / "web" / "t1" / "answer"))]
        world.fairlane("project", "add", "web", "--repo", str(repo))
        real.add(world, agent, "t1", PROMPT, project="web", checks=[check], max_attempts=1)
        world.run()
    first, second = world.attempts("t1")
    assert (first.outcome, first.detail) == ("check_failed", "check answer: exit 1")
    assert (second.outcome, first.session) == ("succeeded", second.session)
    shown = world.fairlane("show", "t1")["task"]
    assert (shown["status"], shown["failures"]) == ("done", 0)
    assert api.resumed()
    for text in api.resumed():
        assert PROMPT in text
        assert "I have written it." in text
        assert "> 3 of 7 failed, see \\\\x1b[31mtest_answer" in text
    if agent == "claude":
        assert git(repo, "show", "fairlane/t1:answer") == "right"
    assert world.processes() == []


@pytest.mark.parametrize("agent", real.AGENTS)
def test_the_session_goes_along_to_another_folder(
    settle_in: Callable[[ModelApi], World], tmp_path: Path, agent: str
) -> None:
    repo, seen, gate = make_repository(tmp_path / "web"), tmp_path / "seen", tmp_path / "gate"
    script = f"test -e {seen} || {{ touch {seen}; {waits(gate)}; echo 3 of 7 failed; exit 1; }}"
    check = {"name": "answer", "argv": ["sh", "-c", script]}
    api = Hasty(say(str(tmp_path / "elsewhere")))
    with api:
        world = settle_in(api)
        world.fairlane("project", "add", "web", "--repo", str(repo), "--workspace", "north")
        real.add(world, agent, "t1", PROMPT, project="web", checks=[check], max_attempts=1)
        world.up()
        until(lambda: starts(gate), real.SECONDS)
        world.fairlane("project", "set", "web", "--workspace", "south")
        gate.touch()
        until(lambda: world.statuses()["t1"] in ("done", "parked"), real.SECONDS)
    first, second = world.attempts("t1")
    assert (first.outcome, second.outcome) == ("check_failed", "succeeded")
    assert (first.workspace, second.workspace) == ("north", "south")
    assert first.work["path"] != second.work["path"]
    assert api.resumed()
    for text in api.resumed():
        assert PROMPT in text
        assert "I have written it." in text
        assert "> 3 of 7 failed" in text


@pytest.mark.parametrize("agent", real.AGENTS)
def test_the_session_is_told_of_work_that_was_taken_in_meanwhile(
    settle_in: Callable[[ModelApi], World], tmp_path: Path, agent: str
) -> None:
    repo, seen, gate = make_repository(tmp_path / "web"), tmp_path / "seen", tmp_path / "gate"
    script = f"test -e {seen} || {{ touch {seen}; {waits(gate)}; echo 3 of 7 failed; exit 1; }}"
    check = {"name": "answer", "argv": ["sh", "-c", script]}
    writes = ["sh", "-c", 'echo "$FAIRLANE_ATTEMPT" > "fix$FAIRLANE_ATTEMPT"']
    need = {"id": "t1", "project": "web", "command": writes}
    api = Hasty(say(str(tmp_path / "elsewhere")))
    with api:
        world = settle_in(api)
        world.fairlane("project", "add", "web", "--repo", str(repo))
        world.add(need)
        real.add(world, agent, "t2", PROMPT, project="web", checks=[check], needs=["t1"])
        world.up()
        until(lambda: starts(gate), real.SECONDS)
        world.add(need, again=True)
        until(lambda: len(world.attempts("t1")) == 2 and world.statuses()["t1"] == "done")
        gate.touch()
        until(lambda: world.statuses()["t2"] in ("done", "parked"), real.SECONDS)
    first, second = world.attempts("t2")
    assert (first.outcome, second.outcome) == ("check_failed", "succeeded")
    assert first.session == second.session
    assert {"fix1", "fix2"} <= {path.name for path in Path(second.work["path"]).iterdir()}
    assert api.resumed()
    for text in api.resumed():
        assert "t1, branch fairlane/t1 (its work is in your folder)" in text
        assert "new work of t1 was taken in. Your branch is fairlane/t2" in text
        assert "> t1: Changed: fix1 (+1 -0), fix2 (+1 -0)" in text
