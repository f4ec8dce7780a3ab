"""`fairlead why`: why one task does not start, and what would start it."""

from __future__ import annotations

import click

from fairlead.cli.options import Call, common, pass_call
from fairlead.cli.output import print_json, write
from fairlead.cli.plan import read_scenario
from fairlead.service import plans


@click.command("why")
@click.argument("task", metavar="ID")
@click.option("--scenario", metavar="FILE", help="A situation to plan (TOML or JSON); - is stdin.")
@common
@pass_call
def command(call: Call, task: str, scenario: str | None) -> None:
    """Why a task does not start: every rule that holds it, and what would start it now.

    \b
    Example:
      fairlead why --scenario examples/balanced.toml review-2
    """
    situation = read_scenario(call, scenario)
    answer = plans.why_scenario(situation, task)
    if call.json:
        print_json(plans.why_document(answer))
        return
    from fairlead.cli.why_text import why_text

    write(why_text(answer, situation) + "\n")
