"""`fairlane link`: a link that opens the page, once."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write


@click.command("link")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@common
@pass_call
def command(call: Call, opens: bool) -> None:
    """Print a link to the page of a running server. It works once, within ten minutes.

    \b
    Example:
      fairlane link --open
    """
    from fairlane.cli.work.serving import new_link

    link = new_link(call.folder)
    if call.json:
        print_json({"schema": "fairlane/1", "link": link})
    else:
        write(f"{link}\n")
    if opens:
        click.launch(link)
