"""`fairlane retry`: put parked or waiting tasks back."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write


@click.command("retry")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@common
@pass_call
def command(call: Call, ids: tuple[str, ...]) -> None:
    """Put parked tasks back, and let tasks that wait after a failure start at once.

    Their count of failures begins anew; attempt numbers go on growing.

    \b
    Example:
      fairlane retry t4
    """
    document = call.ask("retry", ids=ids)
    if call.json:
        print_json(document)
        return
    from fairlane.cli.queue.text import changed_text

    write(changed_text(document["tasks"], "nothing to retry") + "\n")
