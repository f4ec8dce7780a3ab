"""`fairlane group`: tasks followed together."""

from __future__ import annotations

from typing import Any

import click

from fairlane.cli.keep.facts import number, shown
from fairlane.cli.keep.group_text import added_text, changed_text, said, story_text
from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_error, print_json, table, write
from fairlane.cli.values import read_text
from fairlane.model.errors import Invalid, TryLater

#: A tree of a hundred thousand tasks is smaller.
TREE_BYTES_MAX = 100_000_000


@click.group("group")
@common
def command() -> None:
    """Tasks followed together, and how far they are.

    \b
    Example:
      fairlane group list
      fairlane group add release --priority 10
    """


@command.command("list")
@common
@pass_call
def list_(call: Call) -> None:
    """Every group with its progress.

    \b
    Example:
      fairlane group list
    """
    document = call.ask("group_list")
    if call.json:
        print_json(document)
        return
    rows = [
        (each["name"], each["parent"] or "", shown(each["priority"]), each["progress"], said(each))
        for each in document["groups"]
    ]
    head = ("group", "parent", "prio", "progress", "")
    write((table(head, rows, right=(2,)) if rows else "there is no group") + "\n")


@command.command("show")
@click.argument("name", metavar="GROUP")
@common
@pass_call
def show(call: Call, name: str) -> None:
    """One group: the groups under it, what runs, what is held and why, parked ones, time and cost.

    \b
    Example:
      fairlane group show release
    """
    document = call.ask("group_show", name=name)
    if call.json:
        print_json(document)
    else:
        write(story_text(document["group"], call.clock.now()) + "\n")


@command.command("add")
@click.argument("name", metavar="GROUP")
@click.option("--parent", metavar="G", help="The group above it.")
@click.option("--priority", type=int, metavar="N", help="For its tasks that name none.")
@click.option("--title", metavar="TEXT", help="What people read.")
@click.option("--file", metavar="TREE", help="TOML or JSON with its tasks and groups; - is stdin.")
@click.option("--project", metavar="P", help="With --file: for tasks that name none.")
@click.option("--dry-run", is_flag=True, help="With --file: say what would be added.")
@common
@pass_call
def add(call: Call, /, name: str, file: str | None, **given: Any) -> int:
    """A new group. Adding a task to a group makes it too.

    With --file a whole tree is added, all or nothing: {title, priority, tasks = [...], groups =
    [{name, ...}]}. Tasks have the fields of `add --file`; they go to the project of their id's
    prefix, and those that fit none are named and left out, with what needs them.

    \b
    Example:
      fairlane group add login --parent release
      fairlane group add release --file release.toml --dry-run
    """
    tree = None
    if file is not None:
        from fairlane.intake.tree import parse_tree

        text = read_text(file, "tree", TREE_BYTES_MAX)
        tree = parse_tree(text, "stdin" if file == "-" else file)
    elif given["project"] or given["dry_run"]:
        raise Invalid("--project and --dry-run need --file", "Give a tree.", code="usage")
    document = call.ask("group_add", name=name, tree=tree, **given)
    if call.json:
        print_json(document)
    elif document.get("deferred"):
        print_error(TryLater(document["message"], document["hint"], "deferred"), False)
    else:
        write(added_text(name, document) + "\n")
    return TryLater.exit_code if document.get("deferred") else 0


@command.command("set")
@click.argument("name", metavar="GROUP")
@click.option("--parent", metavar="G", help="The group above it; none: on its own.")
@click.option("--priority", metavar="N", help="For its tasks that name none; none: as above it.")
@click.option("--title", metavar="TEXT", help="What people read.")
@common
@pass_call
def change(
    call: Call, name: str, parent: str | None, priority: str | None, title: str | None
) -> None:
    """Change a group. Queued tasks that follow it, also in groups under it, follow it again.

    A task follows its group as long as it has the group's priority; one that was given another
    keeps it. A group without a priority has that of the group above it.

    \b
    Example:
      fairlane group set release --priority 10
    """
    values: dict[str, Any] = {}
    if parent is not None:
        values["parent"] = None if parent == "none" else parent
    if priority is not None:
        values["priority"] = None if priority == "none" else number("priority", priority)
    if title is not None:
        values["title"] = title
    document = call.ask("group_set", name=name, values=values)
    if call.json:
        print_json(document)
    else:
        write(changed_text(document) + "\n")
