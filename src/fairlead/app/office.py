"""Office: many callers of one home at once. Reads go side by side, writes share commits.

The HTTP server, the page and MCP over HTTP ask here. Nothing of the store runs in the event loop:
readers have threads with desks of their own, and one thread writes whatever has come in meanwhile
in one commit. Who listens is told of every event once it is durable.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from fairlead.model.errors import FairleadError
from fairlead.service.desk import Desk
from fairlead.service.operations.calls import Document
from fairlead.service.operations.checking import perform
from fairlead.service.operations.table import OPERATIONS, Operation
from fairlead.service.reports import events

#: Threads that read.
READERS = 2
#: Most calls that share one commit.
SHARED_MAX = 64
#: How often it is looked for events that other processes made.
NOTICE_SECONDS = 0.05
#: Events that a listener may lag behind; then it is let go, and comes back where it was.
LAG_MAX = 2_000


@dataclass(slots=True)
class _Call:
    """One call that waits for its answer."""

    operation: Operation
    arguments: Mapping[str, Any]
    actor: str | None
    answer: asyncio.Future[Document]
    found: Document | BaseException | None = None


@dataclass(slots=True, eq=False)
class Listener:
    """Who is told of events; `None` in its queue: it lagged too far behind and is let go."""

    queue: asyncio.Queue[Document | None] = field(
        default_factory=lambda: asyncio.Queue(maxsize=LAG_MAX + 1)
    )

    def tell(self, documents: list[Document]) -> bool:
        """Whether it could keep up."""
        for each in documents:
            if self.queue.qsize() >= LAG_MAX:
                self.queue.put_nowait(None)
                return False
            self.queue.put_nowait(each)
        return True


class Office:
    """Asks the same functions as everybody, for many callers at once."""

    def __init__(self, desk: Callable[[], Desk]) -> None:
        self._open = desk
        self._mine = threading.local()
        self._desks: list[Desk] = []
        self._readers = ThreadPoolExecutor(READERS, "read")
        self._writer = threading.Thread(target=self._write_all, name="write", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._waiting: deque[_Call] = deque()
        self._came = threading.Condition()
        self._closing = threading.Event()
        self._listeners: set[Listener] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.newest = 0  # the number of the last event that listeners were told of

    async def open(self) -> None:
        """Begin; called in the loop that asks."""
        self._loop = asyncio.get_running_loop()
        self.newest = await self.read(events.newest)
        self._writer.start()
        self._watcher.start()

    async def close(self) -> None:
        """Answer what has come in, and end."""
        self._closing.set()
        with self._came:
            self._came.notify_all()
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._watcher.join)
        self._readers.shutdown()
        for desk in self._desks:
            desk.store.close()

    async def ask(
        self, name: str, arguments: Mapping[str, Any] | None = None, actor: str | None = None
    ) -> Document:
        """The answer of an operation; its errors are raised here."""
        operation = OPERATIONS[name]
        if operation.reads:
            found: Document = await self.read(
                lambda desk: perform(desk, operation, arguments or {})
            )
            return found
        answer: asyncio.Future[Document] = asyncio.get_running_loop().create_future()
        with self._came:
            self._waiting.append(_Call(operation, arguments or {}, actor, answer))
            self._came.notify()
        return await answer

    async def read(self, asked: Callable[[Desk], Any]) -> Any:
        """What a function of a desk gives that changes nothing."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, lambda: asked(self._desk()))

    def listen(self) -> Listener:
        """From now on this listener is told of every event."""
        listener = Listener()
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """It is told no more."""
        self._listeners.discard(listener)

    # In threads

    def _desk(self) -> Desk:
        """The desk of this thread."""
        found: Desk | None = getattr(self._mine, "desk", None)
        if found is None:
            found = self._mine.desk = self._open()
            self._desks.append(found)
        found.warnings.clear()
        return found

    def _write_all(self) -> None:
        """Whatever has come in, in one commit; what comes meanwhile, in the next."""
        while True:
            with self._came:
                while not self._waiting and not self._closing.is_set():
                    self._came.wait()
                if not self._waiting:
                    return
                count = min(len(self._waiting), SHARED_MAX)
                calls = [self._waiting.popleft() for _ in range(count)]
            try:
                self._perform(self._desk(), calls)
            except BaseException as error:  # the commit itself: none of them has happened
                for call in calls:
                    call.found = error
            if self._loop is not None:
                self._loop.call_soon_threadsafe(_answer, calls)

    def _perform(self, desk: Desk, calls: list[_Call]) -> None:
        own = desk.actor
        try:
            with desk.store.sharing():
                for call in calls:
                    desk.actor = call.actor or own
                    try:
                        call.found = perform(desk, call.operation, call.arguments)
                    except Exception as error:  # only this one is undone
                        call.found = error
        finally:
            desk.actor = own

    def _watch(self) -> None:
        """Events of all processes, told once."""
        desk, stamp = self._desk(), -1
        while not self._closing.wait(NOTICE_SECONDS):
            try:
                now = desk.store.stamp()
                if now != stamp:
                    stamp = now
                    self._tell(desk)
            except FairleadError:  # busy, or away for a moment: the next look finds it
                stamp = -1

    def _tell(self, desk: Desk) -> None:
        while self._loop is not None and not self._closing.is_set():
            page = events.page(desk, self.newest)
            if not page["events"]:
                return
            self.newest = page["cursor"]
            self._loop.call_soon_threadsafe(self._tell_listeners, page["events"])

    def _tell_listeners(self, documents: list[Document]) -> None:
        for listener in list(self._listeners):
            if not listener.tell(documents):
                self.leave(listener)


def _answer(calls: list[_Call]) -> None:
    """In the loop: every caller gets its own."""
    for call in calls:
        if call.answer.cancelled():
            continue
        if isinstance(call.found, BaseException):
            call.answer.set_exception(call.found)
        else:
            assert call.found is not None
            call.answer.set_result(call.found)
