"""`fairlane cancel`: take tasks out for good."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write


@click.command("cancel")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--tree", is_flag=True, help="Their descendants too.")
@click.option("--group", metavar="G", help="Every task of this group.")
@click.option("--reason", default="", metavar="TEXT", help="Why; people see it.")
@common
@pass_call
def command(call: Call, ids: tuple[str, ...], tree: bool, group: str | None, reason: str) -> None:
    """Take tasks out for good. What is in flight is asked to stop; a success before that wins.

    \b
    Example:
      fairlane cancel t4 t5
      fairlane cancel t4 --tree --reason "not wanted any more"
      fairlane cancel --group release
    """
    document = call.ask("cancel", ids=ids, tree=tree, group=group, reason=reason)
    if call.json:
        print_json(document)
        return
    from fairlane.cli.queue.text import changed_text

    write(changed_text(document["tasks"], "nothing was left to cancel") + "\n")
