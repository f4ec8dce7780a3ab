"""`fairlane resume`: go on after a pause."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import listed, paint, print_json, safe, write
from fairlane.cli.queue.scope import scope_text


@click.command("resume")
@click.argument("scope", default="all", metavar="[SCOPE]")
@common
@pass_call
def command(call: Call, scope: str) -> None:
    """Go on after a pause. Each scope is resumed as it was paused.

    SCOPE: all, project:P, kind:K, pool:P, group:G, task:ID. Default: all.

    \b
    Example:
      fairlane resume
      fairlane resume project:web
    """
    document = call.ask("resume", scope=scope)
    if call.json:
        print_json(document)
        return
    if document["changed"]:
        write(paint(safe(f"{scope_text(scope)} goes on"), "green"))
    else:
        whole = "it was not paused as a whole" if document["paused"] else "nothing was paused"
        write(whole if scope == "all" else safe(f"{scope_text(scope)} was not paused"))
    still = [scope_text(each["scope"]) for each in document["paused"]]
    write(safe(f"; still paused: {listed(still)}") if still else "")
    write("\n")
