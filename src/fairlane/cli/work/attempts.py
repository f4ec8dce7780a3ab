"""`fairlane logs` and `workspaces`: what attempts printed, and the folders in which they work."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fairlane.cli.options import Call, common, takes_call
from fairlane.cli.output import count, print_json, safe, table, warn, write

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command("logs")
@click.argument("task", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Go on until the attempt ends.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Default: the last.")
@click.option("--stderr", "errors", is_flag=True, help="Its error output.")
@takes_call
def logs_(call: Call, task: str, follow: bool, attempt: int | None, errors: bool) -> None:
    """What an attempt of a task printed; secrets are masked, control characters shown as text.

    \b
    Example:
      fairlane logs t12 -f
      fairlane logs t12 --attempt 1 --stderr
    """
    stream = "stderr" if errors else "stdout"
    if call.json:
        print_json(call.ask("logs", task=task, attempt=attempt, stream=stream))
        return
    printed = False
    for part in _parts(call, task, attempt, stream, follow):
        write("\n".join(safe(line) for line in part.split("\n")))
        sys.stdout.flush()
        printed = True
    if not printed:
        print(safe(_nothing(call, task, attempt, stream)), file=sys.stderr)


def _nothing(call: Call, task: str, attempt: int | None, stream: str) -> str:
    """What to look at instead of an empty log."""
    other = "stdout" if stream == "stderr" else "stderr"
    which = f" --attempt {attempt}" if attempt else ""
    if call.ask("logs", task=task, attempt=attempt, stream=other)["text"]:
        option = " --stderr" if other == "stderr" else ""
        return f"nothing on {stream}; see fairlane logs {task}{which}{option}"
    return f"it has printed nothing; `fairlane show {task}` tells how it stands"


def _parts(call: Call, task: str, attempt: int | None, stream: str, follow: bool) -> Iterator[str]:
    """The log from its start; with `follow`, until the attempt has ended."""
    if call.server is not None:
        yield from call.remote().log(task, attempt, stream, follow)
        return
    from fairlane.service import logs

    with call.context() as context:
        if follow:
            yield from logs.follow(context, task, attempt, stream)
        else:
            yield from logs.read(context, task, attempt, stream)


@click.group("workspaces", invoke_without_command=True)
@common
@click.pass_context
def workspaces_(ctx: click.Context) -> None:
    """The worktrees of tasks: list them, and clean up what is safe to remove.

    \b
    Example:
      fairlane workspaces
      fairlane workspaces clean
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@workspaces_.command("list")
@takes_call
def show(call: Call) -> None:
    """Every worktree, and why it must stay, if it must.

    \b
    Example:
      fairlane workspaces list
    """
    from fairlane.service import workspaces

    with call.context() as context:
        document = workspaces.listing(context)
    rows = [
        (row["project"], row["name"], row["branch"] or "-", row["keep"] or "safe to remove")
        for row in document["workspaces"]
    ]
    head = ("project", "name", "branch", "how it is")
    call.show(document, lambda: table(head, rows) or "no worktrees")


@workspaces_.command("clean")
@click.option("--dry-run", is_flag=True, help="Show what would be removed.")
@takes_call
def clean(call: Call, dry_run: bool) -> None:
    """Remove worktrees with nothing to lose: ended, committed, merged.

    \b
    Example:
      fairlane workspaces clean --dry-run
    """
    from fairlane.service import workspaces

    with call.context() as context:
        document = workspaces.clean(context, dry_run)
    for workspace in () if call.json else document["refused"]:
        warn(f"{workspace['name']} stays: {workspace['keep']}")
    word = "would be removed" if dry_run else "removed"
    call.show(document, lambda: f"{count(len(document['removed']), 'worktree')} {word}")
