"""`fairlane events`: the log of everything that happened."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import json_safe, print_json, write

#: How many events people see unless they ask for more, and before they follow.
ROWS_SHOWN, BEFORE_FOLLOWING = 50, 10
#: How many events one document holds unless more are asked for.
PAGE = 1000


@click.command("events")
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes.")
@click.option("--after", type=click.IntRange(min=0), metavar="N", help="Only after event N.")
@click.option("--task", metavar="ID", help="Only of this task.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most this many.")
@common
@pass_call
def command(
    call: Call, follow: bool, after: int | None, task: str | None, limit: int | None
) -> None:
    """The log of everything that happened, oldest first. Without --after: the newest.

    With --json one document; with --json --follow one document a line.

    \b
    Example:
      fairlane events --task t4
      fairlane events --follow --after 0 --json
    """
    if follow:
        _follow(call, after, task)
        return
    shown = PAGE if call.json else ROWS_SHOWN
    document = call.ask("events", cursor=after, task=task, limit=limit or shown)
    if call.json:
        print_json(document)
        return
    from fairlane.cli.look.events_text import event_line

    lines = [event_line(each, call.clock.now(), task=task is None) for each in document["events"]]
    write("\n".join(lines or ["nothing has happened"]) + "\n")


def _follow(call: Call, after: int | None, task: str | None) -> None:
    from fairlane.cli.look.events_text import event_line

    if after is None:
        after = call.ask("events", limit=1)["cursor"]
        before = [] if call.json else _newest(call, task)
        after = before[0]["number"] - 1 if before else after
    for each in _coming(call, after, task):
        if call.json:
            write(json_safe(json.dumps(each, ensure_ascii=False)) + "\n")
        else:
            write(event_line(each, None, task=task is None) + "\n")
        sys.stdout.flush()


def _newest(call: Call, task: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call.ask("events", task=task, limit=BEFORE_FOLLOWING)["events"]
    return found


def _coming(call: Call, after: int, task: str | None) -> Iterator[dict[str, Any]]:
    """Every event after a number, and those that come."""
    if call.server is not None:
        yield from call.remote().events(after, task)
        return
    from fairlane.service.reports import events

    with call.desk() as desk:
        yield from events.follow(desk, after, task)
