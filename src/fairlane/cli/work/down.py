"""`fairlane down`: end the daemon; agents go on, or are stopped."""

from __future__ import annotations

import os
import signal
from threading import Event
from typing import TYPE_CHECKING

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write
from fairlane.model.errors import TryLater

if TYPE_CHECKING:
    from pathlib import Path

#: How long it may take: agents that are stopped climb a ladder.
DOWN_SECONDS = 120.0


@click.command("down")
@click.option("--stop-agents", is_flag=True, help="Stop what runs; its tasks go back to the queue.")
@common
@pass_call
def command(call: Call, stop_agents: bool) -> None:
    """End the daemon. Agents go on under their runners, and the next `up` takes them in.

    \b
    Example:
      fairlane down
      fairlane down --stop-agents
    """
    pid = _end(call.folder, stop_agents)
    if stop_agents:
        _stop_the_rest(call)
    if call.json:
        print_json({"schema": "fairlane/1", "pid": pid, "stopped_agents": stop_agents})
    elif pid is None:
        write("no daemon runs here\n")
    else:
        write("down; the agents are stopped\n" if stop_agents else "down; agents go on\n")


def _end(home: Path, stop_agents: bool) -> int | None:
    from fairlane.cli.work.serving import is_alive, known
    from fairlane.daemon.lock import holder

    found = holder(home)
    if found is None or not found.get("pid"):
        return None
    pid = int(found["pid"])
    served = known(home) or {}
    server = served["pid"] if served.get("daemon") == pid else None  # it goes with its daemon
    os.kill(pid, signal.SIGUSR1 if stop_agents else signal.SIGTERM)
    pause = Event()
    for _ in range(int(DOWN_SECONDS / 0.05)):
        if holder(home) is None and not (server and is_alive(server)):
            return pid
        pause.wait(0.05)
    raise TryLater(f"the daemon (pid {pid}) has not ended yet", "Look into daemon.log.", "busy")


def _stop_the_rest(call: Call) -> None:
    """Agents that a daemon left behind are stopped too, and their ends taken in."""
    from fairlane.daemon.main import Daemon

    with call.desk() as desk:
        daemon = Daemon(desk, "down")
        daemon.stop("stop")
        daemon.run()
