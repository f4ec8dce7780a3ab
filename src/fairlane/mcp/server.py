"""The MCP server: tools are listed and called, over stdio or over HTTP; errors are results."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

from fairlane import __version__
from fairlane.mcp.tools import OFFERED, arguments_of, result_of, tools
from fairlane.model.errors import FairlaneError, NotFound, did_you_mean

#: What came with a call over HTTP: the ASGI scope of its request. Over stdio it is empty.
CallScope: TypeAlias = Mapping[str, object]
#: Answers an operation, by its name, its arguments and that scope; raises `FairlaneError`.
Ask: TypeAlias = Callable[[str, Mapping[str, object], CallScope], Awaitable[Mapping[str, object]]]
_Context: TypeAlias = "ServerRequestContext[Any]"

INSTRUCTIONS = (
    "Fairlane is a queue of work for coding agents. `add` puts tasks into it, `why` tells what a"
    " task waits for, `status` and `list` tell how things stand. Everything answers with the JSON"
    " document that `fairlane VERB --json` prints."
)
_log = logging.getLogger(__name__)


def server_of(ask: Ask) -> Server[Any]:
    """A server whose tools are answered by `ask`."""
    offered = tools()

    async def list_tools(_: _Context, page: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=offered)

    async def call_tool(context: _Context, call: CallToolRequestParams) -> CallToolResult:
        scope = {} if context.request is None else context.request.scope
        try:
            if call.name not in OFFERED:
                raise NotFound(f"there is no tool {call.name!r}", did_you_mean(call.name, OFFERED))
            operation = OFFERED[call.name]
            arguments = arguments_of(operation, call.arguments)
            return result_of(await ask(operation.name, arguments, scope))
        except FairlaneError as error:
            return result_of(error.document(), failed=True)
        except Exception as error:  # agents read results; a broken protocol tells them nothing
            _log.exception("the tool %s failed", call.name)
            hint = "This is a bug in Fairlane; its log has the trace."
            bug = FairlaneError(f"{type(error).__name__}: {error}", hint, "internal")
            return result_of(bug.document(), failed=True)

    return Server(
        "fairlane",
        version=__version__,
        title="Fairlane",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(ask: Ask) -> None:
    """Serve one client over standard input and output, until its end closes."""
    server = server_of(ask)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def mcp_app(
    ask: Ask,
) -> tuple[StreamableHTTPASGIApp, Callable[[], AbstractAsyncContextManager[None]]]:
    """The ASGI application for streamable HTTP, and the context in which it must be served.

    Mount the first where clients are told to look (`/mcp`): it looks at no path. Enter the second,
    `async with running():`, in the lifespan of the server. It checks no token, no Host and no
    Origin: its caller does so first, and leaves in the scope what `ask` must know.
    """
    sessions = StreamableHTTPSessionManager(server_of(ask), stateless=True, json_response=True)
    return StreamableHTTPASGIApp(sessions), sessions.run
