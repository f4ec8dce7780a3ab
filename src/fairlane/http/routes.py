"""Routes: every operation of the table at its path, and an error document for any other path."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from fairlane.app.office import Office
from fairlane.http import badges
from fairlane.http.answers import (
    DEFERRED_SECONDS,
    Answer,
    HttpError,
    answer,
    answer_error,
)
from fairlane.http.bodies import Gone, header, read_object
from fairlane.http.streams import Streams
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.service.operations.checking import from_text
from fairlane.service.operations.table import OPERATIONS, Operation
from fairlane.service.operations.values import Document

PREFIX = "/api/v1"
#: Most arguments of one query.
ARGUMENTS_MAX = 100
#: Methods whose arguments stand in the query.
_ASKING = ("GET", "HEAD")


class Call(NamedTuple):
    """One request to one endpoint."""

    scope: Scope
    receive: Receive
    send: Send
    places: Mapping[str, str]  # what stands in the path


Endpoint = Callable[[Call], Awaitable[Answer | None]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method at one path."""

    method: str
    parts: tuple[str, ...]
    endpoint: Endpoint
    name: str  # the path as it is written, for the metrics

    def places(self, parts: tuple[str, ...]) -> dict[str, str] | None:
        """What stands in the places of a path; None: it is another path."""
        found = {}
        for wanted, part in zip(self.parts, parts, strict=True):
            if wanted.startswith("{") and part:
                found[wanted[1:-1]] = part
            elif wanted != part:
                return None
        return found


class Routes:
    """Finds the endpoint of a path and answers."""

    def __init__(self) -> None:
        self._near: dict[tuple[int, str], list[Route]] = {}  # by length, and by what is named

    def add(self, method: str, path: str, endpoint: Endpoint) -> None:
        """An endpoint at a path below the prefix."""
        parts = _parts(PREFIX + path)
        route = Route(method, parts, endpoint, PREFIX + path)
        self._near.setdefault(_nearness(parts), []).append(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application."""
        try:
            found = await self._answer(scope, receive, send)
        except Gone:
            return
        except Exception as error:
            found = answer_error(error)
        if found is not None:
            await found(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        parts, method = _parts(scope["path"]), scope["method"]
        allowed = set()
        for route in self._near.get(_nearness(parts), ()):
            places = route.places(parts)
            if places is None:
                continue
            scope["fairlane.route"] = route.name
            if method == route.method or (method == "HEAD" and route.method == "GET"):
                return await route.endpoint(Call(scope, receive, send, places))
            allowed.add(route.method)
        if not allowed:
            shown = scope["path"][:200]
            hint = f"{PREFIX}/openapi.json has all of them."
            raise HttpError(404, "no_such_path", f"there is no {shown}", hint)
        allow = [(b"allow", ", ".join(sorted(_with_head(allowed))).encode())]
        if method == "OPTIONS":
            return Answer(204, b"", allow)
        hint = f"It takes {', '.join(sorted(allowed))}."
        raise HttpError(405, "method", f"{method[:20]} is not for this path", hint, allow)


def _with_head(methods: set[str]) -> set[str]:
    return methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())


def _nearness(parts: tuple[str, ...]) -> tuple[int, str]:
    """What tells most paths apart: how long they are, and what stands behind the prefix."""
    return len(parts), parts[2] if len(parts) > 2 else ""


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")[1:])


def add_operations(routes: Routes, office: Office, streams: Streams) -> None:
    """Every operation of the table, at one path or two."""
    for operation in OPERATIONS.values():
        endpoint = Asked(office, operation, streams)
        routes.add(operation.method, operation.path, endpoint)
        if operation.many:
            routes.add(operation.method, operation.many, endpoint)


class Asked:
    """The endpoint of one operation."""

    def __init__(self, office: Office, operation: Operation, streams: Streams) -> None:
        self._office, self._operation, self._streams = office, operation, streams

    async def __call__(self, call: Call) -> Answer | None:
        """Arguments from path, query or body; then the operation's answer."""
        name = self._operation.name
        query = parse_query(call.scope)
        if name == "events" and b"text/event-stream" in header(call.scope, b"accept"):
            badges.refuse_attempts(call.scope)
            arguments = from_text(self._operation, query)
            await self._streams.follow(call.scope, call.receive, call.send, arguments)
            return None
        arguments = await self._arguments(call, query)
        asked = badges.ask_as(self._office, name, arguments, call.scope)
        document = await (unless_gone(asked, call.receive) if "wait" in arguments else asked)
        if document.get("deferred"):
            wait = str(DEFERRED_SECONDS).encode()
            return answer(document, 429, [(b"retry-after", wait)])
        return answer(document)

    async def _arguments(self, call: Call, query: dict[str, list[str]]) -> dict[str, Any]:
        operation = self._operation
        found = self._placed(call.places)
        if operation.method in _ASKING:
            asked = {name: schema for name, schema in operation.takes.items() if name not in found}
            _refuse_unknown(query, asked)
            return from_text(operation, query) | found
        _refuse_unknown(query, ())
        body = await read_object(call.scope, call.receive)
        twice = found.keys() & body.keys()
        if operation.rest is None:
            if twice:
                raise Invalid(f"{min(twice)} stands in the path already", "Leave it out.")
            return body | found
        named = operation.takes.keys() - {operation.rest} - found.keys()
        rest = {key: value for key, value in body.items() if key not in named}
        return {key: body[key] for key in named & body.keys()} | found | {operation.rest: rest}

    def _placed(self, places: Mapping[str, str]) -> dict[str, Any]:
        """What stands in the path: the only one of `ids`, or a value of its type."""
        takes = self._operation.takes
        lists = {name: [text] for name, text in places.items() if takes[name]["type"] == "array"}
        others = {name: [text] for name, text in places.items() if name not in lists}
        return lists | from_text(self._operation, others)


async def unless_gone(asked: Coroutine[Any, Any, Document], receive: Receive) -> Document:
    """What is asked, while the caller waits: nothing is leased to those who hung up."""
    asking = asyncio.ensure_future(asked)
    gone = asyncio.ensure_future(receive())  # the body is read: what comes now is the end
    try:
        await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            raise Gone
        return asking.result()
    finally:
        asking.cancel()
        gone.cancel()


def parse_query(scope: Scope) -> dict[str, list[str]]:
    """The query by name; bytes that are no text are refused."""
    text = scope["query_string"].decode("latin-1")
    if not text:
        return {}
    try:
        return parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=ARGUMENTS_MAX)
    except ValueError as error:
        raise Invalid(f"not a query: {error}", "Write it as ?limit=20&cursor=40.") from None


def _refuse_unknown(query: Mapping[str, Any], known: Any) -> None:
    for name in query:
        if name not in known:
            hint = did_you_mean(name, known) or "This path takes none."
            raise Invalid(f"unknown argument {name[:60]!r}", hint)
