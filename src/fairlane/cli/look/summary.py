"""`fairlane summary`: what happened while nobody looked."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write


@click.command("summary")
@click.option("--since", default="12h", metavar="LENGTH|TIME", help="How far back; default: 12h.")
@common
@pass_call
def command(call: Call, since: str) -> None:
    """What happened while nobody looked: done, cost, parked and why, waits, what needs you.

    \b
    Example:
      fairlane summary
      fairlane summary --since 2d
    """
    document = call.ask("summary", since=since)
    if call.json:
        print_json(document)
        return
    from fairlane.cli.look.summary_text import summary_text

    write(summary_text(document) + "\n")
