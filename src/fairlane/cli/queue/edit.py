"""Commands that change tasks which are in the queue: edit, cancel, retry, pause, resume, clear."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call, takes_options
from fairlane.cli.output import count, listed, paint, safe, scope_text, until_text, write
from fairlane.cli.queue.add import FIELDS, record
from fairlane.model.errors import Refused
from fairlane.model.instant import Instant, parse_instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlane.model.documents.admin import ClearedAnswer, PausedAnswer, ResumedAnswer
    from fairlane.model.documents.tasks import ChangedDocument


@click.command("edit")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@takes_options(FIELDS)
@click.option("--prompt", metavar="TEXT", help="What the agent is told; - is stdin.")
@takes_call
def edit(call: Call, /, ids: tuple[str, ...], **options: object) -> None:
    """Change tasks that have not started. The word none puts a field back to its default.

    \b
    Example:
      fairlane edit t4 t5 --priority 10
      fairlane edit t4 --not-before none --group release
    """
    changes = record(options, call.clock.now())
    cleared = {name: None if value == "none" else value for name, value in changes.items()}
    if changes.get("template") == "none":
        cleared["template"] = "none"  # the prompt as it is, not the project's template
    document = call.ask("edit", ids=ids, changes=cleared)
    names = [row["id"] for row in document["tasks"]]
    fields = ", ".join(name.replace("_", "-") for name in cleared)
    text = f"{count(len(names), 'task')} changed ({fields}): {listed(names[:20], len(names))}"
    call.show(document, lambda: safe(text))


@click.command("cancel")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--tree", is_flag=True, help="Their descendants too.")
@click.option("--group", metavar="G", help="Every task of this group.")
@click.option("--reason", default="", metavar="TEXT", help="Why; people see it.")
@takes_call
def cancel(call: Call, ids: tuple[str, ...], tree: bool, group: str | None, reason: str) -> None:
    """Take tasks out for good. What is in flight is asked to stop; a success before that wins.

    \b
    Example:
      fairlane cancel t4 t5
      fairlane cancel t4 --tree --reason "not wanted any more"
      fairlane cancel --group release
    """
    document = call.ask("cancel", ids=ids, tree=tree, group=group, reason=reason)
    call.show(document, lambda: changed_text(document["tasks"], "nothing was left to cancel"))


@click.command("retry")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@takes_call
def retry(call: Call, ids: tuple[str, ...]) -> None:
    """Put parked tasks back, and let tasks that wait after a failure start at once.

    Their count of failures begins anew; attempt numbers go on growing.

    \b
    Example:
      fairlane retry t4
    """
    document = call.ask("retry", ids=ids)
    call.show(document, lambda: changed_text(document["tasks"], "nothing to retry"))


def changed_text(rows: Sequence[ChangedDocument], nothing: str) -> str:
    """What became of tasks, by status."""
    if not rows:
        return nothing
    by: dict[str, list[str]] = {}
    for row in rows:
        word = f"asked to stop ({row['status']})" if row.get("stop_requested") else row["status"]
        by.setdefault(word, []).append(row["id"])
    lines = []
    for word, names in by.items():
        verb = "is" if len(names) == 1 else "are"
        if word.startswith("asked"):
            verb = "was" if len(names) == 1 else "were"
        lines.append(safe(f"{listed(names[:20], len(names))} {verb} {word}"))
    return "\n".join(lines)


@click.command("pause")
@click.argument("scope", default="all", metavar="[SCOPE]")
@click.option("--reason", default="", metavar="TEXT", help="Why; people see it.")
@takes_call
def pause(call: Call, scope: str, reason: str) -> None:
    """Start nothing more in a scope. What runs goes on; twice is the same as once.

    SCOPE: all, project:P, kind:K, pool:P, group:G, task:ID. Default: all.

    \b
    Example:
      fairlane pause
      fairlane pause project:web --reason "release day"
    """
    document = call.ask("pause", scope=scope, reason=reason)
    call.show(document, lambda: _paused_text(document, call.clock.now()))


def _paused_text(pause: PausedAnswer, now: Instant) -> str:
    scope, why = scope_text(pause["scope"]), f": {pause['reason']}" if pause["reason"] else ""
    if pause["changed"]:
        return paint(safe(f"{scope} is paused{why}"), "yellow")
    since = until_text(parse_instant(pause["since"]), now)
    return safe(f"{scope} was paused already, by {pause['by']} {since}{why}")


@click.command("resume")
@click.argument("scope", default="all", metavar="[SCOPE]")
@takes_call
def resume(call: Call, scope: str) -> None:
    """Go on after a pause. Each scope is resumed as it was paused.

    SCOPE: all, project:P, kind:K, pool:P, group:G, task:ID. Default: all.

    \b
    Example:
      fairlane resume
      fairlane resume project:web
    """
    document = call.ask("resume", scope=scope)
    call.show(document, lambda: _resumed_text(document, scope))


def _resumed_text(document: ResumedAnswer, scope: str) -> str:
    if document["changed"]:
        text = paint(safe(f"{scope_text(scope)} goes on"), "green")
    elif scope == "all":
        text = "it was not paused as a whole" if document["paused"] else "nothing was paused"
    else:
        text = safe(f"{scope_text(scope)} was not paused")
    still = [scope_text(pause["scope"]) for pause in document["paused"]]
    return text + (safe(f"; still paused: {listed(still[:5], len(still))}") if still else "")


@click.command("clear")
@click.argument("scope", default="all", metavar="[SCOPE]")
@click.option("--yes", is_flag=True, help="Do it; without it, it is asked on a terminal.")
@click.option("--dry-run", is_flag=True, help="Only say what would be canceled.")
@takes_call
def clear(call: Call, scope: str, yes: bool, dry_run: bool) -> None:
    """Cancel what is queued, all or in a scope. What runs goes on.

    SCOPE: all, project:P, kind:K, pool:P, group:G, task:ID. Default: all.

    \b
    Example:
      fairlane clear project:web
      fairlane clear --yes
    """
    document = call.ask("clear", scope=scope, dry_run=True)
    if not document["count"] or dry_run:
        _show_cleared(call, document)
        return
    if not yes:
        _confirm(call, document)
    _show_cleared(call, call.ask("clear", scope=scope))


def _confirm(call: Call, document: ClearedAnswer) -> None:
    """A person decides; where there is none, nothing is changed."""
    if call.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        message = f"not cleared: {_queued_text(document)}"
        raise Refused(message, "Add --yes to cancel them.", "unconfirmed")
    write(_queued_text(document) + "\n")
    click.confirm("Cancel them?", abort=True)


def _show_cleared(call: Call, document: ClearedAnswer) -> None:
    text = f"nothing is queued in {scope_text(document['scope'])}"
    if document["count"]:
        text = f"{'would be ' if document['dry_run'] else ''}canceled: {_queued_text(document)}"
    call.show(document, lambda: text)


def _queued_text(document: ClearedAnswer) -> str:
    kinds = ", ".join(f"{kind} {number}" for kind, number in document["by_kind"].items())
    names = listed(document["tasks"][:5], document["count"])
    return safe(f"{count(document['count'], 'queued task')} ({kinds}): {names}")
