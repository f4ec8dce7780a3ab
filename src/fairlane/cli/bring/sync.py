"""`fairlane sync`: ask the configured sources, and follow what they say."""

from __future__ import annotations

from typing import Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, safe, warn, write


@click.command("sync")
@click.argument("source", required=False, metavar="[SOURCE]")
@click.option("--dry-run", is_flag=True, help="Say what would come of it; change nothing.")
@click.option("--write-back", is_flag=True, help="Tell the sources what became of their items.")
@common
@pass_call
def command(call: Call, source: str | None, dry_run: bool, write_back: bool) -> None:
    """Ask every source of the settings once, or those with this type or path.

    What is new is added; what is closed or gone is canceled if it has not started. A source that
    cannot be asked is a warning, and changes nothing. A daemon does all this by itself.

    \b
    Example:
      fairlane sync --dry-run
      fairlane sync cards --write-back
    """
    from fairlane.service.sourcing import syncing

    with call.desk() as desk:
        document = syncing.sync(desk, source, dry_run, write_back)
    for message in document["warnings"]:
        warn(message)
    if call.json:
        print_json(document)
    elif not document["sources"]:
        write("no source is configured; add [[source]] with type and path to fairlane.toml\n")
    else:
        write("\n".join(map(_text, document["sources"])) + "\n")


def _text(row: dict[str, Any]) -> str:
    from fairlane.cli.bring.text import imported_text

    if "error" in row:
        return safe(f"{row['source']} {row['path']}: not asked; nothing has changed")
    return imported_text(row)
