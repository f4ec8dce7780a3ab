"""`fairlane logs`: what an attempt printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, safe, write

if TYPE_CHECKING:
    from collections.abc import Iterator


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
      fairlane logs t12 -f
      fairlane logs t12 --attempt 1 --stderr
    """
    stream = "stderr" if errors else "stdout"
    if call.json:
        print_json(call.ask("logs", task=task, attempt=attempt, stream=stream))
        return
    for part in _parts(call, task, attempt, stream, follow):
        write("\n".join(safe(line) for line in part.split("\n")))
        sys.stdout.flush()


def _parts(call: Call, task: str, attempt: int | None, stream: str, follow: bool) -> Iterator[str]:
    """The log from its start; with `follow`, until the attempt has ended."""
    if call.server is not None:
        yield from call.remote().log(task, attempt, stream, follow)
        return
    from fairlane.service import logs

    with call.desk() as desk:
        if follow:
            yield from logs.follow(desk, task, attempt, stream)
        else:
            yield from logs.read(desk, task, attempt, stream)
