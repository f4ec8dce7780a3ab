"""`fairlane workspaces`: the folders in which attempts work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.options import common, takes_call
from fairlane.cli.output import count, paint, safe, warn, wrapped

if TYPE_CHECKING:
    from fairlane.model.documents.admin import WorkspaceDocument


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
    call.show(document, lambda: _listed(document["workspaces"]) or "no worktrees")


def _listed(workspaces: list[WorkspaceDocument]) -> str:
    """A line each, and its folder below: paths are long, and people copy them whole."""
    blocks = []
    for row in workspaces:
        name = f"{row['project']}/{row['name']}"
        branch = f" on {row['branch']}" if row["branch"] else ""
        text = f"{name}{branch}: {row['keep'] or 'safe to remove'}"
        blocks.append(f"{wrapped(safe(text), 4, '  ')}\n    {paint(safe(row['path']), 'dim')}")
    return "\n".join(blocks)


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
