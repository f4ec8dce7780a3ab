"""`fairlane show`: one task, whole."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write


@click.command("show")
@click.argument("task", metavar="ID", envvar="FAIRLANE_TASK")
@common
@pass_call
def command(call: Call, task: str) -> None:
    """One task: what it says, what holds it, its attempts, its last events.

    \b
    Example:
      fairlane show t4
    """
    document = call.ask("show", task=task)
    if call.json:
        print_json(document)
        return
    from fairlane.cli.queue.show_text import show_text

    write(show_text(document, call.clock.now()) + "\n")
