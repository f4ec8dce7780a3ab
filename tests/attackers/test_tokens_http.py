"""An attempt at a server: its token bounds tools over MCP, and commands over a URL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("mcp")
from fairlane.service.operations.table import OPERATIONS
from tests.attackers.test_tokens_inside import run
from tests.http.served import ENV, Server, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("home")) as found:
        found.ask("POST", "/tasks", {"tasks": [{"id": "own", "prompt": "x"}]})
        yield found


@pytest.fixture(scope="module")
def lease(server: Server) -> str:
    found = server.ask("POST", "/leases", {"limit": 1, "worker": "box1"})["leases"]
    return str(found[0]["lease"])


@pytest.fixture(scope="module")
def badge(server: Server, lease: str) -> str:
    return str(server.ask("POST", f"/leases/{lease}/token")["token"])


def tool(server: Server, badge: str, name: str, **arguments: object) -> tuple[bool, Any]:
    """Whether a tool failed, and its document."""
    call = {"name": name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepts = "application/json, text/event-stream"
    reply = server.call("POST", "/mcp", message, token=badge, Accept=accepts)
    assert reply.status == 200, reply
    result = reply.document["result"]
    return result["isError"], json.loads(result["content"][0]["text"])


def test_tools_are_bounded_as_the_token_is(server: Server, badge: str, lease: str):
    failed, document = tool(server, badge, "heartbeat", lease=lease)
    assert (failed, document["status"]) == (False, "running")
    failed, document = tool(server, badge, "add", tasks=[{"id": "child", "prompt": "y"}])
    assert (failed, document["tasks"][0]["created"]) == (False, True)
    assert server.ask("GET", "/tasks/child")["task"]["parent"] == "own"
    failed, document = tool(server, badge, "add", tasks=[{"agent": "shell", "command": ["id"]}])
    assert (failed, document["error"]["code"]) == (True, "may_add")
    for name, operation in OPERATIONS.items():
        if operation.tool and operation.attempt in ("", "look"):
            failed, document = tool(server, badge, operation.tool_name, **operation.example)
            assert (failed, document["error"]["code"]) == (True, "forbidden"), name


def test_a_command_over_a_url_shows_the_token_of_its_attempt(server: Server, lease: str):
    url = f"http://127.0.0.1:{server.port}"
    env = ENV | {"FAIRLANE_HOME": str(server.home), "FAIRLANE_LEASE": lease}
    added = run(env, "--url", url, "--json", "add", "Do a part", "--id", "part")
    assert added.returncode == 0, added
    assert server.ask("GET", "/tasks/part")["events"][0]["data"]["by"] == f"lease:{lease}"
    beyond = run(env, "--url", url, "--json", "add", "--", "id")
    assert beyond.returncode == 1
    assert json.loads(beyond.stdout)["error"]["code"] == "may_add"
    refused = run(env, "--url", url, "--json", "list")
    assert json.loads(refused.stdout)["error"]["code"] == "forbidden"
    paused = run(env, "--url", url, "--json", "pause")
    assert json.loads(paused.stdout)["error"]["code"] == "inside_attempt"
