"""Inside an attempt: the commands that an agent may call. A guard against mistakes, not a wall."""

from __future__ import annotations

import click

#: Commands that an attempt may call. All others decide for people, or for the whole queue.
MAY = frozenset(
    {
        "add", "heartbeat", "report", "complete", "release", "mcp",
        "list", "show", "logs", "diff", "open", "why", "status", "plan", "summary", "stats",
        "events", "replay",
        "group list", "group show", "pool list", "pool show", "workspaces", "workspaces list",
        "doctor", "completion",
    }
)  # fmt: skip


def refuse_inside(ctx: click.Context) -> None:
    """Refuse a command that is not for attempts where one calls it."""
    from fairlane.app import own_lease

    _, _, command = ctx.command_path.partition(" ")
    if own_lease() is None or command in MAY or isinstance(ctx.command, click.Group):
        return
    from fairlane.service.attempt_rights import not_for_attempts

    raise not_for_attempts(ctx.command_path)
