"""The real claude and codex in bubblewrap: they commit, and read no secret."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fairlane.executors.sandbox import machine
from fairlane.service.home.setup import home_token
from tests.agents import conftest as installed
from tests.agents.model_api import Answer, ModelApi, say, use
from tests.agents.running import temporary_beside
from tests.daemon import conftest as daemon
from tests.daemon.test_real_agents import CODEX, SECONDS, SETTINGS
from tests.daemon.world import World
from tests.workspaces.yard import git, look, make_repository

PROBLEM = machine.bwrap_problem()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1000),
    pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM),
]
programs, world = installed.programs, daemon.world

SANDBOX = """
[agents.claude]
permissions = "full"
[sandbox]
kind = "bwrap"
"""


class Thief(ModelApi):
    """Has the agent run one command, and then end."""

    command = ""

    def next_answer(self, request: dict[str, Any]) -> tuple[int, Answer]:
        number, _ = super().next_answer(request)
        text = json.dumps(request.get("messages") or request.get("input"))
        if '"tool_result"' in text or '"function_call_output"' in text:
            return number, say("Done")
        if "Steal" not in text:
            return number, say("Hello")
        if "messages" in request:
            return number, use("Bash", command=self.command, description="steal")
        return number, use("exec_command", cmd=self.command, yield_time_ms=10_000)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_real_agent_commits_and_steals_nothing(
    world: World, programs: Path, tmp_path: Path, agent: str
) -> None:
    home = tmp_path / "nobody"
    (home / ".codex").mkdir(parents=True)
    repo = make_repository(tmp_path / "web")
    canary = tmp_path / "canary"
    canary.write_text("sings")
    home_token(world.home)
    world.seconds = SECONDS
    thief = Thief(say("Hello"))
    with thief as api:
        secrets = [canary, world.home / "fairlane.db", world.home / "token"]
        reads = " ".join(f"'{path}'" for path in secrets)
        thief.command = f"cat {reads} > stolen; git add -A && git commit -qm 'by the agent'"
        places = {"path": f"{programs}{os.pathsep}{os.environ['PATH']}", "home": home}
        env = SETTINGS.format(**places, temporary=temporary_beside(home), url=api.url)
        env = env.replace("[agents.claude.env]\n", '[agents.claude.env]\nIS_SANDBOX = "1"\n')
        world.settings(env + SANDBOX)
        (home / ".codex" / "config.toml").write_text(CODEX.format(url=api.url))
        world.fairlane("project", "add", "web", "--repo", str(repo))
        before = look(repo)
        world.add({"id": "t1", "agent": agent, "prompt": "Steal", "project": "web"})
        world.run()
    assert world.statuses() == {"t1": "done"}
    assert look(repo) == before
    assert git(repo, "log", "-1", "--format=%s", "fairlane/t1") == "by the agent"
    assert git(repo, "show", "fairlane/t1:stolen") == ""
    assert world.processes() == []
