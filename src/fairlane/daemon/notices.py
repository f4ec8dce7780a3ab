"""Notices: send chosen events of the log to listeners, in order, at least once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor as Threads
from concurrent.futures import Future

from fairlane.engine.context import Context
from fairlane.model.event import Event
from fairlane.model.instant import show_instant
from fairlane.notify.send import send

#: Kind of event -> the name under which settings ask for it.
NAMES = {
    "parked": "parked",
    "budget_warning": "budget_warning",
    "budget_exceeded": "budget_warning",
    "cooldown": "cooldown",
    "group_done": "group_done",
    "queue_empty": "queue_empty",
}
_KEPT = "notified"
_PAGE = 500


class Notices:
    """Reads the log from where it was left, and sends in a thread of its own."""

    def __init__(self, context: Context, say: Callable[[str], None], thread: Threads) -> None:
        self._context, self._say, self._thread = context, say, thread
        self._sending: Future[None] | None = None

    def look(self) -> None:
        """Send what is new, unless something is being sent."""
        if not self._context.settings.notify:
            return
        if self._sending is not None and not self._sending.done():
            return
        self._sending = self._thread.submit(self._send_new)

    def close(self) -> None:
        """What is being sent is finished, and what came last is sent."""
        if self._context.settings.notify:
            self._thread.submit(self._send_new)
        self._thread.shutdown(wait=True)

    def _send_new(self) -> None:
        with self._context.store.read() as reading:
            last = reading.value(_KEPT)
            events = reading.events(after=last or 0, limit=_PAGE)
        if not events:
            return
        for event in events:
            self._send(event)
        with self._context.store.write() as tx:
            tx.put_value(_KEPT, events[-1].number)

    def _send(self, event: Event) -> None:
        name = NAMES.get(event.kind)
        for rule in self._context.settings.notify if name else ():
            if name in rule.on:
                problem = send(rule, document_of(event, name or ""))
                if problem:
                    self._say(f"warning: not told of {event.kind}: {problem}")


def document_of(event: Event, name: str) -> dict[str, object]:
    """What a listener gets; the number tells one that came twice."""
    return {
        "schema": "fairlane/1",
        "number": event.number,
        "event": name,
        "kind": event.kind,
        "at": show_instant(event.at),
        "task": event.task,
        "project": event.project,
        "data": dict(event.data),
    }
