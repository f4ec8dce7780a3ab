"""`fairlane heartbeat`: keep a lease."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import paint, print_json, safe, until_text, write
from fairlane.model.instant import parse_instant


@click.command("heartbeat")
@click.argument("lease", metavar="LEASE", envvar="FAIRLANE_LEASE")
@common
@pass_call
def command(call: Call, lease: str) -> None:
    """Keep a lease. The first heartbeat makes the task running; the answer says whether to stop.

    \b
    Example:
      fairlane heartbeat L7
    """
    document = call.ask("heartbeat", lease=lease)
    if call.json:
        print_json(document)
        return
    until = until_text(parse_instant(document["expires_at"]), call.clock.now())
    kept = safe(f"{document['task']} is {document['status']}; the lease now ends {until}")
    stop = paint("; it is to stop", "bold", "yellow") if document["stop"] else ""
    write(f"{kept}{stop}\n")
