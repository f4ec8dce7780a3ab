"""The application: the API, login, health and metrics, behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlane.app.shared_queue import SharedQueue
from fairlane.http import identity
from fairlane.http.guard import AllowedHosts, Guard
from fairlane.http.messages import Answer, Gone, HttpError, answer, answer_error
from fairlane.http.metrics import Metrics
from fairlane.http.openapi import openapi
from fairlane.http.routes import (
    PREFIX,
    Call,
    Endpoint,
    Routes,
    add_operations,
    ask_as,
    unless_gone,
)
from fairlane.http.sessions import Login, Sessions
from fairlane.http.streams import Streams
from fairlane.model.errors import TryLater
from fairlane.model.instant import Instant
from fairlane.model.record import dataclass
from fairlane.service.reports import listing

#: Something that must be entered while it is served.
Running = Callable[[], AbstractAsyncContextManager[object]]


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a server listens, and by which other names it may be asked."""

    host: str
    port: int
    secure: bool = False
    names: Iterable[str] = ()


class Served:
    """What is served where; `mount` adds what this package does not know."""

    def __init__(
        self,
        queue: SharedQueue,
        home: Path,
        known: identity.Secrets,
        now: Callable[[], Instant],
        bound: Bound,
    ) -> None:
        self.queue = queue
        self._known = known
        self.streams = Streams(queue)
        self.sessions = Sessions(home, now)
        self._login = Login(self.sessions, f"fairlane-{bound.port}", bound.secure)
        self._metrics = Metrics(queue, self.streams, now)
        self._running: list[Running] = [self._metrics.running]
        self._on_ready: list[Callable[[], None]] = []
        self._mounts: dict[str, ASGIApp] = {}
        self._exact: dict[str, tuple[str, Endpoint]] = {
            "/healthz": ("GET", self._lives),
            "/readyz": ("GET", self._is_ready),
            "/metrics": ("GET", self._metrics.answer),
            "/open": ("GET", self._login.open),
            "/logout": ("POST", self._login.leave),
        }
        self._routes = self._all_routes()
        self._lifespan = Router(lifespan=self._serve)
        allowed = AllowedHosts(bound.host, bound.port, bound.names)
        guard = Guard(self._front, self._known, allowed, self.sessions, self._login.cookie)
        #: What a server runs.
        self.app: ASGIApp = self._metrics.counting(guard)

    def mount(self, path: str, app: ASGIApp, running: Running | None = None) -> None:
        """Serve another application at a path and below it; at `/`: everything else."""
        self._mounts[path.rstrip("/")] = app
        if running is not None:
            self._running.append(running)

    async def ask(self, name: str, arguments: Mapping[str, object], scope: Scope) -> Any:
        """The answer of an operation to the caller of this request; for mounted applications."""
        asked = ask_as(self.queue, name, arguments, scope)
        if "wait" not in arguments:
            return await asked
        try:
            return await unless_gone(asked, scope["fairlane.receive"])
        except Gone:
            raise TryLater("the caller has hung up", "Ask again.", "gone") from None

    def when_ready(self, tell: Callable[[], None]) -> None:
        """Call this when it can answer."""
        self._on_ready.append(tell)

    def _all_routes(self) -> Routes:
        routes = Routes()
        document: list[Answer] = []

        async def describe(call: Call) -> Answer:
            if not document:
                document.append(answer(openapi()))
            return document[0]

        async def give_token(call: Call) -> Answer:
            identity.owner_only(call.scope)
            lease = call.parameters["lease"]
            return answer(await identity.give_token(self.queue, self._known.attempt_key, lease))

        async def give_link(call: Call) -> Answer:
            identity.owner_only(call.scope)
            return self._login.link()

        for path, (method, endpoint) in self._exact.items():
            routes.add(method, path, endpoint)
        routes.add("GET", f"{PREFIX}/openapi.json", describe)
        routes.add("POST", f"{PREFIX}/leases/{{lease}}/token", give_token)
        routes.add("POST", f"{PREFIX}/links", give_link)
        add_operations(routes, self.queue, self.streams)
        return routes

    async def _front(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch a request to the API or a mounted application."""
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        path = scope["path"]
        mounted = next((p for p in self._mounts if p and (path + "/").startswith(p + "/")), "")
        ours = path.startswith(PREFIX + "/") or path in self._exact
        if ours and scope["type"] == "http":
            await self._routes(scope, receive, send)
        elif mounted in self._mounts:
            scope["fairlane.route"], scope["fairlane.receive"] = mounted or "/", receive
            app = self._mounts[mounted]
            if scope["type"] == "http":
                await self.streams.until_closed(app, scope, receive, send)
            else:
                await app(scope, receive, send)
        elif scope["type"] == "http":
            hint = f"The API is below {PREFIX}/."
            error = HttpError(404, "no_such_path", f"there is no {path[:200]}", hint)
            await answer_error(error)(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _lives(self, call: Call) -> Answer:
        return answer({"schema": "fairlane/1", "ok": True})

    async def _is_ready(self, call: Call) -> Answer:
        """The store answers."""
        try:
            await self.queue.read(listing.newest)
        except Exception as error:
            response = answer_error(error)
            response.status = 503
            return response
        return answer({"schema": "fairlane/1", "ok": True})

    @asynccontextmanager
    async def _serve(self, app: object) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await self.queue.open()
            stack.push_async_callback(self.queue.close)
            for running in self._running:
                await stack.enter_async_context(running())
            for tell in self._on_ready:
                tell()
            yield
