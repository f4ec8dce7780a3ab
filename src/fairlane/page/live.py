"""Live: one look at what changed for everybody who watches; each is sent only what is new to it.

A view is read again when the store has changed, at most a few times a second however many windows
are open, and now and then because time passes. Windows on the same view share what was read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from fairlane.app.event_hub import server_sent
from fairlane.app.shared_queue import SharedQueue
from fairlane.clock import SYSTEM
from fairlane.engine.context import Context
from fairlane.model.errors import FairlaneError
from fairlane.page.html import Html

_LOG = logging.getLogger(__name__)
#: How often views follow what was written, at most.
LOOK_SECONDS = 0.4
#: A view is read again after this long though nothing was written: logs grow, time passes.
STALE_SECONDS = 1.0
#: A quiet connection hears so often that it is one.
BEAT_SECONDS = 10.0
#: Most windows at once.
WATCHERS_MAX = 200


class View(Protocol):
    """What a window shows."""

    title: str
    place: str
    address: str

    def regions(self, context: Context) -> dict[str, Html]:
        """Every part that can change, by its id; read in a thread."""
        ...

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """The layout of the regions."""
        ...


@runtime_checkable
class Lasting(Protocol):
    """A view with parts that are read once; what is new in them its window asks for itself."""

    def lasting(self, context: Context) -> dict[str, Html]:
        """These parts, by their id; read in a thread."""
        ...


@dataclass(slots=True, eq=False)
class Watcher:
    """One window: what it has not been sent yet. A slow one gets the newest, not all."""

    pending: dict[str, str] = field(default_factory=dict)
    came: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class _Room:
    """A view and its windows."""

    view: View
    watchers: set[Watcher] = field(default_factory=set)
    shown: dict[str, str] = field(default_factory=dict)
    read_at: float = 0.0

    def tell(self, regions: dict[str, str]) -> None:
        """Queue the changed regions for every window."""
        changed = {name: html for name, html in regions.items() if self.shown.get(name) != html}
        self.shown = dict(regions)
        if changed:
            for watcher in self.watchers:
                watcher.pending.update(changed)
                watcher.came.set()


class Live:
    """Keeps every window up to date."""

    def __init__(self, queue: SharedQueue, version: str) -> None:
        self._queue, self._version = queue, version
        self._rooms: dict[str, _Room] = {}
        self._task: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        """Something was done here: look at once."""
        self._stirred.set()

    @property
    def is_full(self) -> bool:
        """Whether no window more is served."""
        return sum(len(room.watchers) for room in self._rooms.values()) >= WATCHERS_MAX

    async def stream(self, view: View) -> AsyncIterator[str]:
        """What a window is sent, as server-sent events: all of it first, then what changes."""
        room = self._rooms.setdefault(view.address, _Room(view))
        watcher = Watcher(pending=dict(room.shown))
        room.watchers.add(watcher)
        watcher.came.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_looking())
        self.stir()
        try:
            hello = {"version": self._version, "now": await self._now()}
            yield server_sent("hello", json.dumps(hello), "retry: 1000")
            while True:
                yield await self._next(watcher)
        finally:
            room.watchers.discard(watcher)
            if not room.watchers:
                self._rooms.pop(view.address, None)

    async def _next(self, watcher: Watcher) -> str:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watcher.came.wait(), BEAT_SECONDS)
        watcher.came.clear()
        if not watcher.pending:
            return server_sent("beat", "{}")
        data, watcher.pending = json.dumps(watcher.pending), {}
        return server_sent("regions", data)

    async def _now(self) -> int:
        milliseconds: int = await self._queue.read(lambda context: context.now() // 1000)
        return milliseconds

    async def _keep_looking(self) -> None:
        before, events = -1, self._queue.events
        while self._rooms and not events.is_closing:
            changes, stirred = events.changes, self._stirred.is_set()
            self._stirred.clear()
            for room in list(self._rooms.values()):
                await self._look(room, stirred or changes != before)
            before = changes
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stirred.wait(), LOOK_SECONDS)

    async def _look(self, room: _Room, changed: bool) -> None:
        """Read a view where it may have changed; one that cannot be read keeps what it has."""
        if not changed and room.shown and SYSTEM.monotonic() - room.read_at < STALE_SECONDS:
            return
        room.read_at = SYSTEM.monotonic()
        try:
            regions = await self._queue.read(room.view.regions)
        except FairlaneError:
            return
        except Exception:  # a view that cannot be drawn must not stop the others
            _LOG.exception("%s cannot be shown", room.view.address)
            return
        room.tell({name: str(html) for name, html in regions.items()})
