"""`fairlane list`: tasks, with what each waits for."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write

#: How many tasks people see unless they ask for more.
ROWS_SHOWN = 50


@click.command("list")
@click.option("--project", metavar="P", help="Only of this project.")
@click.option("--kind", metavar="K", help="Only of this kind.")
@click.option("--status", multiple=True, metavar="S", help="Only with this status; repeat.")
@click.option("--group", metavar="G", help="Only of this group.")
@click.option("--held-by", metavar="HOLD", help="Only held by this gate or code: cap, needs, …")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most this many.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="CURSOR", hidden=True)
@common
@pass_call
def command(
    call: Call,
    project: str | None,
    kind: str | None,
    status: tuple[str, ...],
    group: str | None,
    held_by: str | None,
    limit: int | None,
    after: int,
) -> None:
    """Tasks in the order in which they were added, each with what it waits for.

    \b
    Example:
      fairlane list --status queued --project web
      fairlane list --held-by cap
      fairlane list --status parked --json
    """
    bound = limit if limit is not None or call.json else ROWS_SHOWN
    wanted = [each for given in status for each in given.split(",")]
    document = call.ask(
        "list", project=project, kind=kind, status=wanted, group=group, held_by=held_by,
        cursor=after, limit=bound,
    )  # fmt: skip
    if call.json:
        print_json(document)
        return
    from fairlane.cli.queue.text import list_text

    narrowed = any((project, kind, status, group, held_by, after))
    nothing = "no task fits" if narrowed else 'no task yet: fairlane add "…"'
    write((list_text(document, call.clock.now()) or nothing) + "\n")
