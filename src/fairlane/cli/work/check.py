"""`fairlane check`: run the checks of a task again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import paint, safe, table

if TYPE_CHECKING:
    from fairlane.model.documents.tasks import CheckedAnswer, CheckResultDocument


@click.command("check")
@click.argument("task", metavar="TASK")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.pass_context
@takes_call
def check(call: Call, ctx: click.Context, task: str, names: tuple[str, ...]) -> None:
    """Run the checks of a task again, in its workspace. Its status does not change.

    \b
    Example:
      fairlane check t1
      fairlane check t1 "make test"
    """
    document: CheckedAnswer = call.ask("check", task=task, names=list(names))
    call.show(document, lambda: _text(document))
    if not document["passed"]:
        ctx.exit(1)


def _text(document: CheckedAnswer) -> str:
    tint = {"passed": "green", "failed": "red"}
    rows = [
        (row["name"], "passed" if row["passed"] else "failed", _how(row), f"{row['seconds']:.1f} s")
        for row in document["checks"]
    ]
    parts = [table(("check", "", "", "took"), rows, right=(3,), tint=tint)]
    for row in document["checks"]:
        if not row["passed"] and row["tail"]:
            head = paint(f"The end of {safe(row['name'])}:", "bold")
            parts.append(f"{head}\n{_lines(row['tail'])}\n{paint(safe(row['log']), 'dim')}")
    return "\n\n".join(parts)


def _how(row: CheckResultDocument) -> str:
    return row["problem"] or ("" if row["passed"] else f"exit {row['exit']}")


def _lines(text: str) -> str:
    return "\n".join(safe(line) for line in text.splitlines())
