"""An event as people read it: when, what, of which task, and what else is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.cli.output import paint, safe, until_text
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from fairlane.model.instant import Instant

#: Kind of event -> its colour.
_TINT = {
    "succeeded": "green",
    "pool_healthy": "green",
    "failed": "red",
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


def event_line(event: dict[str, Any], now: Instant | None, task: bool = True) -> str:
    """One line; the time is told from `now`, or in full where it is not given."""
    at = parse_instant(event["at"])
    when = event["at"].replace("T", " ")[:19] if now is None else until_text(at, now)
    kind = (
        paint(f"{event['kind']:{_WIDE}}", _TINT[event["kind"]])
        if event["kind"] in _TINT
        else (f"{event['kind']:{_WIDE}}")
    )
    whose = f"{safe(event['task'] or event['project'] or ''):<12}  " if task else ""
    return f"  {when:>12}  {kind}  {whose}{safe(_data(event['data'], now))}".rstrip()


def _data(data: dict[str, Any], now: Instant | None) -> str:
    words: list[str] = []
    for name, value in data.items():
        if value in (None, "", [], {}):
            continue
        if name in ("reason", "detail", "note", "cause"):
            words.insert(0, str(value))
        elif name in ("until", "expires_at") and now is not None:
            words.append(f"{name.removesuffix('_at')} {until_text(parse_instant(value), now)}")
        else:
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            words.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(words)
