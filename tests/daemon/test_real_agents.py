"""The real claude and codex under the daemon, against a model API on loopback."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlane.service import explain
from tests.agents import conftest as installed
from tests.agents.model_api import (
    CACHE_READ,
    CACHE_WRITE,
    HANG,
    INPUT,
    OUTPUT,
    Answer,
    ModelApi,
    refuse,
    say,
    use,
)
from tests.agents.running import gives_namespaces, temporary_beside
from tests.daemon.world import World, until
from tests.workspaces.yard import git, look, make_repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]
programs = installed.programs

AGENTS = ("claude", "codex")
#: A real agent takes a second or two to begin, and eight of them may share two cores.
SECONDS = 300.0
FILE = re.compile(r"Make the file (\S+?)\.(?![\w/])")
SETTINGS = """
[worker]
slots = 8
[agents.claude.env]
PATH = "{path}"
HOME = "{home}"
TMPDIR = "{temporary}"
ANTHROPIC_BASE_URL = "{url}"
ANTHROPIC_API_KEY = "none"
CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1"
CLAUDE_CODE_MAX_RETRIES = "1"
[agents.codex]
model = "m1"
[agents.codex.env]
PATH = "{path}"
HOME = "{home}"
TMPDIR = "{temporary}"
FAKE_KEY = "none"
"""
CODEX = """
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 0
"""


class Writer(ModelApi):
    """Makes the file that the prompt names, then says so, however many ask at once."""

    def next_answer(self, request: dict[str, Any]) -> tuple[int, Answer]:
        number, _ = super().next_answer(request)
        text = json.dumps(request.get("messages") or request.get("input"))
        if '"tool_result"' in text or '"function_call_output"' in text:
            return number, say("Done")
        found = FILE.search(text)
        if found is None:
            return number, say("Hello")
        if "messages" in request:
            return number, use("Write", file_path=found[1], content="made\n")
        return number, use("exec_command", cmd=f"echo made > {found[1]}", yield_time_ms=10_000)


@pytest.fixture
def settle_in(world: World, programs: Path, tmp_path: Path) -> Callable[[ModelApi], World]:
    """The world, with agents that ask this model API and know nothing of this user."""
    home = tmp_path / "nobody"
    (home / ".codex").mkdir(parents=True)
    world.seconds = SECONDS

    def settled(api: ModelApi) -> World:
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        places = {"path": path, "home": home, "temporary": temporary_beside(home)}
        world.settings(SETTINGS.format(**places, url=api.url))
        (home / ".codex" / "config.toml").write_text(CODEX.format(url=api.url))
        return world

    return settled


def add(world: World, agent: str, name: str, prompt: str = "Say hello", **more: Any) -> None:
    world.add({"id": name, "agent": agent, "prompt": prompt, **more})


def test_four_of_each_in_two_repositories(
    settle_in: Callable[[ModelApi], World], tmp_path: Path
) -> None:
    repos = {name: make_repository(tmp_path / name) for name in ("web", "api")}
    with Writer(say("Hello")) as api:
        world = settle_in(api)
        for project, folder in repos.items():
            world.fairlane("project", "add", project, "--repo", str(folder))
        before = {name: look(folder) for name, folder in repos.items()}
        for agent in AGENTS:
            for number, project in enumerate(("web", "api", "web", "api")):
                name = f"{agent}-{number}"
                file = world.home / "worktrees" / project / name / "made.txt"
                add(world, agent, name, f"Make the file {file}.", project=project)
        world.run()
    assert set(world.statuses().values()) == {"done"}, world.statuses()
    assert {name: look(folder) for name, folder in repos.items()} == before
    for agent in AGENTS:
        if agent == "codex" and not gives_namespaces():
            pytest.skip("claude did its part, but this kernel gives codex no sandbox")
        for number, project in enumerate(("web", "api", "web", "api")):
            name = f"{agent}-{number}"
            assert git(repos[project], "show", f"fairlane/{name}:made.txt") == "made"
            check_usage(agent, world.fairlane("show", name)["attempts"])
    stats = {row["project"]: row for row in world.fairlane("stats")["projects"]}
    for project in repos:
        assert stats[project]["completions"] == 4
        assert stats[project]["tokens"] >= 4 * 2 * (INPUT + OUTPUT)
        assert stats[project]["usd"] > 0
    assert world.processes() == []


def check_usage(agent: str, attempts: list[dict[str, Any]]) -> None:
    """Two answers each: the use of a tool, and the last words."""
    (attempt,) = attempts
    written = CACHE_WRITE if agent == "claude" else 0
    counters = {"input": INPUT, "output": OUTPUT, "cache_read": CACHE_READ, "cache_write": written}
    assert attempt["tokens"] == {name: 2 * count for name, count in counters.items()}
    assert (attempt["usd"] is not None) == (agent == "claude")
    assert attempt["session"]
    assert attempt["result"] == {"summary": "Done", "answer": "Done"}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_throttle_cools_the_pool_and_costs_no_attempt(
    settle_in: Callable[[ModelApi], World], agent: str
) -> None:
    script = [refuse(429, retry_after="8")] * (2 if agent == "claude" else 1)
    with ModelApi(*script, say("Hello")) as api:
        world = settle_in(api)
        world.policy('cooldown.base = "8s"\n')
        add(world, agent, "t1", max_attempts=1)
        world.up()
        until(lambda: [each.outcome for each in world.attempts("t1")][:1] == ["throttled"], SECONDS)
        add(world, agent, "t2")
        with world.context() as context:
            held = explain.why(context, "t2")["holds"]
        until(lambda: set(world.statuses().values()) == {"done"}, SECONDS)
    assert [hold["code"] for hold in held] == ["cooldown"]
    assert [each.outcome for each in world.attempts("t1")] == ["throttled", "succeeded"]
    first, second = world.attempts("t1")
    assert first.session == second.session  # it went on where it was
    assert second.leased_at >= first.ended_at + 7_000_000
    assert world.fairlane("show", "t1")["task"]["failures"] == 0


@pytest.mark.parametrize("agent", AGENTS)
def test_an_error_of_the_provider_is_a_failure(
    settle_in: Callable[[ModelApi], World], agent: str
) -> None:
    with ModelApi(refuse(400, "invalid_request_error")) as api:
        world = settle_in(api)
        add(world, agent, "t1", max_attempts=1)
        world.run()
    assert world.statuses() == {"t1": "parked"}
    assert [each.outcome for each in world.attempts("t1")] == ["failed"]
    assert world.fairlane("show", "t1")["task"]["reason"].endswith("(attempt 1 of 1)")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_cancel_in_the_middle_leaves_no_process(
    settle_in: Callable[[ModelApi], World], agent: str
) -> None:
    with ModelApi(HANG) as api:
        world = settle_in(api)
        add(world, agent, "t1")
        world.up()
        assert api.asked.wait(SECONDS)
        assert world.processes()
        world.fairlane("cancel", "t1")
        until(lambda: world.statuses()["t1"] == "canceled", SECONDS)
    assert world.processes() == []
