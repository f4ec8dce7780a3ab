"""`fairlane report`: a running agent tells how far it is."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import paint, print_json, safe, write
from fairlane.cli.values import DOLLARS, TOKENS, Counters, used


@click.command("report")
@click.argument("lease", metavar="[LEASE]", envvar="FAIRLANE_LEASE")
@click.option("--tokens", type=TOKENS, help="Used so far: input=N,output=N,… or a number.")
@click.option("--cost", type=DOLLARS, help="Dollars so far.")
@click.option("--note", default="", metavar="TEXT", help="What it is doing.")
@click.option("--progress", default="", metavar="TEXT", help="How far it is: 3/7, 40%.")
@common
@pass_call
def command(
    call: Call, lease: str, tokens: Counters | None, cost: int | None, note: str, progress: str
) -> None:
    """Tell progress, tokens and cost of what runs. Totals so far, not what was added.

    An attempt that Fairlane started needs no LEASE: it is in FAIRLANE_LEASE.

    \b
    Example:
      fairlane report --progress 3/7 --note "tests are green"
      fairlane report L7 --tokens input=12000,output=800 --cost 0.21
    """
    words = ": ".join(each for each in (progress, note) if each)
    document = call.ask("report", lease=lease, note=words, **used(tokens, cost))
    if call.json:
        print_json(document)
        return
    stop = paint("; it is to stop", "bold", "yellow") if document["stop"] else ""
    write(safe(f"noted; {document['task']} is {document['status']}") + f"{stop}\n")
