"""Routes: every operation of the table at its path, and an error document for any other path."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from fairlane.app.shared_queue import SharedQueue
from fairlane.http import identity
from fairlane.http.messages import Answer, Gone, HttpError, answer, header, read_object, refusal
from fairlane.http.streams import Streams
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.record import dataclass
from fairlane.service.operations.call import from_text
from fairlane.service.operations.table import OPERATIONS, Operation
from fairlane.service.page_rights import permit_page

_T = TypeVar("_T")

PREFIX = "/api/v1"
#: Most arguments of one query.
ARGUMENTS_MAX = 100
#: `Retry-After` of what is deferred, in seconds.
DEFERRED_SECONDS = 30
#: Methods whose arguments are in the query.
_ASKING = ("GET", "HEAD")


class Call(NamedTuple):
    """One request to one endpoint."""

    scope: Scope
    receive: Receive
    send: Send
    parameters: Mapping[str, str]  # of the path


Endpoint = Callable[[Call], Awaitable[Answer | None]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method at one path."""

    method: str
    parts: tuple[str, ...]
    endpoint: Endpoint
    name: str  # the path as it is written, for the metrics

    def match(self, parts: tuple[str, ...]) -> dict[str, str] | None:
        """The parameters of a path; None: it is another path."""
        parameters = {}
        for wanted, part in zip(self.parts, parts, strict=True):
            if wanted.startswith("{") and part:
                parameters[wanted[1:-1]] = part
            elif wanted != part:
                return None
        return parameters


class Routes:
    """Finds the endpoint of a path and answers."""

    def __init__(self) -> None:
        self._near: dict[tuple[int, str], list[Route]] = {}  # by length, and by what is named

    def add(self, method: str, path: str, endpoint: Endpoint) -> None:
        """An endpoint at a path."""
        parts = _parts(path)
        self._near.setdefault(_nearness(parts), []).append(Route(method, parts, endpoint, path))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application."""
        try:
            response = await self._answer(scope, receive, send)
        except Gone:
            return
        except Exception as error:
            response = refusal(error, scope)
        if response is not None:
            await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        parts, method = _parts(scope["path"]), scope["method"]
        allowed = set()
        for route in self._near.get(_nearness(parts), ()):
            parameters = route.match(parts)
            if parameters is None:
                continue
            scope["fairlane.route"] = route.name
            if method == route.method or (method == "HEAD" and route.method == "GET"):
                return await route.endpoint(Call(scope, receive, send, parameters))
            allowed.add(route.method)
        if not allowed:
            shown = scope["path"][:200]
            hint = f"{PREFIX}/openapi.json has all of them."
            raise HttpError(404, "no_such_path", f"there is no {shown}", hint)
        methods = allowed | {"OPTIONS"} | ({"HEAD"} if "GET" in allowed else set())
        allow = [(b"allow", ", ".join(sorted(methods)).encode())]
        if method == "OPTIONS":
            return Answer(204, b"", allow)
        hint = f"It takes {', '.join(sorted(allowed))}."
        raise HttpError(405, "method", f"{method[:20]} is not for this path", hint, allow)


def _nearness(parts: tuple[str, ...]) -> tuple[int, str]:
    """An index key for paths: their length, and the part after the prefix."""
    return len(parts), parts[2] if len(parts) > 2 else ""


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")[1:])


def add_operations(routes: Routes, queue: SharedQueue, streams: Streams) -> None:
    """Every operation of the table, at one path or two."""
    for operation in OPERATIONS.values():
        endpoint = Asked(queue, operation, streams)
        routes.add(operation.method, PREFIX + operation.path, endpoint)
        if operation.many:
            routes.add(operation.method, PREFIX + operation.many, endpoint)


class Asked:
    """The endpoint of one operation."""

    def __init__(self, queue: SharedQueue, operation: Operation, streams: Streams) -> None:
        self._queue, self._operation, self._streams = queue, operation, streams

    async def __call__(self, call: Call) -> Answer | None:
        """Arguments from path, query or body; then the operation's answer."""
        name = self._operation.name
        query = parse_query(call.scope)
        if name == "events" and b"text/event-stream" in header(call.scope, b"accept"):
            identity.refuse_attempts(call.scope)
            arguments = from_text(self._operation, query)
            await self._streams.follow(call.scope, call.receive, call.send, arguments)
            return None
        arguments = await self._arguments(call, query)
        asked = ask_as(self._queue, name, arguments, call.scope)
        lasting = self._operation.lasts or "wait" in arguments
        document = await (unless_gone(asked, call.receive) if lasting else asked)
        if document.get("deferred"):
            wait = str(DEFERRED_SECONDS).encode()
            return answer(document, 429, [(b"retry-after", wait)])
        return answer(document)

    async def _arguments(self, call: Call, query: dict[str, list[str]]) -> dict[str, object]:
        operation = self._operation
        values = self._path_values(call.parameters)
        if operation.method in _ASKING:
            asked = {name: schema for name, schema in operation.takes.items() if name not in values}
            _refuse_unknown(query, asked)
            return from_text(operation, query) | values
        _refuse_unknown(query, ())
        body = await read_object(call.scope, call.receive)
        if not body and operation.rest in operation.needs:
            about = operation.takes[str(operation.rest)].get("description", "")
            raise Invalid(f"{operation.name}: there is nothing to change", f"Send JSON: {about}")
        twice = values.keys() & body.keys()
        if operation.rest is None:
            if twice:
                raise Invalid(f"{min(twice)} stands in the path already", "Leave it out.")
            return body | values
        named = operation.takes.keys() - {operation.rest} - values.keys()
        rest = {key: value for key, value in body.items() if key not in named}
        return {key: body[key] for key in named & body.keys()} | values | {operation.rest: rest}

    def _path_values(self, parameters: Mapping[str, str]) -> dict[str, object]:
        """The arguments in the path: the single entry of `ids`, or a value of its type."""
        operation, texts = self._operation, {name: [text] for name, text in parameters.items()}
        others = {key: texts[key] for key in texts if operation.takes[key]["type"] != "array"}
        return {**texts, **from_text(operation, others)}


async def ask_as(
    queue: SharedQueue, name: str, arguments: Mapping[str, object], scope: Scope
) -> Any:
    """The answer of an operation to the caller that the guard identified."""
    who: identity.Who = scope["fairlane.who"]
    if who is identity.GUEST:
        permit_page(name, arguments)
    return await queue.ask(name, arguments, who.lease, scope.get("client"))


async def unless_gone(asked: Coroutine[object, object, _T], receive: Receive) -> _T:
    """The answer, unless the caller hangs up first: nothing is leased to nobody."""
    asking = asyncio.ensure_future(asked)
    gone = asyncio.ensure_future(receive())  # after the body: the disconnect
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


def _refuse_unknown(query: Iterable[str], known: Collection[str]) -> None:
    for name in query:
        if name not in known:
            hint = did_you_mean(name, known) or "This path takes none."
            raise Invalid(f"unknown argument {name[:60]!r}", hint)
