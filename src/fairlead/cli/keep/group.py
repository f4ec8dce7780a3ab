"""`fairlead group`: tasks followed together."""

from __future__ import annotations

from typing import Any

import click

from fairlead.cli.keep.facts import facts, number, shown
from fairlead.cli.options import Call, common, pass_call
from fairlead.cli.output import listed, paint, print_json, safe, table, write


@click.group("group")
@common
def command() -> None:
    """Tasks followed together, and how far they are.

    \b
    Example:
      fairlead group list
      fairlead group add release --priority 10
    """


@command.command("list")
@common
@pass_call
def list_(call: Call) -> None:
    """Every group with its progress.

    \b
    Example:
      fairlead group list
    """
    from fairlead.service.reports import groups

    with call.desk() as desk:
        document = groups.list_groups(desk)
    if call.json:
        print_json(document)
        return
    rows = [
        (each["name"], each["parent"] or "", shown(each["priority"]), each["progress"], _said(each))
        for each in document["groups"]
    ]
    head = ("group", "parent", "prio", "progress", "")
    write((table(head, rows, right=(2,)) if rows else "there is no group") + "\n")


@command.command("show")
@click.argument("name", metavar="GROUP")
@common
@pass_call
def show(call: Call, name: str) -> None:
    """One group with its tasks.

    \b
    Example:
      fairlead group show release
    """
    from fairlead.service.reports import groups

    with call.desk() as desk:
        document = groups.show_group(desk, name)
    if call.json:
        print_json(document)
    else:
        write(_text(document["group"]) + "\n")


@command.command("add")
@click.argument("name", metavar="GROUP")
@click.option("--parent", metavar="G", help="The group above it.")
@click.option("--priority", type=int, metavar="N", help="For its tasks that name none.")
@common
@pass_call
def add(call: Call, name: str, parent: str | None, priority: int | None) -> None:
    """A new group. Adding a task to a group makes it too.

    \b
    Example:
      fairlead group add login --parent release
    """
    from fairlead.service.reports import groups

    with call.desk() as desk:
        document = groups.add_group(desk, name, parent, priority)
    if call.json:
        print_json(document)
    else:
        done = "added group" if document["created"] else "there is a group already:"
        write(safe(f"{done} {name}") + "\n")


@command.command("set")
@click.argument("name", metavar="GROUP")
@click.option("--parent", metavar="G", help="The group above it; none: on its own.")
@click.option("--priority", metavar="N", help="For its tasks that name none; none: theirs.")
@common
@pass_call
def change(call: Call, name: str, parent: str | None, priority: str | None) -> None:
    """Change a group. Tasks that are there keep their own priority.

    \b
    Example:
      fairlead group set release --priority 10
    """
    from fairlead.service.reports import groups

    values: dict[str, Any] = {}
    if parent is not None:
        values["parent"] = None if parent == "none" else parent
    if priority is not None:
        values["priority"] = None if priority == "none" else number("priority", priority)
    with call.desk() as desk:
        document = groups.set_group(desk, name, values)
    if call.json:
        print_json(document)
    else:
        write(_text(document["group"]) + "\n")


def _said(group: dict[str, Any]) -> str:
    words = ("done", "stranded", "paused")
    return ", ".join(word for word in words if group[word])


def _text(group: dict[str, Any]) -> str:
    tasks = [f"{each['id']} ({each['status']})" for each in group.get("tasks", [])]
    told = {
        "progress": group["progress"],
        "state": _said(group),
        "parent": shown(group["parent"]),
        "priority": shown(group["priority"]),
        "groups": shown(group["groups"]),
        "tasks": listed(tasks[:50], len(tasks)),
    }
    return paint(safe(group["name"]), "bold") + "\n" + facts(told)
