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

    Without a daemon, results of agents that ended on this machine are taken in first, and in
    direct mode what is ready by then is started. A daemon does all this by itself.

    \b
    Example:
      fairlane reclaim
    """
    document = call.ask("reclaim")
    if call.json:
        print_json(document)
        return
    lost, parked = document["reclaimed"], document["parked"]
    lead = f"{count(len(lost), 'lease')} had run out" if lost else "no lease has run out"
    write(f"{lead}{': ' + _named(lost) if lost else ''}\n")
    for title, name in (("taken in", "taken_in"), ("started", "started")):
        if document.get(name):
            write(f"{title}: {_named(document[name])}\n")
    if parked:
        write(paint(f"out of attempts, parked: {_named(parked)}", "yellow") + "\n")


def _named(tasks: list[str]) -> str:
    return safe(listed(tasks[:20], len(tasks)))
