"""`fairlane convert`: another scheduler's files become rules, settings, projects and tasks."""

from __future__ import annotations

from typing import Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, paint, print_json, safe, wrapped, write


@click.command("convert")
@click.argument("format_", metavar="FORMAT")
@click.argument("file", metavar="FILE")
@click.option("--write", "to_write", is_flag=True, help="Write it into the home folder.")
@common
@pass_call
def command(call: Call, format_: str, file: str, to_write: bool) -> None:
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
        with call.desk() as desk:
            document = operation.write(desk, format_, file)
    else:
        document = operation.show(format_, file)
    if call.json:
        print_json(document)
    else:
        write(_text(document, to_write) + "\n")


def _text(document: dict[str, Any], written: bool) -> str:
    if written and not document["changed"]:
        return "nothing new: everything is as the files say"
    parts = _wrote(document) if written else _shown(document)
    if document["notes"]:
        notes = [wrapped(safe(note), 2, "- ") for note in document["notes"]]
        parts.append("\n".join([paint("What is different:", "bold"), *notes]))
    if document["unknown"]:
        told = wrapped(safe(", ".join(document["unknown"])), 2)
        parts.append(paint("Without a counterpart:", "bold") + f"\n{told}")
    if not written:
        parts.append("Nothing is written; --write does it.")
    return "\n\n".join(parts)


def _shown(document: dict[str, Any]) -> list[str]:
    """The files as they would be, and what else would come in."""
    parts = []
    for name, key in (("policy.toml", "policy"), ("fairlane.toml", "settings")):
        if document[key]:
            lines = [f"  {safe(line)}".rstrip() for line in document[key].splitlines()]
            parts.append("\n".join([paint(f"{name}:", "bold"), *lines]))
    brought = _brought(document)
    if document["tasks"]:
        brought.append(count(document["tasks"], "task"))
    return [*parts, "\n".join(brought)] if brought else parts


def _wrote(document: dict[str, Any]) -> list[str]:
    lines = [f"wrote {safe(path)}" for path in document["written"]]
    lines += [f"kept {safe(path)}" for path in document["backups"]]
    lines += _brought(document)
    if document["tasks"]:
        lines.append(f"added {document['added']} of {count(document['tasks'], 'task')}")
    return ["\n".join(lines)]


def _brought(document: dict[str, Any]) -> list[str]:
    lines = []
    for project in document["projects"]:
        told = [f"{key} {_value(value)}" for key, value in project.items() if key != "name"]
        lines.append(safe(f"project {project['name']}: {', '.join(told)}"))
    lines += [safe(f"pause {each['scope']}: {each['reason']}") for each in document["pauses"]]
    return lines


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(" ".join(f"{key} {each[key]}" for key in each) for each in value)
    return str(value)
