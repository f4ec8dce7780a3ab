"""`fairlane drain`: start nothing more, and wait for what runs."""

from __future__ import annotations

from threading import Event

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, print_json, write
from fairlane.cli.values import DURATION
from fairlane.model.errors import TryLater
from fairlane.model.instant import SECOND


@click.command("drain")
@click.option("--max-wait", type=DURATION, metavar="TIME", help="Wait at most this long.")
@common
@pass_call
def command(call: Call, max_wait: int | None) -> None:
    """Pause everything and wait until nothing is in flight. `fairlane resume` goes on.

    \b
    Example:
      fairlane drain --max-wait 30m
    """
    from fairlane.service import queue

    with call.desk() as desk:
        queue.pause(desk, "all", "drain")
        waited, pause = 0.0, Event()
        while True:
            with desk.store.read() as reading:
                flying = len(reading.in_flight())
            if not flying:
                break
            if max_wait is not None and waited >= max_wait / SECOND:
                hint = "Everything stays paused; ask again, or `fairlane resume`."
                raise TryLater(f"{count(flying, 'task')} still in flight", hint, "draining")
            pause.wait(0.2)
            waited += 0.2
    if call.json:
        print_json({"schema": "fairlane/1", "in_flight": 0, "paused": ["all"]})
    else:
        write("drained: nothing is in flight, everything is paused\n")
