"""`fairlane group`: tasks followed together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlane.cli.admin.resource import facts, number, resource, shown, usd
from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import (
    about,
    cells,
    count,
    cut,
    in_seconds,
    listed,
    paint,
    safe,
    table,
    until_text,
    wrapped,
)
from fairlane.cli.values import read_text
from fairlane.model.errors import Invalid
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlane.model.documents.groups import (
        FullGroupDocument,
        GroupDocument,
        GroupRunningDocument,
        GroupSetAnswer,
        SpanDocument,
        TreeAddedAnswer,
        TreeGroupDocument,
    )
    from fairlane.model.instant import Instant

#: The help of `group show`.
_SHOW = (
    "One group: the groups under it, what runs, what is held and why, parked ones, time and cost."
)
#: A tree of a hundred thousand tasks is smaller.
TREE_BYTES_MAX = 100_000_000

BAR = 16
NOTE_MAX = 60
NAMED = 5
#: Most lines of one section.
LINES = 20


def story_text(group: FullGroupDocument, now: Instant) -> str:
    """One group whole."""
    title = f"  {safe(cut(group['title'], NOTE_MAX))}" if group["title"] else ""
    parts = [paint(safe(group["name"]), "bold") + title, *_tree(group["tree"])]
    parts += _section("running", (_running(row, now) for row in group["running"]))
    if group["next"]:
        parts += _section("next", [listed(group["next"][:NAMED], len(group["next"]))])
    held = [(row["reason"], listed(row["tasks"][:NAMED], row["count"])) for row in group["holds"]]
    parts += _section("held", (f"{in_seconds(why)}: {names}" for why, names in held))
    parts += _section("parked", (f"{row['id']}: {row['reason']}" for row in group["parked"]))
    values = {
        "parent": shown(group["parent"]),
        "priority": shown(group["priority"]),
        "time": _time(group["span"], now),
        "used": _used(group),
    }
    return "\n".join([*parts, facts("", values)])


def _table(groups: list[GroupDocument], _: Instant) -> str:
    head = ("group", "parent", "prio", "progress", "")
    rows = [
        (row["name"], row["parent"] or "", shown(row["priority"]), row["progress"], said(row))
        for row in groups
    ]
    return table(head, rows, right=(2,)) or "there is no group"


def added_text(name: str, document: TreeAddedAnswer) -> str:
    """What was added: the group, its tasks, and what was left out."""
    would = "would be " if document.get("dry_run") else ""
    if "tasks" not in document:
        return safe(
            f"added group {name}" if document["created"] else f"there is a group already: {name}"
        )
    new = [row["id"] for row in document["tasks"] if row["created"]]
    known = len(document["tasks"]) - len(new)
    groups = sum(entry["created"] for entry in document["groups"])
    lines = [f"{count(groups, 'group')} and {count(len(new), 'task')} {would}added to {name}"]
    if known:
        lines.append(f"  {count(known, 'task')} known already")
    lines += [f"  left out {entry['id']}: {entry['reason']}" for entry in document["unrouted"]]
    return "\n".join(map(safe, lines))


def changed_text(document: GroupSetAnswer) -> str:
    """A group after a change."""
    group = document["group"]
    values = {
        "title": group["title"],
        "progress": group["progress"],
        "said": said(group),
        "parent": shown(group["parent"]),
        "priority": shown(group["priority"]),
        "groups": listed(group["groups"][:LINES], len(group["groups"])),
        "followed": count(document["followed"], "queued task") if document["followed"] else "",
    }
    return facts(group["name"], values)


def said(group: GroupDocument) -> str:
    """The marks of a group: done, stranded, paused."""
    marks = {"done": group["done"], "stranded": group["stranded"], "paused": group["paused"]}
    return ", ".join(word for word, is_so in marks.items() if is_so)


def bar(done: int, total: int) -> str:
    """How far it is, drawn; full only when all is done."""
    part = BAR * done // total if total else 0
    return paint("█" * part, "green") + paint("░" * (BAR - part), "dim")


def _tree(rows: list[TreeGroupDocument]) -> Iterator[str]:
    wide = max(cells(safe(branch["name"])) + 2 * branch["depth"] for branch in rows)
    for branch in rows[:LINES]:
        name = "  " * branch["depth"] + safe(branch["name"])
        gap = " " * (wide - cells(name))
        over = branch["by_status"]["done"] + branch["by_status"]["canceled"]
        yield f"  {name}{gap}  {bar(over, branch['total'])}  {_counts(branch)}"
    if len(rows) > LINES:
        yield f"  … and {count(len(rows) - LINES, 'group')} more"


def _counts(group: GroupDocument) -> str:
    by = group["by_status"]
    running = by["leased"] + by["running"]
    parts = [group["progress"]] if group["total"] else ["no task"]
    parts += [f"{number} {word}" for number, word in (
        (running, "running"), (group["ready"], "ready"), (group["waiting"], "waiting"),
    ) if number]  # fmt: skip
    marks = {"stranded": group["stranded"], "paused": group["paused"]}
    extra = ", ".join(word for word, is_so in marks.items() if is_so)
    return ", ".join(parts) + (" " + paint(f"({extra})", "yellow") if extra else "")


def _section(title: str, lines: Iterable[str]) -> list[str]:
    every = list(lines)
    shown_ones = [wrapped(safe(line), 6, "    ") for line in every[:LINES]]
    if len(every) > LINES:
        shown_ones.append(f"    … and {len(every) - LINES} more")
    return [f"  {paint(title, 'dim')}", *shown_ones] if every else []


def _running(row: GroupRunningDocument, now: Instant) -> str:
    since = about(max(0, now - parse_instant(row["since"]))) if row["since"] else ""
    words = [f"{row['id']} on {row['worker']}" if row["worker"] else row["id"]]
    words += [f"for {since}"] if since else []
    words += [f"attempt {row['attempt']}"] if row["attempt"] > 1 else []
    said_last = cut(row["note"] or row["title"], NOTE_MAX)
    return ", ".join(words) + (f": {said_last}" if said_last else "")


def _time(span: SpanDocument, now: Instant) -> str:
    if span["from"] is None:
        return ""
    start = parse_instant(span["from"])
    if span["until"] is None:
        return f"since {in_seconds(span['from'])}, {about(max(0, now - start))} so far"
    end = parse_instant(span["until"])
    return f"{about(max(0, end - start))}, ended {until_text(end, now)}"


def _used(group: FullGroupDocument) -> str:
    cost = usd(group["usd"])
    if not group["tokens"]:
        return cost
    return f"{group['tokens']:,} tokens" + (f", {cost}" if cost else "")


command = resource(
    "group",
    "Tasks followed together, and how far they are.",
    ("Every group with its progress.", _table),
    (_SHOW, "release", story_text),
    "group add release --priority 10",
)


@command.command("add")
@click.argument("name", metavar="GROUP")
@click.option("--parent", metavar="G", help="The group above it.")
@click.option("--priority", type=int, metavar="N", help="For its tasks that name none.")
@click.option("--title", metavar="TEXT", help="What people read.")
@click.option("--file", metavar="TREE", help="TOML or JSON with its tasks and groups; - is stdin.")
@click.option("--project", metavar="P", help="With --file: for tasks that name none.")
@click.option("--dry-run", is_flag=True, help="With --file: say what would be added.")
@takes_call
def add(call: Call, /, name: str, file: str | None, **options: object) -> int:
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
    elif options["project"] or options["dry_run"]:
        raise Invalid("--project and --dry-run need --file", "Give a tree.", code="usage")
    document: TreeAddedAnswer = call.ask("group_add", name=name, tree=tree, **options)
    return call.show_added(document, lambda: added_text(name, document))


@command.command("set")
@click.argument("name", metavar="GROUP")
@click.option("--parent", metavar="G", help="The group above it; none: on its own.")
@click.option("--priority", metavar="N", help="For its tasks that name none; none: as above it.")
@click.option("--title", metavar="TEXT", help="What people read.")
@takes_call
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
    values: dict[str, object] = {}
    if parent is not None:
        values["parent"] = None if parent == "none" else parent
    if priority is not None:
        values["priority"] = None if priority == "none" else number("priority", priority)
    if title is not None:
        values["title"] = title
    document = call.ask("group_set", name=name, values=values)
    call.show(document, lambda: changed_text(document))
