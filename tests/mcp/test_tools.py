"""The tools as the SDK's own client sees them, over stdio."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import anyio
import pytest

from fairlane.app import Fairlane
from fairlane.service.operations.table import OPERATIONS
from tests.afar.served import ENV, over_http, serving, stdio
from tests.waiting import LIMIT_SECONDS

pytest.importorskip("mcp")
pytestmark = pytest.mark.slow

TOOLS = {each.tool_name: each for each in OPERATIONS.values() if each.tool}
#: Every tool once, in an order in which each has something to do.
CALLS = [
    ("add", {"tasks": [{"id": "a", "prompt": "Fix"}, {"id": "b"}, {"id": "c"}]}),
    ("list", {"status": ["queued"], "limit": 2}),
    ("show", {"task": "a"}),
    ("why", {"task": "a"}),
    ("plan", {}),
    ("lease", {"limit": 2, "worker": "box", "wait": "1s"}),
    ("heartbeat", {"lease": "L1"}),
    ("report", {"lease": "L1", "tokens": 5, "note": "half"}),
    ("logs", {"task": "a", "limit": 10}),
    ("diff", {"task": "a", "stat": True}),
    ("complete", {"lease": "L1", "tokens": {"input": 3, "output": 9}, "result": {"ok": True}}),
    ("release", {"lease": "L2", "failed": True, "reason": "exit 1", "resets_at": None}),
    ("retry", {"ids": ["b"]}),
    ("cancel", {"ids": ["c"]}),
    ("pause", {"scope": "project:default"}),
    ("resume", {"scope": "project:default"}),
    ("reclaim", {}),
    ("status", {}),
    ("policy_set", {"changes": {"caps.all": 2}}),
    ("policy_show", {}),
]


async def walk(client):
    """Call every tool once; the client itself holds each result against its schema."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(listed) == set(TOOLS) == {name for name, _ in CALLS}
    answers = {}
    for name, arguments in CALLS:
        result = await client.call_tool(name, arguments)
        if name == "diff":  # it has no repository
            assert result.structured_content["error"]["code"] == "no_work"
            continue
        assert not result.is_error, (name, result)
        assert json.loads(result.content[0].text) == result.structured_content
        answers[name] = result.structured_content
    return listed, answers


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_over_stdio(tmp_path, mode):
    async def main():
        async with stdio("mcp", "--home", str(tmp_path / "home"), mode=mode) as client:
            return await walk(client)

    listed, answers = anyio.run(main)
    assert answers["lease"]["leases"][0]["task"] == "a"
    assert answers["lease"]["leases"][0]["meta"] == {}
    assert (answers["complete"]["status"], answers["release"]["status"]) == ("done", "queued")
    assert answers["list"]["cursor"] is not None
    for name, tool in listed.items():
        assert tool.description
        assert tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations.read_only_hint == TOOLS[name].reads
        assert tool.annotations.open_world_hint is False
    assert listed["plan"].annotations.read_only_hint is True
    assert listed["cancel"].annotations.destructive_hint is True
    assert listed["add"].annotations.destructive_hint is False
    assert listed["why"].input_schema["required"] == ["task"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_over_http_and_over_a_url(tmp_path, mode):
    pytest.importorskip("uvicorn")

    async def main(url, token):
        async with over_http(url, token, mode) as client:
            await walk(client)
        async with stdio("mcp", "--url", url, mode=mode, FAIRLANE_TOKEN=token) as client:
            found = (await client.call_tool("show", {"task": "a"})).structured_content
            assert found["task"]["status"] == "done"
            added = await client.call_tool("add", {"tasks": [{"id": "d"}]})
            assert added.structured_content["tasks"][0]["created"] is True

    home = tmp_path / "home"
    with serving(home) as url:
        anyio.run(main, url, (home / "token").read_text().strip())
    with Fairlane(home) as queue:
        assert queue.show("d")["task"]["status"] == "queued"


def test_what_goes_wrong_is_a_result(tmp_path):
    wrong: list[tuple[str, dict[str, Any], str, str]] = [
        ("show", {"task": "nobody"}, "unknown_task", "there is no task 'nobody'"),
        ("why", {}, "invalid", "why: task is missing"),
        ("why", {"tsk": "a"}, "invalid", "unknown argument 'tsk'"),
        ("list", {"limit": "many"}, "invalid", "limit: not a whole number: 'many'"),
        ("list", {"limit": 0}, "invalid", "limit: 0 is out of range"),
        ("lease", {"wait": "soon"}, "invalid", "not a duration: 'soon'"),
        ("add", {"tasks": [{"promt": "x"}]}, "invalid", "unknown field 'promt'"),
        ("clear", {}, "not_found", "there is no tool 'clear'"),
    ]

    async def main():
        async with stdio("mcp", "--home", str(tmp_path)) as client:
            for name, arguments, code, message in wrong:
                result = await client.call_tool(name, arguments)
                error = result.structured_content["error"]
                assert result.is_error
                assert (error["code"], error["message"]) == (code, message)
                assert error["hint"]
            return await client.call_tool("list", {})

    assert anyio.run(main).structured_content["tasks"] == []


def test_an_agent_acts_as_its_task(tmp_path):
    async def main():
        async with stdio("mcp", "--home", str(tmp_path), FAIRLANE_TASK="t7") as client:
            await client.call_tool("add", {"tasks": [{"id": "child"}]})

    anyio.run(main)
    with Fairlane(tmp_path) as queue:
        told = queue.show("child")
    assert told["events"][0]["data"]["by"] == "task:t7"
    assert told["task"]["parent"] is None


def test_one_who_waits_keeps_nobody_waiting(tmp_path):
    async def main():
        async with (
            stdio("mcp", "--home", str(tmp_path)) as client,
            anyio.create_task_group() as two,
        ):
            leased = []

            async def wait():
                result = await client.call_tool("lease", {"limit": 1, "wait": "60s"})
                leased.extend(result.structured_content["leases"])

            two.start_soon(wait)
            assert (await client.call_tool("status", {})).structured_content["queued"]["total"] == 0
            await client.call_tool("add", {"tasks": [{"id": "a"}]})
            with anyio.fail_after(LIMIT_SECONDS):
                while not leased:
                    await anyio.sleep(0.05)
            assert leased[0]["task"] == "a"

    anyio.run(main)


def started(*words, **env):
    pipe = subprocess.PIPE
    told = [sys.executable, "-m", "fairlane", *words]
    return subprocess.Popen(told, env=ENV | env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_standard_output_carries_only_the_protocol_and_it_ends_with_its_input(tmp_path):
    (tmp_path / "policy.toml").write_text("caps.all = 'wrong'\n")
    me: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}}
    me |= {"clientInfo": {"name": "test", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": me}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    status = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "status"}}
    with started("mcp", "--home", str(tmp_path)) as server:
        for each in (asked, ready, status):
            server.stdin.write(json.dumps(each) + "\n")
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        rest, said = server.communicate(timeout=LIMIT_SECONDS)
    assert [each["id"] for each in answers] == [1, 2]
    assert answers[1]["result"]["isError"] is False
    assert (rest, server.returncode) == ("", 0)
    assert said.startswith("warning: ")  # the broken policy, where people read it


def test_without_the_extra_it_says_what_to_install(tmp_path):
    hidden = "import sys; sys.modules['mcp'] = None; sys.modules['mcp_types'] = None\n"
    program = (
        f"{hidden}from fairlane.cli.main import run\nsys.exit(run(['mcp', '--home', '{tmp_path}']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=ENV, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "MCP is not installed" in done.stderr
    assert "-m pip install 'mcp>=" in done.stderr


def test_a_server_that_is_not_there_is_a_result_too():
    async def main():
        async with stdio("mcp", "--url", "http://127.0.0.1:9", FAIRLANE_TOKEN="x") as client:
            return await client.call_tool("status", {})

    result = anyio.run(main)
    assert result.is_error
    assert result.structured_content["error"]["code"] == "unreachable"
