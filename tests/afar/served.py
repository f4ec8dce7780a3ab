"""Servers for tests: `fairlane serve` and `fairlane mcp` in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.waiting import LIMIT_SECONDS

if TYPE_CHECKING:
    from mcp import Client

ROOT = Path(__file__).parents[2]
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT / "src")}
ENV |= {"USER": "ana"}


@contextmanager
def serving(home: Path, *before: str) -> Iterator[str]:
    """The URL of a server of this home folder, without a page; `before` stands before the verb."""
    words = [sys.executable, "-m", "fairlane", "--home", str(home), *before]
    words += ["serve", "--port", "0", "--no-page", "--until-eof"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=ENV, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            said = server.stdout.readline()
            assert said.startswith("serving http://"), said
            yield said.split()[1]
        finally:
            server.stdin.close()
            try:
                server.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()


@asynccontextmanager
async def stdio(*words: str, mode: Any = "auto", **env: str) -> AsyncIterator[Client]:
    """The SDK's client of `fairlane WORDS`, which speaks MCP."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    told = ["-m", "fairlane", *words]
    server = StdioServerParameters(command=sys.executable, args=told, env=ENV | env)
    async with Client(stdio_client(server), mode=mode) as client:
        yield client


@asynccontextmanager
async def over_http(url: str, token: str, mode: Any = "auto") -> AsyncIterator[Client]:
    """The SDK's client of a server's `/mcp`."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    headers = {"Authorization": f"Bearer {token}"}
    async with (
        create_mcp_http_client(headers) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client
