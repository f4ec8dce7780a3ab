"""`fairlane pause`: start nothing more."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import paint, print_json, safe, until_text, write
from fairlane.cli.queue.scope import scope_text
from fairlane.model.instant import parse_instant


@click.command("pause")
@click.argument("scope", default="all", metavar="[SCOPE]")
@click.option("--reason", default="", metavar="TEXT", help="Why; people see it.")
@common
@pass_call
def command(call: Call, scope: str, reason: str) -> None:
    """Start nothing more in a scope. What runs goes on; twice is the same as once.

    SCOPE: all, project:P, kind:K, pool:P, group:G, task:ID. Default: all.

    \b
    Example:
      fairlane pause
      fairlane pause project:web --reason "release day"
    """
    document = call.ask("pause", scope=scope, reason=reason)
    if call.json:
        print_json(document)
        return
    why = f": {document['reason']}" if document["reason"] else ""
    if document["changed"]:
        write(paint(safe(f"{scope_text(scope)} is paused{why}"), "yellow") + "\n")
        return
    since = until_text(parse_instant(document["since"]), call.clock.now())
    write(safe(f"{scope_text(scope)} was paused already, by {document['by']} {since}{why}") + "\n")
