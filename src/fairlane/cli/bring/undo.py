"""`fairlane undo`: take back an import that has not started."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write


@click.command("undo")
@click.argument("number", required=False, type=click.IntRange(min=1), metavar="[N]")
@click.option("--dry-run", is_flag=True, help="Only say what would be canceled.")
@common
@pass_call
def command(call: Call, number: int | None, dry_run: bool) -> None:
    """Cancel what an import created and what has not started; by default the last one's.

    N is the number that `import` told. What has started goes on, and is named. What was undone
    can be imported again.

    \b
    Example:
      fairlane undo --dry-run
      fairlane undo 3
    """
    from fairlane.service.sourcing.undo import undo

    with call.desk() as desk:
        document = undo(desk, number, dry_run)
    if call.json:
        print_json(document)
    else:
        from fairlane.cli.bring.text import undone_text

        write(undone_text(document) + "\n")
