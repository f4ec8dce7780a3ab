"""Later: an application that is made when it is first asked; most servers never are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from starlette.types import ASGIApp, Receive, Scope, Send

#: The application, and the context in which it must be served.
Made = tuple[ASGIApp, Callable[[], AbstractAsyncContextManager[object]]]


class Later:
    """Defers a slow import to the first request."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._asked = asyncio.Event()
        self._app: asyncio.Future[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Made at the first call; the others wait for it."""
        assert self._app is not None
        self._asked.set()
        app = await asyncio.shield(self._app)
        await app(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """For the lifespan of the server."""
        self._app = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(self._serve(self._app))
        try:
            yield
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving

    async def _serve(self, made: asyncio.Future[ASGIApp]) -> None:
        """One task from its beginning to its end: its context is left where it was entered."""
        await self._asked.wait()
        try:
            app, running = await asyncio.to_thread(self._make)
        except Exception as error:  # the waiting requests raise it
            made.set_exception(error)
            return
        async with running():
            made.set_result(app)
            await asyncio.Event().wait()
