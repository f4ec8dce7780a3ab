"""The application: the API, the door to the page, health and metrics, behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlane.app.office import Office
from fairlane.http import badges
from fairlane.http.answers import Answer, HttpError, answer, answer_error
from fairlane.http.bodies import Gone
from fairlane.http.door import Door
from fairlane.http.guard import Guard, refusal
from fairlane.http.metrics import Metrics
from fairlane.http.openapi import openapi
from fairlane.http.places import Places
from fairlane.http.routes import PREFIX, Call, Routes, add_operations, unless_gone
from fairlane.http.sessions import Sessions
from fairlane.http.streams import Streams
from fairlane.model.errors import TryLater
from fairlane.model.instant import Instant
from fairlane.service.reports import events

#: Something that must be entered while it is served.
Running = Callable[[], AbstractAsyncContextManager[Any]]
Endpoint = Callable[[Scope], Awaitable[Answer]]


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
        self, office: Office, home: Path, token: str, now: Callable[[], Instant], bound: Bound
    ) -> None:
        self.office, self._token = office, token
        self.streams = Streams(office)
        self.sessions = Sessions(home, now)
        self._door = Door(self.sessions, f"fairlane-{bound.port}", bound.secure)
        self._metrics = Metrics(office, self.streams, now)
        self._running: list[Running] = [self._metrics.running]
        self._told: list[Callable[[], None]] = []
        self._mounts: dict[str, ASGIApp] = {}
        self._exact: dict[str, tuple[str, Endpoint]] = {
            "/healthz": ("GET", self._lives),
            "/readyz": ("GET", self._is_ready),
            "/metrics": ("GET", self._metrics.answer),
            "/open": ("GET", self._door.open),
            "/logout": ("POST", self._door.leave),
        }
        self._routes = self._api()
        self._lifespan = Router(lifespan=self._serve)
        places = Places(bound.host, bound.port, bound.names)
        guard = Guard(self._front, token, places, self.sessions, self._door.cookie)
        #: What a server runs.
        self.app: ASGIApp = self._metrics.counting(guard)

    def mount(self, path: str, app: ASGIApp, running: Running | None = None) -> None:
        """Serve another application at a path and below it; at `/`: everything else."""
        self._mounts[path.rstrip("/")] = app
        if running is not None:
            self._running.append(running)

    async def ask(
        self, name: str, arguments: Mapping[str, Any], scope: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The answer of an operation to whoever sent this request; for what is mounted."""
        asked = badges.ask_as(self.office, name, arguments, scope)
        if "wait" not in arguments:
            return await asked
        try:
            return await unless_gone(asked, scope["fairlane.receive"])
        except Gone:
            raise TryLater("the caller has hung up", "Ask again.", "gone") from None

    def when_ready(self, tell: Callable[[], None]) -> None:
        """Call this when it can answer."""
        self._told.append(tell)

    def _api(self) -> Routes:
        routes = Routes()
        document: list[Answer] = []

        async def describe(call: Call) -> Answer:
            if not document:
                document.append(answer(openapi()))
            return document[0]

        async def give_token(call: Call) -> Answer:
            badges.refuse_attempts(call.scope)
            lease = call.places["lease"]
            return answer(await badges.give_token(self.office, self._token, lease))

        async def give_link(call: Call) -> Answer:
            badges.refuse_attempts(call.scope)
            return self._door.link()

        routes.add("GET", "/openapi.json", describe)
        routes.add("POST", "/leases/{lease}/token", give_token)
        routes.add("POST", "/links", give_link)
        add_operations(routes, self.office, self.streams)
        return routes

    async def _front(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Whoever is responsible for a path."""
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        path = scope["path"]
        mounted = next((p for p in self._mounts if p and (path + "/").startswith(p + "/")), "")
        if path.startswith(PREFIX + "/") and scope["type"] == "http":
            await self._routes(scope, receive, send)
        elif path in self._exact and scope["type"] == "http":
            await self._exactly(scope, receive, send)
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

    async def _exactly(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, endpoint = self._exact[scope["path"]]
        scope["fairlane.route"] = scope["path"]
        allowed = (method, "HEAD") if method == "GET" else (method,)
        try:
            if scope["method"] in allowed:
                found = await endpoint(scope)
            else:
                allow = [(b"allow", ", ".join(allowed).encode())]
                shown = f"{scope['method'][:20]} is not for this path"
                raise HttpError(405, "method", shown, f"It takes {method}.", allow)
        except Exception as error:
            found = refusal(error, scope)
        await found(scope, receive, send)

    async def _lives(self, scope: Scope) -> Answer:
        return answer({"schema": "fairlane/1", "ok": True})

    async def _is_ready(self, scope: Scope) -> Answer:
        """The store answers."""
        try:
            await self.office.read(events.newest)
        except Exception as error:
            found = answer_error(error)
            found.status = 503
            return found
        return answer({"schema": "fairlane/1", "ok": True})

    @asynccontextmanager
    async def _serve(self, app: object) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await self.office.open()
            stack.push_async_callback(self.office.close)
            for running in self._running:
                await stack.enter_async_context(running())
            for tell in self._told:
                tell()
            yield
