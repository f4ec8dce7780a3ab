"""`fairlane why`: why one task does not start, and what would start it."""

from __future__ import annotations

import click

from fairlane.cli.look.plan import read_scenario
from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write
from fairlane.service import plans


@click.command("why")
@click.argument("task", metavar="ID", envvar="FAIRLANE_TASK")
@click.option("--scenario", metavar="FILE", help="A situation instead of the queue; - is stdin.")
@common
@pass_call
def command(call: Call, task: str, scenario: str | None) -> None:
    """Why a task does not start: every rule that holds it, and what would start it now.

    \b
    Example:
      fairlane why t4
      fairlane why --scenario examples/balanced.toml review-2
    """
    if scenario is not None:
        call.here()
        situation = read_scenario(call, scenario)
        answer = plans.why_document(plans.why_scenario(situation, task))
        kind = next(each.kind for each in situation.tasks if each.id == task)
        now = situation.now
    else:
        answer, now = call.ask("why", task=task), call.clock.now()
        kind = "" if call.json else _kind(call, task)
    if call.json:
        print_json(answer)
        return
    from fairlane.cli.look.why_text import why_text

    write(why_text(answer, kind, now) + "\n")


def _kind(call: Call, task: str) -> str:
    """The task's kind, whose score has its name."""
    if call.server is not None:
        return str(call.ask("show", task=task)["task"]["kind"])
    with call.desk() as desk, desk.store.read() as reading:
        kept = reading.task(task)
    return kept.kind if kept else ""
