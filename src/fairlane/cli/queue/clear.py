"""`fairlane clear`: cancel what is queued, after showing what."""

from __future__ import annotations

import sys
from typing import Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, listed, print_json, safe, write
from fairlane.cli.queue.scope import scope_text
from fairlane.model.errors import Refused


@click.command("clear")
@click.argument("scope", default="all", metavar="[SCOPE]")
@click.option("--yes", is_flag=True, help="Do it; without it, it is asked on a terminal.")
@click.option("--dry-run", is_flag=True, help="Only say what would be canceled.")
@common
@pass_call
def command(call: Call, scope: str, yes: bool, dry_run: bool) -> None:
    """Cancel what is queued, all or in a scope. What runs goes on.

    SCOPE: all, project:P, kind:K, pool:P, group:G, task:ID. Default: all.

    \b
    Example:
      fairlane clear project:web
      fairlane clear --yes
    """
    document = call.ask("clear", scope=scope, dry_run=True)
    if not document["count"] or dry_run:
        _tell(call, document)
        return
    if not yes:
        _ask(call, document)
    _tell(call, call.ask("clear", scope=scope))


def _ask(call: Call, document: dict[str, Any]) -> None:
    """A person decides; where there is none, nothing is changed."""
    if call.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused(f"not cleared: {_what(document)}", "Add --yes to cancel them.", "unconfirmed")
    write(_what(document) + "\n")
    click.confirm("Cancel them?", abort=True)


def _tell(call: Call, document: dict[str, Any]) -> None:
    if call.json:
        print_json(document)
    elif not document["count"]:
        write(f"nothing is queued in {scope_text(document['scope'])}\n")
    else:
        would = "would be canceled" if document["dry_run"] else "canceled"
        write(f"{would}: {_what(document)}\n")


def _what(document: dict[str, Any]) -> str:
    kinds = ", ".join(f"{kind} {number}" for kind, number in document["by_kind"].items())
    names = listed(document["tasks"][:5], document["count"])
    return safe(f"{count(document['count'], 'queued task')} ({kinds}): {names}")
