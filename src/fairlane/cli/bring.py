"""Work from elsewhere: import it, follow its source, take it back, convert another scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import count, listed, paint, safe, warn, wrapped
from fairlane.cli.values import read_input
from fairlane.model.errors import Invalid, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

    from fairlane.engine.context import Context
    from fairlane.intake.sources.base import Where
    from fairlane.model.documents.sources import (
        ConvertAnswer,
        FailedSourceDocument,
        ImportAnswer,
        ImportedDocument,
        ReasonDocument,
        SkippedDocument,
        UndoAnswer,
    )


def _sources(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
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
@takes_call
def import_(call: Call, /, source: str, path: str, write_back: bool, **wishes: Any) -> None:
    """Make tasks of what a source has: a file, a folder, or - for standard input.

    SOURCE: jsonl, queue.json, cards, beads, taskmaster, spec-kit, backlog, github.

    With IDs only these; the id of an epic or a phase stands for all its open items. A second time
    changes nothing but what the source changed and what has not started. The source is only read,
    unless --write-back asks for more.

    \b
    Example:
      fairlane import jsonl tasks.jsonl --dry-run
      fairlane import beads . gt-epic-1 --project web
    """
    from fairlane.intake.sources import source_named
    from fairlane.intake.sources.base import Writable
    from fairlane.service.sync.importing import ImportOptions, bring_in

    options = ImportOptions(**wishes)
    with call.context() as context:
        where = _where(source, path, context.home)
        if write_back and not isinstance(source_named(source), Writable):
            raise Refused(f"nothing can be written back to {source}", "Leave --write-back out.")
        document = bring_in(context, source, where, options)
        if not options.dry_run:
            _start_direct(context, document)
        if write_back and not options.dry_run:
            _tell_back(context, source, where, document)
    call.show(document, lambda: imported_text(document))


def _where(source: str, path: str, home: Path) -> Where:
    """What is read; standard input is read here."""
    from fairlane.intake.sources import source_named
    from fairlane.intake.sources.base import Where

    source_named(source)  # refuse an unknown name before reading anything
    if path != "-":
        return Where(Path(path), home=home)
    try:
        return Where(text=read_input().decode("utf-8-sig"), home=home)
    except UnicodeDecodeError as error:
        raise Invalid("standard input: not UTF-8 text", "Give UTF-8.") from error


def _start_direct(context: Context, document: ImportAnswer) -> None:
    """Direct mode: what was added starts at once."""
    if document["created"] and context.policy().capacity.mode == "direct":
        from fairlane.runtime.direct import start_direct

        start_direct(context, [row["id"] for row in document["created"]])


def _tell_back(context: Context, source: str, where: Where, document: ImportAnswer) -> None:
    """What was asked for: the source learns what became of its items."""
    from fairlane.service.sync.write_back import tell

    answer = tell(context, source, where)
    document["written"] = answer["written"]
    for failure in answer["failed"]:
        warn(f"{failure['id']} was not told: {failure['message']}")


@click.command("sync")
@click.argument("source", required=False, metavar="[SOURCE]")
@click.option("--dry-run", is_flag=True, help="Say what would come of it; change nothing.")
@click.option("--write-back", is_flag=True, help="Tell the sources what became of their items.")
@takes_call
def sync(call: Call, source: str | None, dry_run: bool, write_back: bool) -> None:
    """Ask every source of the settings once, or those with this type or path.

    What is new is added; what is closed or gone is canceled if it has not started. A source that
    cannot be asked is a warning, and changes nothing. A daemon does all this by itself.

    \b
    Example:
      fairlane sync --dry-run
      fairlane sync cards --write-back
    """
    from fairlane.service.sync import syncing

    with call.context() as context:
        document = syncing.sync(context, source, dry_run, write_back)
    for message in document["warnings"]:
        warn(message)
    nothing = "no source is configured; add [[source]] with type and path to fairlane.toml"
    call.show(document, lambda: "\n".join(map(_source_text, document["sources"])) or nothing)


def _source_text(row: ImportAnswer | FailedSourceDocument) -> str:
    if "error" in row:
        return safe(f"{row['source']} {row['path']}: not asked; nothing has changed")
    return imported_text(row)


@click.command("undo")
@click.argument("number", required=False, type=click.IntRange(min=1), metavar="[N]")
@click.option("--dry-run", is_flag=True, help="Only say what would be canceled.")
@takes_call
def undo(call: Call, number: int | None, dry_run: bool) -> None:
    """Cancel what an import created and what has not started; by default the last one's.

    N is the number that `import` told. What has started goes on, and is named. What was undone
    can be imported again.

    \b
    Example:
      fairlane undo --dry-run
      fairlane undo 3
    """
    from fairlane.service.sync.close import undo

    with call.context() as context:
        document = undo(context, number, dry_run)
    call.show(document, lambda: undone_text(document))


#: Most names of one section.
NAMED_MAX = 10


def imported_text(document: ImportAnswer) -> str:
    """Counts in a line; what is new, changed, canceled, held, in conflict and left out."""
    lines = [_counts(document)]
    if document["created"]:
        lines += _where_to(document["created"])
    for row in document["changed"][:NAMED_MAX]:
        lines.append(_line("changed", row["id"], ", ".join(row["fields"])))
    lines += _more(len(document["changed"]), "changed")
    parts: tuple[tuple[str, Sequence[ReasonDocument | SkippedDocument]], ...] = (
        ("canceled", document["canceled"]),
        ("waits for its source", document["held"]),
        ("parked", document["parked"]),
        ("left as it is", document["conflicts"]),
        ("started again", document["restarted"]),
        ("left out", document["skipped"]),
    )
    for heading, rows in parts:
        lines += [_line(heading, _name(row), row["reason"]) for row in rows[:NAMED_MAX]]
        lines += _more(len(rows), heading)
    lines += _deferred(document["deferred"])
    if document["groups"]:
        names = listed(document["groups"][:NAMED_MAX], len(document["groups"]))
        lines.append(_wrapped(f"new groups: {names}"))
    lines += [_wrapped(note) for note in document["notes"]]
    if document.get("written"):
        lines.append(_wrapped(f"told the source: {listed(document['written'][:NAMED_MAX])}"))
    if document["import"] is not None:
        lines.append(paint(_wrapped(f"To take it back: fairlane undo {document['import']}"), "dim"))
    return "\n".join(lines)


def _deferred(rows: list[ReasonDocument]) -> list[str]:
    """Most have one reason: a line for each reason."""
    by: dict[str, list[str]] = {}
    for row in rows:
        by.setdefault(row["reason"], []).append(row["id"])
    return [
        _wrapped(f"deferred: {listed(ids[:NAMED_MAX], len(ids))} ({reason})")
        for reason, ids in by.items()
    ]


def undone_text(document: UndoAnswer) -> str:
    """What was canceled, and what continues."""
    would = "would be " if document["dry_run"] else ""
    ids = [row["id"] for row in document["canceled"]]
    names = f": {listed(ids[:NAMED_MAX], len(ids))}" if ids else ""
    title = f"import {document['import']} ({document['source']} {document['path']})"
    said = f"{count(len(ids), 'task')} {would}canceled{names}"
    lines = [wrapped(safe(said), 4, safe(f"{title}: "))]
    lines += [_line("goes on", row["id"], row["reason"]) for row in document["left"][:NAMED_MAX]]
    return "\n".join([*lines, *_more(len(document["left"]), "go on")])


def _counts(document: ImportAnswer) -> str:
    would = "would be " if document["dry_run"] else ""
    parts = [f"{count(len(document['created']), 'task')} {would}created"]
    counts = {
        f"{would}changed": len(document["changed"]),
        f"{would}canceled": len(document["canceled"]),
        "unchanged": len(document["unchanged"]),
        "left out": len(document["skipped"]),
        "in conflict": len(document["conflicts"]),
        f"{would}started again": len(document["restarted"]),
        "deferred": len(document["deferred"]),
    }
    parts += [f"{number} {word}" for word, number in counts.items() if number]
    if not document["created"] and len(parts) == 1:
        parts.append("there is nothing of its kind")
    return safe(f"{document['source']} {document['path']}: {', '.join(parts)}")


def _where_to(rows: list[ImportedDocument]) -> list[str]:
    """The new tasks by project."""
    by: dict[str, list[str]] = {}
    for row in rows:
        by.setdefault(row["project"], []).append(row["id"])
    return [
        _wrapped(f"new in {project}: {listed(ids[:NAMED_MAX], len(ids))}")
        for project, ids in by.items()
    ]


def _name(row: ReasonDocument | SkippedDocument) -> str:
    """The id; the place too where the record is broken, or has words in the place of an id."""
    name, where = row["id"].strip(), str(row.get("where") or "")
    if name in ("?", where):
        return where or "?"
    return f"{name}, {where}" if where and (row.get("broken") or " " in name) else name


def _line(heading: str, name: str, reason: str) -> str:
    return _wrapped(f"{heading}: {name} ({reason})")


def _wrapped(text: str) -> str:
    return wrapped(safe(text), 4, "  ")


def _more(total: int, heading: str) -> list[str]:
    more = total - NAMED_MAX
    return [f"  … and {more} more {heading}; --json names them"] if more > 0 else []


@click.command("convert")
@click.argument("format_", metavar="FORMAT")
@click.argument("file", metavar="FILE")
@click.option("--write", "to_write", is_flag=True, help="Write it into the home folder.")
@takes_call
def convert(call: Call, format_: str, file: str, to_write: bool) -> None:
    """Move over from another scheduler. Prints what its files become here; `--write` does it.

    FORMAT is loopr, agency, agent-queue, gastown or cool-workflow; FILE is its file, or the folder
    with its files. The policy and settings before are kept beside the new ones.

    \b
    Example:
      fairlane convert loopr loopr.yml
      fairlane convert agent-queue ~/.agent-queue --write
    """
    from fairlane.service.conversion import operation

    if to_write:
        with call.context() as context:
            document = operation.write(context, format_, file)
    else:
        document = operation.show(format_, file)
    call.show(document, lambda: _converted_text(document, to_write))


def _converted_text(document: ConvertAnswer, written: bool) -> str:
    if written and not document["changed"]:
        rest = " but what is left out" if document["skipped"] else ""
        parts = [f"nothing new: everything{rest} is as the files say"]
        return "\n\n".join([*parts, *_left_out(document)])
    parts = _written(document) if written else _would_write(document)
    parts += _left_out(document)
    if document["notes"]:
        notes = [wrapped(safe(note), 2, "- ") for note in document["notes"]]
        parts.append("\n".join([paint("What is different:", "bold"), *notes]))
    if document["unknown"]:
        names = wrapped(safe(", ".join(document["unknown"])), 2)
        parts.append(paint("Without a counterpart:", "bold") + f"\n{names}")
    if not written:
        parts.append("Nothing is written; --write does it.")
    return "\n\n".join(parts)


def _left_out(document: ConvertAnswer) -> list[str]:
    """Work that cannot come in, and why."""
    rows = document["skipped"]
    lines = [_misfit(row) for row in rows[:NAMED_MAX]]
    return (
        ["\n".join([paint("Left out:", "bold"), *lines, *_more(len(rows), "left out")])]
        if rows
        else []
    )


def _misfit(row: SkippedDocument) -> str:
    """The place, the id if there is one, and why."""
    names = [row["where"], "" if row["id"] == "?" else row["id"]]
    return _wrapped(f"{' '.join(filter(None, names))}: {row['reason']}")


def _would_write(document: ConvertAnswer) -> list[str]:
    """The files as they would be, and what else would be added."""
    parts = []
    texts = (("policy.toml", document["policy"]), ("fairlane.toml", document["settings"]))
    for name, text in texts:
        if text:
            lines = [f"  {safe(line)}".rstrip() for line in text.splitlines()]
            parts.append("\n".join([paint(f"{name}:", "bold"), *lines]))
    brought = _brought(document)
    if document["tasks"]:
        brought.append(count(document["tasks"], "task"))
    return [*parts, "\n".join(brought)] if brought else parts


def _written(document: ConvertAnswer) -> list[str]:
    lines = [f"wrote {safe(path)}" for path in document["written"]]
    lines += [f"kept {safe(path)}" for path in document["backups"]]
    lines += _brought(document)
    if document["tasks"]:
        lines.append(f"added {document['added']} of {count(document['tasks'], 'task')}")
    return ["\n".join(lines)]


def _brought(document: ConvertAnswer) -> list[str]:
    lines = []
    for project in document["projects"]:
        values = [f"{key} {_value(value)}" for key, value in project.items() if key != "name"]
        said = ", ".join(values) or "no values of its own"
        lines.append(wrapped(safe(said), 4, safe(f"project {project['name']}: ")))
    lines += [safe(f"pause {pause['scope']}: {pause['reason']}") for pause in document["pauses"]]
    return lines


def _value(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(_value, value)) or "none"
    if isinstance(value, dict):
        return " ".join(f"{key} {inner}" for key, inner in value.items())
    return str(value)
