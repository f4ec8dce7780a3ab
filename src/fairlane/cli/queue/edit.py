"""`fairlane edit`: change tasks that have not started."""

from __future__ import annotations

from typing import Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, listed, print_json, safe, write
from fairlane.cli.queue.fields import record, takes_fields


@click.command("edit")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@takes_fields
@click.option("--prompt", metavar="TEXT", help="What the agent is told; - is stdin.")
@common
@pass_call
def command(call: Call, /, ids: tuple[str, ...], **given: Any) -> None:
    """Change tasks that have not started. The word none puts a field back to its default.

    \b
    Example:
      fairlane edit t4 t5 --priority 10
      fairlane edit t4 --not-before none --group release
    """
    changes = record(given, call.clock.now())
    cleared = {name: None if value == "none" else value for name, value in changes.items()}
    if changes.get("template") == "none":
        cleared["template"] = "none"  # the prompt as it is, not the project's template
    document = call.ask("edit", ids=ids, changes=cleared)
    if call.json:
        print_json(document)
        return
    names = [row["id"] for row in document["tasks"]]
    what = ", ".join(name.replace("_", "-") for name in cleared)
    said = f"{count(len(names), 'task')} changed ({what}): {listed(names[:20], len(names))}"
    write(safe(said) + "\n")
