"""Shared queue: one home for many callers at once, without blocking the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from fairlane.app import ADDING, COLLECTING, STOPPING, collect_before, start_after
from fairlane.app.context_pool import ContextPool
from fairlane.app.event_hub import EventHub
from fairlane.app.shared_writer import SharedWriter
from fairlane.app.simulations import Simulations
from fairlane.clock import SYSTEM
from fairlane.engine.context import Context
from fairlane.model.instant import SECOND, Micros, parse_duration
from fairlane.runtime.direct import start_added, stop_requested
from fairlane.service.attempt_rights import permit
from fairlane.service.operations.call import Document, answer, duration, fitting
from fairlane.service.operations.table import OPERATIONS, WAIT_MAX, Operation
from fairlane.service.reports import listing

#: How often a caller that waits for work asks again without an event: time alone frees tasks.
ASK_SECONDS = 1.0
#: Threads that read, and threads that start, collect and stop attempts where no daemon runs.
READERS, HANDS = 2, 2
#: Operations that commit in parts: beside the shared writer, so that nobody waits for the whole.
IN_PARTS = ("clear",)
#: Operations that run a program and wait for it, in threads of their own.
LONG = ("check",)
#: Reads that ask git, in threads of their own: a large repository delays no other read.
BY_GIT = ("diff",)


class SharedQueue:
    """Asks the operations for HTTP, the page and MCP: a reader pool and a shared writer."""

    def __init__(self, open_context: Callable[[], Context]) -> None:
        self._contexts = ThreadContexts(open_context)
        self._readers = ContextPool(self._contexts.current, READERS, "read")
        self._hands = ContextPool(self._contexts.current, HANDS, "start")
        self._long = ContextPool(self._contexts.current, HANDS, "check")
        self._git = ContextPool(self._contexts.current, READERS, "git")
        self._writer = SharedWriter(self._contexts.current)
        self._closing = False
        self._collected_at = 0.0  # when a call last collected what has ended on this machine
        self.events = EventHub(self._contexts.current)
        self._simulations = Simulations(self._readers)
        self.read, self.read_git = self._readers.run, self._git.run

    async def open(self) -> None:
        """Begin; called in the loop that asks."""
        self.events.open(await self.read(listing.newest))
        self._writer.open()

    async def close(self) -> None:
        """Answer what has arrived, and end."""
        self._closing = True
        self._simulations.close()
        await asyncio.to_thread(self._writer.close)
        await asyncio.to_thread(self.events.close)
        self._readers.close()
        self._hands.close()
        self._long.close()
        self._git.close()
        self._contexts.close()

    async def ask(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        lease: str | None = None,
        caller: object = None,
    ) -> Any:
        """The answer of an operation, whose type the caller names; raises its errors.

        `lease`: of the attempt that asks and has shown its token; None: the user of this home.
        `caller`: the connection that asks, if it can ask again.
        """
        operation = OPERATIONS[name]
        values = fitting(operation, arguments or {})
        if lease is not None:
            await self.read(lambda context: permit(context, name, values, lease, token=True))
        if operation.reads:
            return await self._read(name, values)
        taken: tuple[str, ...] = ()
        if self._collects(name):
            taken = await self._hands.run(lambda context: collect_before(context, name))
        if name in LONG:
            return await self._long.run(lambda context: answer(context, name, **values))
        if name in IN_PARTS:
            return await self.read(lambda context: answer(context, name, **values))
        if wait := values.pop("wait", None):
            document = await self._wait(operation, values, lease, duration(wait))
        else:
            document = await self._writer.write(operation, values, lease, caller)
        if name in ADDING:
            await self._hands.run(lambda context: start_added(context, document))
        if taken or name == "reclaim":
            await self._hands.run(lambda context: start_after(context, name, taken, document))
        if name in STOPPING:
            await self._hands.run(stop_requested)
        return document

    async def _read(self, name: str, values: Mapping[str, object]) -> Any:
        if name == "simulate":
            return await self._simulations.ask(values)
        read = self.read_git if name in BY_GIT else self.read
        return await read(lambda context: answer(context, name, **values))

    def _collects(self, name: str) -> bool:
        """Whether this call collects what has ended here; of many leases one a second does."""
        if name not in COLLECTING:
            return False
        due = name == "reclaim" or SYSTEM.monotonic() - self._collected_at >= ASK_SECONDS
        if due:
            self._collected_at = SYSTEM.monotonic()
        return due

    async def _wait(
        self, operation: Operation, values: Mapping[str, object], lease: str | None, wait: Micros
    ) -> Document:
        """Ask again after each event, until there is work or the time is over."""
        give_up = SYSTEM.monotonic() + min(wait, parse_duration(WAIT_MAX)) / SECOND
        listener = self.events.listen()
        try:
            while True:
                listener.drain()  # an event during the write ends the wait after it
                document = await self._writer.write(operation, values, lease)
                left = give_up - SYSTEM.monotonic()
                if document["leases"] or left <= 0 or self._closing:
                    return document
                with suppress(TimeoutError):
                    await asyncio.wait_for(listener.queue.get(), min(left, ASK_SECONDS))
        finally:
            self.events.leave(listener)


class ThreadContexts:
    """One context for each thread that asks for one."""

    def __init__(self, open_context: Callable[[], Context]) -> None:
        self._open = open_context
        self._local = threading.local()
        self._contexts: list[Context] = []

    def current(self) -> Context:
        """The context of this thread, without the warnings of its last use."""
        context: Context | None = getattr(self._local, "context", None)
        if context is None:
            context = self._local.context = self._open()
            self._contexts.append(context)
        context.warnings.clear()
        return context

    def close(self) -> None:
        """Close every store; the threads have ended."""
        for context in self._contexts:
            context.store.close()
