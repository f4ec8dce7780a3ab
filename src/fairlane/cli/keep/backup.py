"""`fairlane backup`: a consistent copy of the store."""

from __future__ import annotations

from pathlib import Path

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, safe, write


@click.command("backup")
@click.argument("target", required=False, metavar="[FILE|FOLDER]", type=click.Path(path_type=Path))
@common
@pass_call
def command(call: Call, target: Path | None) -> None:
    """A consistent copy of the store, while others work. Default: into its folder backups.

    \b
    Example:
      fairlane backup
      fairlane backup /mnt/usb/fairlane.db
    """
    from fairlane.service.house import upkeep

    with call.desk() as desk:
        document = upkeep.backup(desk, target)
    if call.json:
        print_json(document)
    else:
        write(safe(f"copied to {document['backup']} ({document['bytes'] // 1024:,} KiB)") + "\n")
