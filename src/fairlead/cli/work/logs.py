"""`fairlead logs`: what an attempt printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fairlead.cli.options import Call, common, pass_call
from fairlead.cli.output import print_json, safe, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.service.desk import Desk


@click.command("logs")
@click.argument("task", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Go on until the attempt ends.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Default: the last.")
@click.option("--stderr", "errors", is_flag=True, help="Its error output.")
@common
@pass_call
def command(call: Call, task: str, follow: bool, attempt: int | None, errors: bool) -> None:
    """What an attempt of a task printed; secrets are masked, control characters shown as text.

    \b
    Example:
      fairlead logs t12 -f
      fairlead logs t12 --attempt 1 --stderr
    """
    from fairlead.service import logs

    stream = "stderr" if errors else "stdout"
    with call.desk() as desk:
        if call.json:
            path = logs.log_path(desk, task, attempt, stream)
            text = logs.read(desk, task, attempt, stream)
            number = int(path.parent.name)
            found = {"task": task, "attempt": number, "stream": stream, "text": text}
            print_json({"schema": "fairlead/1", **found})
            return
        whole = logs.follow if follow else _whole
        parts = whole(desk, task, attempt, stream)
        for part in parts:
            write("\n".join(safe(line) for line in part.split("\n")))
            sys.stdout.flush()


def _whole(desk: Desk, task: str, attempt: int | None, stream: str) -> Iterator[str]:
    from fairlead.service import logs

    yield logs.read(desk, task, attempt, stream)
