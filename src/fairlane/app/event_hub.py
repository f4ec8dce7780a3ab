"""Event hub: reads each durable event once and passes it to every listener of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from fairlane.clock import SYSTEM, Waker
from fairlane.engine.context import Context
from fairlane.model.documents.tasks import EventDocument
from fairlane.model.errors import FairlaneError
from fairlane.service.reports import listing

#: How long to wait after a change, so that a busy store is read at most this often.
GATHER_SECONDS = 0.05
#: Events that a listener may lag behind before it is dropped; it reconnects at its last event.
LAG_MAX = 2_000


def server_sent(kind: str, data: str, *head: str) -> str:
    """One server-sent event; `head`: lines before it, such as its id."""
    return "\n".join([*head, f"event: {kind}", f"data: {data}", "", ""])


@dataclass(slots=True, eq=False)
class Listener:
    """A queue of events; `None` ends it: the listener lagged too far behind."""

    queue: asyncio.Queue[EventDocument | None] = field(
        default_factory=lambda: asyncio.Queue(maxsize=LAG_MAX + 1)
    )

    def drain(self) -> None:
        """Discard what is queued."""
        while not self.queue.empty():
            self.queue.get_nowait()

    def send(self, documents: list[EventDocument]) -> bool:
        """Whether the listener keeps up."""
        for document in documents:
            if self.queue.qsize() >= LAG_MAX:
                self.queue.put_nowait(None)
                return False
            self.queue.put_nowait(document)
        return True


class EventHub:
    """Watches the store in a thread of its own and fans events out in the event loop."""

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._closing = Waker()
        self.is_closing = False
        self.changes = 0  # how often somebody has written
        self._listeners: set[Listener] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.newest = 0  # the number of the last event that was sent

    def open(self, newest: int) -> None:
        """Send everything after this number, in the loop that runs now."""
        self.newest, self._loop = newest, asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """Stop watching; blocks until the thread has ended."""
        self.is_closing = True
        self._closing.set()
        self._thread.join()
        self._closing.close()

    def listen(self) -> Listener:
        """A listener that gets every event from now on."""
        listener = Listener()
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Send nothing more to this listener."""
        self._listeners.discard(listener)

    def _watch(self) -> None:
        context, stamp = self._context(), -1
        while not self.is_closing:
            try:
                now = context.store.wait_for_change(stamp, None, self._closing)
                if now != stamp:
                    self.changes += 1
                    self._read_new(context)
                stamp = now
            except (FairlaneError, OSError):  # the store is busy, files ran out: read it later
                stamp = -1
            SYSTEM.wait(GATHER_SECONDS, self._closing)

    def _read_new(self, context: Context) -> None:
        if not self._listeners:
            newest = listing.newest(context)
            if not self._listeners:  # a later listener reads what exists first
                self.newest = newest
                return
        while self._loop is not None and not self.is_closing:
            page = listing.page(context, self.newest)
            if not page["events"]:
                return
            self.newest = page["cursor"]
            self._loop.call_soon_threadsafe(self._send, page["events"])

    def _send(self, documents: list[EventDocument]) -> None:
        for listener in list(self._listeners):
            if not listener.send(documents):
                self.leave(listener)
