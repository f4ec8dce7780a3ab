"""Events as an operation: a page of the log, or all that comes."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event as Signal
from typing import Any

from fairlane.model.event import Event
from fairlane.model.instant import show_duration, show_instant
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.reports import documents

#: How often the log is looked at while it is followed.
POLL_SECONDS = 0.2
PAGE = 1000
#: Data that is a time; `wait` is a length.
_TIMES = ("until", "expires_at")


def page(
    desk: Desk, after: int | None = None, task: str | None = None, limit: int = PAGE
) -> dict[str, Any]:
    """Events after a number, or the newest; `cursor` is the next `after`."""
    with desk.store.read() as reading:
        found = reading.events(after or 0, limit, task, last=after is None)
    rows = [document(each) for each in found]
    cursor = rows[-1]["number"] if rows else after or 0
    return {"schema": SCHEMA, "events": rows, "cursor": cursor}


def newest(desk: Desk) -> int:
    """The number of the last event."""
    with desk.store.read() as reading:
        found = reading.events(0, 1, last=True)
    return found[-1].number if found else 0


def follow(desk: Desk, after: int, task: str | None = None) -> Iterator[dict[str, Any]]:
    """Every event after a number, and those that come; it ends when nobody asks any more."""
    while True:
        with desk.store.read() as reading:
            found = reading.events(after, PAGE, task)
        for each in found:
            yield {"schema": SCHEMA, **document(each)}
            after = each.number
        if len(found) < PAGE:
            Signal().wait(POLL_SECONDS)


def document(event: Event) -> dict[str, Any]:
    """One line of the log; times in it as everywhere."""
    told = documents.event(event)
    data: dict[str, Any] = told["data"]
    for name in _TIMES:
        if isinstance(data.get(name), int):
            data[name] = show_instant(data[name])
    if isinstance(data.get("wait"), int):
        data["wait"] = show_duration(data["wait"])
    return told
