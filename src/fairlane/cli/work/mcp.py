"""`fairlane mcp`: the verbs as tools for agents."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import warn
from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.service.desk import Desk

    Answer = Callable[[str, Mapping[str, Any]], dict[str, Any]]

#: How often it is asked again for work.
POLL_SECONDS = 0.3


@click.command("mcp")
@common
@pass_call
def command(call: Call) -> None:
    """The verbs as tools for agents, over MCP: standard input and output carry the protocol.

    An agent starts this itself, as one of its MCP servers; it ends when its input does.

    \b
    Example:
      fairlane mcp --home ~/queue
      fairlane mcp --url http://127.0.0.1:7117
    """
    try:
        from fairlane.mcp.server import serve_stdio
    except ModuleNotFoundError as error:
        from fairlane.cli.work.extras import install_hint

        message = f"MCP is not installed: no module {error.name}"
        raise Invalid(message, install_hint("mcp"), "no_extra") from error
    import anyio

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    if call.server is not None:
        remote = call.remote()
        anyio.run(serve_stdio, _asking(lambda name, given: remote.ask(name, **given)))
        return
    for name in ("fairlane.planner", "fairlane.workspaces"):
        import_module(name)  # two threads that import it at once would see half of it
    with call.desk() as desk:
        anyio.run(serve_stdio, _asking(lambda name, given: _answer(desk, name, given)))


def _asking(answer: Answer) -> Any:
    """Questions are answered beside the loop; who waits for work asks again and again.

    So nothing is leased to an agent that has gone away.
    """
    from anyio import sleep, to_thread

    async def ask(name: str, arguments: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        ends = monotonic() + _seconds(given.pop("wait", None))
        while True:
            document = await to_thread.run_sync(answer, name, given)
            if document.get("leases") != [] or monotonic() >= ends:
                return document
            await sleep(POLL_SECONDS)

    return ask


def _seconds(wait: Any) -> float:
    """How long to wait, at most as long as a call may."""
    from fairlane.service.operations.table import WAIT_MAX
    from fairlane.service.operations.values import length

    return min(length(wait) or 0, length(WAIT_MAX) or 0) / SECOND


def _answer(desk: Desk, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The home folder's answer; in direct mode what was added starts at once."""
    from fairlane.app.here import answer_here
    from fairlane.service.operations.checking import perform
    from fairlane.service.operations.table import OPERATIONS

    dry_run = bool(arguments.get("dry_run"))
    document = answer_here(desk, name, lambda: perform(desk, OPERATIONS[name], arguments), dry_run)
    while desk.warnings:
        warn(desk.warnings.pop(0))
    return document
