"""`fairlane status`: how things stand now."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write


@click.command("status")
@common
@pass_call
def command(call: Call) -> None:
    """How things stand: in flight of cap, queued and held by which rule, parked, pools, budgets.

    \b
    Example:
      fairlane status
    """
    document = call.ask("status")
    if call.json:
        print_json(document)
        return
    from fairlane.cli.look.status_text import status_text

    write(status_text(document) + "\n")
    if call.server is not None:
        return
    queued = document["queued"]
    unattended = not document["running"] and not (call.folder / "daemon.json").exists()
    if unattended and queued["ready"] > queued["held"]:
        write("\nNo daemon runs here: `fairlane up` starts what is next.\n")
