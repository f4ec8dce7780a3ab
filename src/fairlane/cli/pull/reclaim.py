"""`fairlane reclaim`: end the leases that have run out."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, listed, paint, print_json, safe, write


@click.command("reclaim")
@common
@pass_call
def command(call: Call) -> None:
    """End every lease that has run out. A process that lives on this machine keeps its own.

    Every round does this too; nobody has to call it.

    \b
    Example:
      fairlane reclaim
    """
    document = call.ask("reclaim")
    if call.json:
        print_json(document)
        return
    taken, parked = document["reclaimed"], document["parked"]
    if not taken:
        write("no lease has run out\n")
        return
    named = safe(listed(taken[:20], len(taken)))
    write(f"{count(len(taken), 'lease')} had run out: {named}\n")
    if parked:
        named = safe(listed(parked[:20], len(parked)))
        write(paint(f"out of attempts, parked: {named}", "yellow") + "\n")
