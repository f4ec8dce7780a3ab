"""`fairlane import`: work that is somewhere else already becomes tasks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, warn, write
from fairlane.model.errors import Invalid, Refused

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from fairlane.intake.sources.base import Where
    from fairlane.service.desk import Desk


def _sources(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from fairlane.intake import sources

    return [CompletionItem(name) for name in sources.names() if name.startswith(incomplete)]


@click.command("import")
@click.argument("source", shell_complete=_sources)
@click.argument("path", type=click.Path())
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--project", metavar="P", help="For items that name no project.")
@click.option("--group", metavar="G", help="For items without a group; other groups go under it.")
@click.option("--force", is_flag=True, help="Also what somebody works on, or another's prefix.")
@click.option("--dry-run", is_flag=True, help="Say what would come of it; change nothing.")
@click.option("--strict", is_flag=True, help="Refuse all if one record is bad.")
@click.option("--write-back", is_flag=True, help="Tell the source what became of its items.")
@common
@pass_call
def command(call: Call, /, source: str, path: str, write_back: bool, **wishes: Any) -> None:
    """Make tasks of what a source has: a file, a folder, or - for standard input.

    SOURCE: jsonl, queue.json, cards, beads, taskmaster, spec-kit, backlog, github. With IDs only
    these; the id of an epic or a phase stands for all its open items. A second time changes
    nothing but what the source changed and what has not started. The source is only read, unless
    --write-back asks for more.

    \b
    Example:
      fairlane import jsonl tasks.jsonl --dry-run
      fairlane import beads . gt-epic-1 --project web
    """
    from fairlane.service.sourcing.importing import Wish, bring_in

    wish = Wish(**wishes)
    with call.desk() as desk:
        where = _where(source, path, desk.home)
        if write_back:
            _check_writable(source)
        document = bring_in(desk, source, where, wish)
        if not wish.dry_run:
            _start(desk, document)
        if write_back and not wish.dry_run:
            _tell_back(desk, source, where, document)
    if call.json:
        print_json(document)
    else:
        from fairlane.cli.bring.text import imported_text

        write(imported_text(document) + "\n")


def _where(source: str, path: str, home: Path) -> Where:
    """What is read; standard input is read here."""
    from fairlane.intake.sources import source_named
    from fairlane.intake.sources.base import Where

    source_named(source)  # a name that is not known is told before anything is read
    if path != "-":
        return Where(Path(path), home=home)
    try:
        return Where(text=sys.stdin.buffer.read().decode("utf-8-sig"), home=home)
    except UnicodeDecodeError as error:
        raise Invalid("standard input: not UTF-8 text", "Give UTF-8.") from error


def _start(desk: Desk, document: dict[str, Any]) -> None:
    """Direct mode: what was added starts at once."""
    if document["created"] and desk.policy().capacity.mode == "direct":
        from fairlane.daemon.direct import start_direct

        start_direct(desk, [row["id"] for row in document["created"]])


def _check_writable(source: str) -> None:
    from fairlane.intake.sources import source_named
    from fairlane.intake.sources.base import Writable

    if not isinstance(source_named(source), Writable):
        raise Refused(f"nothing can be written back to {source}", "Leave --write-back out.")


def _tell_back(desk: Desk, source: str, where: Where, document: dict[str, Any]) -> None:
    """What was asked for: the source learns what became of its items."""
    from fairlane.service.sourcing.telling import tell

    answer = tell(desk, source, where)
    document["written"] = answer["written"]
    for each in answer["failed"]:
        warn(f"{each['id']} was not told: {each['message']}")
