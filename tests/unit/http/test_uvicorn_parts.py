"""The server subclasses uvicorn's protocol; these are the parts of it that must stay."""

from __future__ import annotations

import asyncio
import inspect

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from fairlane.http.server import Connection, Server

OVERRIDDEN = [
    (kind, name)
    for kind, base in ((Connection, HttpToolsProtocol), (Server, uvicorn.Server))
    for name, value in vars(kind).items()
    if inspect.isfunction(value) and hasattr(base, name) and not name.startswith("__")
]


def test_the_hooks_of_the_parser_are_all_overridden():
    names = {name for _, name in OVERRIDDEN}
    assert names >= {
        "connection_made", "connection_lost", "data_received", "send_400_response",
        "on_headers_complete", "on_message_complete", "on_response_complete", "pause_writing",
        "resume_writing", "on_tick", "shutdown",
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), OVERRIDDEN)
def test_a_hook_takes_what_uvicorn_gives_it(kind, name):
    base = kind.__mro__[1]
    ours, theirs = (inspect.signature(getattr(each, name)).parameters for each in (kind, base))
    assert list(ours) == list(theirs)


def test_the_state_that_the_connection_reads_is_there():
    async def made() -> Connection:
        config = uvicorn.Config(app=lambda: None, http=Connection, log_config=None)
        config.load()
        return Connection(config, ServerState(), {})

    connection = asyncio.run(made())
    assert connection.connections == set()
    assert connection.cycle is None
    assert connection.loop is not None
    fields = inspect.getsource(RequestResponseCycle.__init__)
    assert "self.response_started = False" in fields
    assert "self.response_complete = False" in fields
