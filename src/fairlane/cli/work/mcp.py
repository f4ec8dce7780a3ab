"""`fairlane mcp`: the verbs as tools for agents."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import warn
from fairlane.clock import SYSTEM
from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fairlane.engine.context import Context
    from fairlane.mcp.server import Ask

    Answer = Callable[[str, Mapping[str, object]], Mapping[str, object]]

#: How often it is asked again for work.
POLL_SECONDS = 0.3
#: How long a signal waits for the transaction that is open.
END_SECONDS = 3.0


@click.command("mcp")
@takes_call
def command(call: Call) -> None:
    """The verbs as tools for agents, over MCP: standard input and output carry the protocol.

    An agent starts this itself, as one of its MCP servers. It ends with its input, or by a signal.

    \b
    Example:
      fairlane mcp --home ~/queue
      fairlane mcp --url http://127.0.0.1:7117
    """
    try:
        from fairlane.mcp.server import serve_stdio
    except ModuleNotFoundError as error:
        from fairlane.cli.work.serve import install_hint

        message = f"MCP is not installed: no module {error.name}"
        raise Invalid(message, install_hint("mcp"), "no_extra") from error
    import anyio

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    there = call.elsewhere()
    if there is not None:
        ask = _asking(lambda name, values: there.ask(name, **values))
        anyio.run(_until_signal, lambda: None, serve_stdio, ask)
        return
    for name in ("fairlane.planner", "fairlane.workspaces"):
        import_module(name)  # two threads that import it at once would see half of it
    with call.context() as context:
        ask = _asking(lambda name, values: _answer(context, name, values))
        anyio.run(_until_signal, context.store.close, serve_stdio, ask)


async def _until_signal(
    close: Callable[[], None], serve: Callable[[Ask], Awaitable[None]], ask: Ask
) -> None:
    """Serve; end at a signal although a thread waits for standard input, which nothing can wake.

    A transaction that is open gets a moment to end; one that does not is rolled back. The loop
    itself must hear of the signal: one that comes just before it waits would not wake it.
    """
    from asyncio import get_running_loop

    def end(number: int) -> None:
        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        closing.join(END_SECONDS)
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under `nohup`
            get_running_loop().add_signal_handler(number, end, number)
    await serve(ask)


def _asking(answer: Answer) -> Ask:
    """Questions are answered beside the loop; who waits for work asks again and again.

    So nothing is leased to an agent that has gone away.
    """
    from anyio import sleep, to_thread

    async def ask(
        name: str, arguments: Mapping[str, object], _: Mapping[str, object]
    ) -> Mapping[str, object]:
        values = dict(arguments)
        ends = SYSTEM.monotonic() + _seconds(values.pop("wait", None))
        while True:
            document = await to_thread.run_sync(answer, name, values)
            if document.get("leases") != [] or SYSTEM.monotonic() >= ends:
                return document
            await sleep(POLL_SECONDS)

    return ask


def _seconds(wait: object) -> float:
    """How long to wait, at most as long as a call may."""
    from fairlane.service.operations.call import duration
    from fairlane.service.operations.table import WAIT_MAX

    return min(duration(wait or 0), duration(WAIT_MAX)) / SECOND


def _answer(context: Context, name: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
    """The home folder's answer; in direct mode what was added starts at once."""
    from fairlane.app import answer_here
    from fairlane.service.operations.call import fitting
    from fairlane.service.operations.table import OPERATIONS

    values = fitting(OPERATIONS[name], arguments)
    document: Mapping[str, object] = answer_here(context, name, **values)
    while context.warnings:
        warn(context.warnings.pop(0))
    return document
