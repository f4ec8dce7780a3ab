"""`fairlane events`: the log of everything that happened."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import cells, paint, safe, until_text, wrapped, write
from fairlane.model.instant import parse_instant
from fairlane.model.visible import visible_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.model.documents.tasks import EventDocument, EventsAnswer
    from fairlane.model.instant import Instant

#: How many events people see unless they ask for more, and before they follow.
ROWS_SHOWN, BEFORE_FOLLOWING = 50, 10
#: How many events one document holds unless more are asked for.
PAGE = 1000


@click.command("events")
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes.")
@click.option("--after", type=click.IntRange(min=0), metavar="N", help="Only after event N.")
@click.option("--task", metavar="ID", help="Only of this task.")
@click.option("--kind", metavar="K", help="Only of this kind: parked, check_failed, …")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most this many.")
@takes_call
def command(
    call: Call, follow: bool, after: int | None, task: str | None, kind: str | None,
    limit: int | None,
) -> None:  # fmt: skip
    """The log of everything that happened, oldest first. Without --after: the newest.

    With --json one document; with --json --follow one document a line.

    \b
    Example:
      fairlane events --task t4
      fairlane events --kind check_failed
      fairlane events --follow --after 0 --json
    """
    if follow:
        _follow(call, after, task, kind)
        return
    most = limit or (PAGE if call.json else ROWS_SHOWN)
    document: EventsAnswer = call.ask("events", cursor=after, task=task, kind=kind, limit=most)
    events, now = document["events"], call.clock.now()
    lines = [event_line(event, now, task=task is None) for event in events]
    call.show(document, lambda: "\n".join(lines or ["nothing has happened"]))


def _follow(call: Call, after: int | None, task: str | None, kind: str | None) -> None:
    if after is None:
        after = call.ask("events", limit=1)["cursor"]
        if not call.json:
            only = {"task": task, "kind": kind}
            before: EventsAnswer = call.ask("events", limit=BEFORE_FOLLOWING, **only)
            after = before["events"][0]["number"] - 1 if before["events"] else after
    for event in _coming(call, after or 0, task):
        if kind not in (None, event["kind"]):
            continue
        text = visible_json(json.dumps(event, ensure_ascii=False)) if call.json else ""
        write((text or event_line(event, None, task=task is None)) + "\n")
        sys.stdout.flush()


def _coming(call: Call, after: int, task: str | None) -> Iterator[EventDocument]:
    """Every event after a number, then new ones as they happen."""
    if call.server is not None:
        yield from call.remote().events(after, task)
        return
    from fairlane.service.reports import listing

    with call.context() as context:
        yield from listing.follow(context, after, task)


#: Kind of event -> its colour.
_TINT = {
    "succeeded": "green",
    "pool_healthy": "green",
    "check_passed": "green",
    "failed": "red",
    "check_failed": "red",
    "launch_failed": "red",
    "lost": "red",
    "parked": "red",
    "backoff": "yellow",
    "throttled": "yellow",
    "cooldown": "yellow",
    "stop_requested": "yellow",
    "paused": "yellow",
    "leased": "cyan",
    "started": "cyan",
}
_WIDE = 14


def event_line(event: EventDocument, now: Instant | None, task: bool = True) -> str:
    """One line, wrapped on a terminal; the time is relative to `now`, or in full without it."""
    at = parse_instant(event["at"])
    when = event["at"].replace("T", " ")[:19] if now is None else until_text(at, now)
    kind = f"{event['kind']:{_WIDE}}"
    whose = f"{safe(event['task'] or event['project'] or ''):<12}  " if task else ""
    start = cells(f"  {when:>12}  {kind}  {whose}")
    if event["kind"] in _TINT:
        kind = paint(kind, _TINT[event["kind"]])
    facts = safe(_data(event["data"], now))
    if sys.stdout.isatty() and facts:
        facts = wrapped(facts, start)[start:]
    return f"  {when:>12}  {kind}  {whose}{facts}".rstrip()


def _data(data: Mapping[str, object], now: Instant | None) -> str:
    words: list[str] = []
    for name, value in data.items():
        if value in (None, "", [], {}):
            continue
        if name in ("reason", "detail", "note", "cause"):
            words.insert(0, str(value))
        elif name in ("until", "expires_at") and now is not None:
            until = until_text(parse_instant(str(value)), now)
            words.append(f"{name.removesuffix('_at')} {until}")
        else:
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            words.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(words)
