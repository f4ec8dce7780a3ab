"""`fairlane migrate`: bring the store to the latest schema."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, safe, write


@click.command("migrate")
@click.option("--from", "source", metavar="URL", help="Copy from this store …")
@click.option("--to", "target", metavar="URL", help="… to this one.")
@common
@pass_call
def command(call: Call, source: str | None, target: str | None) -> None:
    """Bring the store to the latest schema, after a backup, and say so.

    \b
    Example:
      fairlane migrate
    """
    from fairlane.app import STORE_FILE
    from fairlane.service.house import upkeep
    from fairlane.settings import FILE, Settings

    upkeep.refuse_copying(source, target)
    call.take_in_old_home()
    url = call.db or Settings.load(call.folder / FILE).store.url
    path = upkeep.sqlite_path(url or f"sqlite:{call.folder / STORE_FILE}")
    before = None if path is None else upkeep.schema_at(path)
    with call.desk() as desk:
        document = upkeep.migrated(before, desk)
    if call.json:
        print_json(document)
        return
    store, was, now = document["store"], document["from"], document["to"]
    if was is None:
        write(safe(f"made {store} with schema {now}") + "\n")
    elif was == now:
        write(safe(f"{store} has schema {now}, the latest") + "\n")
    else:
        write(safe(f"{store}: schema {was} was brought to {now}") + "\n")
