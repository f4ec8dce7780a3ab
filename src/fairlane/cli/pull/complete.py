"""`fairlane complete`: the work is done."""

from __future__ import annotations

import json
from typing import Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import paint, print_json, safe, write
from fairlane.cli.values import DOLLARS, TOKENS, Counters, read_text, used


@click.command("complete")
@click.argument("lease", metavar="LEASE", envvar="FAIRLANE_LEASE")
@click.option("--tokens", type=TOKENS, help="All it used: input=N,output=N,… or a number.")
@click.option("--cost", type=DOLLARS, help="All it cost, in dollars.")
@click.option("--result", metavar="FILE", help="What came of it: JSON or text; - is stdin.")
@common
@pass_call
def command(
    call: Call, lease: str, tokens: Counters | None, cost: int | None, result: str | None
) -> None:
    """The work is done. Once: the same again is no error and changes nothing.

    \b
    Example:
      fairlane complete L7 --tokens input=12000,output=800 --cost 0.21
      fairlane complete L7 --result result.json
    """
    came = None if result is None else read_result(result)
    document = call.ask("complete", lease=lease, result=came, **used(tokens, cost))
    if call.json:
        print_json(document)
        return
    task = safe(document["task"])
    if document.get("code") == "already_done":
        write(f"{task} was done already\n")
    else:
        late = " (late: its lease had run out, and nobody had taken it again)"
        write(paint(f"{task} is done", "green") + (late if document.get("late") else "") + "\n")


def read_result(name: str) -> dict[str, Any]:
    """A result: an object as it is, anything else as text."""
    text = read_text(name, "result")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"text": text}
