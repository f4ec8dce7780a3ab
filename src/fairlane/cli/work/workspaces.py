"""`fairlane workspaces`: the folders in which attempts work."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, print_json, table, warn, write


@click.group("workspaces", invoke_without_command=True)
@common
@click.pass_context
def command(context: click.Context) -> None:
    """The worktrees of tasks: list them, and clean up what is safe to remove.

    \b
    Example:
      fairlane workspaces
      fairlane workspaces clean
    """
    if context.invoked_subcommand is None:
        context.invoke(show)


@command.command("list")
@common
@pass_call
def show(call: Call) -> None:
    """Every worktree, and why it must stay, if it must.

    \b
    Example:
      fairlane workspaces list
    """
    from fairlane.service import places

    with call.desk() as desk:
        document = places.listing(desk)
    if call.json:
        print_json(document)
        return
    rows = [
        (each["project"], each["name"], each["branch"] or "-", each["keep"] or "safe to remove")
        for each in document["workspaces"]
    ]
    head = ("project", "name", "branch", "how it is")
    write(table(head, rows) + "\n" if rows else "no worktrees\n")


@command.command("clean")
@click.option("--dry-run", is_flag=True, help="Show what would be removed.")
@common
@pass_call
def clean(call: Call, dry_run: bool) -> None:
    """Remove worktrees with nothing to lose: ended, committed, merged.

    \b
    Example:
      fairlane workspaces clean --dry-run
    """
    from fairlane.service import places

    with call.desk() as desk:
        document = places.clean(desk, dry_run)
    if call.json:
        print_json(document)
        return
    for each in document["refused"]:
        warn(f"{each['name']} stays: {each['keep']}")
    word = "would be removed" if dry_run else "removed"
    write(f"{count(len(document['removed']), 'worktree')} {word}\n")
