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
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from fairlane.app.here import ADDING, TAKING_IN, start_after, take_in_before
from fairlane.daemon.direct import start_added
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import SECOND, Micros, parse_duration
from fairlane.service.desk import Desk
from fairlane.service.operations import answer, together
from fairlane.service.operations.checking import fitting
from fairlane.service.operations.table import OPERATIONS, WAIT_MAX, Operation
from fairlane.service.operations.values import Document, length
from fairlane.service.reports import events

#: Threads that read.
READERS = 2
#: Most calls that share one commit.
SHARED_MAX = 64
#: How long those who have just been answered are waited for, so that all come together.
GATHER_SECONDS = 0.002
#: How often it is looked for events that other processes made.
NOTICE_SECONDS = 0.05
#: How often one who waits for work asks again though nothing was heard: a time may have come.
ASK_SECONDS = 1.0
#: Events that a listener may lag behind; then it is let go, and comes back where it was.
LAG_MAX = 2_000

#: Whose turn is not now.
_OTHERS = {"lease": "complete", "complete": "lease"}


@dataclass(slots=True, eq=False)
class _Call:
    """One call that waits for its answer."""

    operation: Operation
    arguments: Mapping[str, Any]
    actor: str | None
    promised: asyncio.Future[Document]
    found: Document | BaseException | None = None

    def perform(self, desk: Desk) -> None:
        """By itself; if it fails, it alone is undone."""
        try:
            self.found = answer(desk, self.operation.name, **self.arguments)
        except Exception as error:
            self.found = error


@dataclass(slots=True, eq=False)
class Listener:
    """Who is told of events; `None` in its queue: it lagged too far behind and is let go."""

    queue: asyncio.Queue[Document | None] = field(
        default_factory=lambda: asyncio.Queue(maxsize=LAG_MAX + 1)
    )

    def drain(self) -> None:
        """Forget what it was told."""
        while not self.queue.empty():
            self.queue.get_nowait()

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
        self._together = 1  # how many calls shared the last commit
        self._wanted = 1  # how many calls must wait before the writer is woken
        self._closing = threading.Event()
        self._listeners: set[Listener] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looked_at = 0.0  # when a call looked for what has ended here
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
        given = fitting(operation, arguments or {})
        if operation.reads:
            found: Document = await self.read(lambda desk: answer(desk, name, **given))
            return found
        taken: tuple[str, ...] = ()
        if self._looks_for_ends(name):
            taken = await self.read(lambda desk: take_in_before(desk, name))
        if given.pop("wait", None):
            wait = length((arguments or {})["wait"]) or 0
            written = await self._wait(operation, given, actor, wait)
        else:
            written = await self._write(operation, given, actor)
        if name in ADDING:
            await self.read(lambda desk: start_added(desk, written))
        if taken or name == "reclaim":
            await self.read(lambda desk: start_after(desk, name, taken, written))
        return written

    def _looks_for_ends(self, name: str) -> bool:
        """Whether this call looks for what has ended here; of many leases one a second does."""
        if name not in TAKING_IN:
            return False
        due = name == "reclaim" or monotonic() - self._looked_at >= ASK_SECONDS
        if due:
            self._looked_at = monotonic()
        return due

    async def _write(
        self, operation: Operation, arguments: Mapping[str, Any], actor: str | None
    ) -> Document:
        promised: asyncio.Future[Document] = asyncio.get_running_loop().create_future()
        with self._came:
            self._waiting.append(_Call(operation, arguments, actor, promised))
            if (
                len(self._waiting) >= self._wanted
            ):  # waking it for each would cost more than it does
                self._came.notify()
        return await promised

    async def _wait(
        self, operation: Operation, arguments: Mapping[str, Any], actor: str | None, wait: Micros
    ) -> Document:
        """Ask again when something has happened, until there is work or the time is over."""
        give_up = monotonic() + min(wait, parse_duration(WAIT_MAX)) / SECOND
        listener = self.listen()
        try:
            while True:
                found = await self._write(operation, arguments, actor)
                left = give_up - monotonic()
                if found["leases"] or left <= 0 or self._closing.is_set():
                    return found
                listener.drain()
                with suppress(TimeoutError):
                    await asyncio.wait_for(listener.queue.get(), min(left, ASK_SECONDS))
        finally:
            self.leave(listener)

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
        while asked := self._take():
            try:
                self._perform(self._desk(), asked)
            except BaseException as error:  # the commit itself: none of them has happened
                for call in asked:
                    call.found = error
            if self._loop is not None:
                self._loop.call_soon_threadsafe(_answer, asked)

    def _take(self) -> list[_Call]:
        """All that wait; those who have just been answered are waited for a moment.

        Who asks for work and who has done it take turns: they would be apart for ever otherwise,
        and half as many would share a plan.
        """
        with self._came:
            back = self._together + len(self._waiting)  # they come back, and so they stay
            while not self._waiting and not self._closing.is_set():
                self._came.wait()
            if len(self._waiting) < back and not self._closing.is_set():
                self._wanted = back
                self._came.wait(GATHER_SECONDS)
                self._wanted = 1
            waiting = list(self._waiting)
            others = _OTHERS.get(waiting[0].operation.name) if waiting else None
            taken = [each for each in waiting if each.operation.name != others][:SHARED_MAX]
            gone = set(taken)
            self._waiting = deque(each for each in waiting if each not in gone)
            self._together = len(taken)
            return taken

    def _perform(self, desk: Desk, asked: list[_Call]) -> None:
        """All of them durable at once; one group alone has a transaction of its own."""
        own, groups = desk.actor, _groups(asked)
        try:
            with desk.store.sharing() if len(groups) > 1 else nullcontext():
                for group in groups:
                    desk.actor = group[0].actor or own
                    _perform_together(desk, group)
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
            except FairlaneError:  # busy, or away for a moment: the next look finds it
                stamp = -1

    def _tell(self, desk: Desk) -> None:
        if not self._listeners:
            newest = events.newest(desk)
            if not self._listeners:  # who comes from now on reads what there is first
                self.newest = newest
                return
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


def _groups(asked: list[_Call]) -> list[list[_Call]]:
    """Calls that can be done in one go beside each other."""
    groups: dict[object, list[_Call]] = {}
    for call in asked:
        sort = together.sort_of(call.operation.name, call.arguments)
        groups.setdefault((call.actor, sort) if sort else call, []).append(call)
    return list(groups.values())


def _perform_together(desk: Desk, asked: list[_Call]) -> None:
    """Calls of one sort in one go; where that fails, each by itself."""
    if len(asked) > 1:
        given = [call.arguments for call in asked]
        try:
            found = together.answer_each(desk, asked[0].operation.name, given)
        except Exception:  # one of them cannot be done: whose it is shows below
            found = []
        for call, each in zip(asked, found, strict=False):
            call.found = each
        if found:
            return
    for call in asked:
        call.perform(desk)


def _answer(asked: list[_Call]) -> None:
    """In the loop: every caller gets its own."""
    for call in asked:
        if call.promised.cancelled():
            continue
        if isinstance(call.found, BaseException):
            call.promised.set_exception(call.found)
        else:
            assert call.found is not None
            call.promised.set_result(call.found)
