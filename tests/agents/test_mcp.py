"""The real agents with Fairlane as their MCP server: agents queue work for agents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fairlane.app import Fairlane
from fairlane.model.task import Outcome
from fairlane.service.home.setup import home_token
from tests.afar.served import serving
from tests.agents.model_api import ModelApi, say, use
from tests.agents.running import Runner
from tests.launching import Launch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]
ROOT = Path(__file__).parents[2]


@dataclass
class Claude(Runner):
    """Claude Code that is told of one MCP server, and may use all of its tools."""

    server: dict[str, Any] = field(default_factory=dict)

    def launch(self, prompt: str, session: str | None) -> Launch:
        told = self.home / "mcp.json"
        told.write_text(json.dumps({"mcpServers": {"fairlane": self.server}}))
        more = ("--mcp-config", str(told), "--strict-mcp-config", "--allowedTools=mcp__fairlane")
        launch = super().launch(prompt, session)
        return replace(launch, argv=(*launch.argv, *more))


@dataclass
class Codex(Runner):
    """Codex that is told of one MCP server, and waits for it."""

    server: dict[str, Any] = field(default_factory=dict)

    def launch(self, prompt: str, session: str | None) -> Launch:
        told = self.server | {"required": True, "default_tools_approval_mode": "approve"}
        env = ",".join(f"{name}={json.dumps(value)}" for name, value in told.pop("env").items())
        values = {name: json.dumps(value) for name, value in told.items()} | {"env": f"{{{env}}}"}
        options = [
            word
            for name in values
            for word in ("-c", f"mcp_servers.fairlane.{name}={values[name]}")
        ]
        launch = super().launch(prompt, session)
        return replace(launch, argv=(*launch.argv[:2], *options, *launch.argv[2:]))


@contextmanager
def over_stdio(home: Path) -> Iterator[dict[str, Any]]:
    """Started by the agent itself, as an attempt of task t0 would."""
    env = {"PYTHONPATH": str(ROOT / "src"), "FAIRLANE_TASK": "t0"}
    args = ["-m", "fairlane", "mcp", "--home", str(home)]
    yield {"command": sys.executable, "args": args, "env": env}


@contextmanager
def over_http(home: Path) -> Iterator[dict[str, Any]]:
    """A server that is there already."""
    with serving(home) as url:
        headers = {"Authorization": f"Bearer {home_token(home)}"}
        yield {"type": "http", "url": f"{url}/mcp", "headers": headers}


def results(api: ModelApi) -> list[dict[str, Any]]:
    """What our tools answered, as the model was told it."""
    blocks = [
        block
        for message in api.requests[-1]["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    texts = [
        block["content"] if isinstance(block["content"], str) else block["content"][0]["text"]
        for block in blocks
    ]
    return [json.loads(text) for text in texts if text.startswith("{")]


@pytest.mark.parametrize(("way", "actor"), [(over_stdio, "task:t0"), (over_http, "ana")])
def test_claude_code_adds_a_task_and_asks_why_it_waits(runner_of, repository, tmp_path, way, actor):
    home = tmp_path / "queue"
    with Fairlane(home) as queue:
        queue.pause("kind:review", "the reviewer is away")
    task = {"id": "look", "prompt": "Review the login form", "kind": "review"}
    script = (
        use("WaitForMcpServers"),  # on a busy machine the first turn comes before the tools
        use("mcp__fairlane__add", tasks=[task]),
        use("mcp__fairlane__why", task="look"),
        use("mcp__fairlane__show", task="nobody"),
        say("Queued."),
    )
    with ModelApi(*script) as api, way(home) as server:
        plain = runner_of("claude", api)
        runner = Claude("claude", api, plain.programs, plain.home, server=server)
        verdict = runner.run(repository, "Queue a review, and tell me when it starts.")
    assert verdict.outcome is Outcome.SUCCEEDED, (verdict, runner.stderr)
    assert verdict.summary == "Queued."
    added, why, nobody = results(api)
    assert added["tasks"] == [{"id": "look", "created": True, "status": "queued", "position": 1}]
    assert why["verdict"].startswith("held: kind review is paused")
    assert why["verdict"].endswith("the reviewer is away")
    assert nobody["error"]["code"] == "unknown_task"
    with Fairlane(home) as queue:
        kept = queue.show("look")
    assert kept["task"]["prompt"] == "Review the login form"
    assert kept["events"][0]["data"]["by"] == actor


def test_codex_adds_a_task_and_asks_why_it_waits(runner_of, repository, tmp_path):
    home = tmp_path / "queue"
    script = (
        use("mcp__fairlane/add", tasks=[{"id": "a"}, {"id": "b", "needs": ["a"]}]),
        use("mcp__fairlane/why", task="b"),
        say("Queued."),
    )
    with ModelApi(*script) as api, over_stdio(home) as server:
        plain = runner_of("codex", api)
        runner = Codex("codex", api, plain.programs, plain.home, server=server)
        verdict = runner.run(repository, "Queue a and b.")
    assert verdict.outcome is Outcome.SUCCEEDED, (verdict, runner.stderr)
    said = [each["output"] for each in api.requests[-1]["input"] if "output" in each]
    assert "waiting: waits for a" in json.dumps(said[-1]), said
    with Fairlane(home) as queue:
        assert [row["id"] for row in queue.list()["tasks"]] == ["a", "b"]
        assert queue.show("b")["events"][0]["data"]["by"] == "task:t0"
