"""Routes: the page as addresses of a Starlette application."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from fairlane.app.office import Office
from fairlane.model.errors import FairlaneError, Invalid, NotFound, TryLater
from fairlane.page import CSP
from fairlane.page.actions import ACTIONS
from fairlane.page.html import Html, tag, visible
from fairlane.page.live import Live, View
from fairlane.page.parts import empty
from fairlane.page.shell import Sheet, document
from fairlane.page.views.groups import Groups
from fairlane.page.views.overview import Overview
from fairlane.page.views.task import TaskView
from fairlane.page.views.tasklist import TaskList
from fairlane.service.desk import Desk

_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FILES = ("page.css", "page.js", "theme.js", "icon.svg")
#: Longest body of an action, most of a log at once, most names that a form offers.
BODY_MAX = 256 * 1024
LOG_BYTES = 64 * 1024
NAMES_MAX = 200
_ANY = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@cache
def version() -> str:
    """What tells one state of these files from another; a window that has older ones reloads."""
    digest = hashlib.sha256()
    for path in sorted([*_STATIC.iterdir(), *Path(__file__).parent.rglob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def routes(office: Office) -> list[Route]:
    """Every address of the page."""
    page = Page(office)
    return [
        Route("/", page.overview, methods=["GET"]),
        Route("/tasks", page.tasks, methods=["GET"]),
        Route("/task/{task:path}", page.task, methods=["GET"]),
        Route("/groups", page.groups, methods=["GET"]),
        Route("/page/live", page.stream, methods=["GET"]),
        Route("/page/log", page.log, methods=["GET"]),
        Route("/page/known", page.known, methods=["GET"]),
        Route("/page/do/{action}", page.act, methods=["POST"]),
        Route("/page/static/{name}", static, methods=["GET"]),
        Route("/{rest:path}", page.nowhere, methods=_ANY),
    ]


class Nowhere:
    """What an address shows that leads nowhere; its switch is the overview's."""

    title, place, address = "Not here", "", "/"

    def __init__(self, asked: str) -> None:
        self.error = NotFound(
            f"there is no {asked} here", "The overview is at /, the API below /api/v1/."
        )

    def regions(self, desk: Desk) -> dict[str, Html]:
        """Nothing."""
        raise self.error

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """Nothing."""
        raise self.error


def view_of(address: str) -> View | None:
    """The view that an address names."""
    parts = urlsplit(address)
    query = parse_qsl(parts.query, max_num_fields=32)
    if parts.path == "/":
        return Overview(dict(query))
    if parts.path == "/tasks":
        return TaskList(query)
    if parts.path == "/groups":
        return Groups()
    if parts.path.startswith("/task/"):
        return TaskView(unquote(parts.path[len("/task/") :]))
    return None


class Page:
    """What each address answers."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._live = Live(office, version())

    async def overview(self, request: Request) -> Response:
        """Everything at a glance."""
        return await self._show(Overview(request.query_params))

    async def tasks(self, request: Request) -> Response:
        """The list; one id that is asked for leads to the task itself."""
        wanted = request.query_params.get("find", "").strip()
        if wanted and await self._office.read(lambda desk: _is_task(desk, wanted)):
            return RedirectResponse(f"/task/{quote(wanted, safe='')}", 303)
        return await self._show(TaskList(request.query_params.multi_items()))

    async def task(self, request: Request) -> Response:
        """One task."""
        return await self._show(TaskView(request.path_params["task"]))

    async def groups(self, request: Request) -> Response:
        """Projects and groups."""
        return await self._show(Groups())

    async def stream(self, request: Request) -> Response:
        """What changes in a view, as server-sent events."""
        view = view_of(request.query_params.get("view", "/"))
        if view is None:
            return _error(NotFound("there is no such view", "Open the page again."))
        if self._live.is_full:
            return _error(TryLater("too many windows are open", "Close some of them."))
        headers = {**_HEADERS, "X-Accel-Buffering": "no"}
        stream = self._live.stream(view)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def log(self, request: Request) -> Response:
        """A part of a log, as text in JSON with control characters made visible."""
        given = request.query_params
        asked: dict[str, Any] = {"task": given.get("task", ""), "limit": LOG_BYTES}
        for key in ("attempt", "offset"):
            if given.get(key, "").isdigit():
                asked[key] = int(given[key][:16])
        asked |= {"stream": given["stream"]} if "stream" in given else {}
        try:
            found = await self._office.ask("logs", asked)
        except FairlaneError as error:
            return _error(error)
        return JSONResponse({**found, "text": visible(found["text"])}, headers=_HEADERS)

    async def known(self, request: Request) -> Response:
        """Names that a form can offer."""
        return JSONResponse(await self._office.read(_known), headers=_HEADERS)

    async def act(self, request: Request) -> Response:
        """Do something; what goes wrong is told with what to do now."""
        try:
            action = ACTIONS.get(request.path_params["action"])
            if action is None:
                raise NotFound("there is no such action", "Open the page again.")
            told = await action(self._office, await _given(request))
        except FairlaneError as error:
            return _error(error)
        self._live.stir()
        return JSONResponse({"message": visible(told.message), "go": told.go}, headers=_HEADERS)

    async def nowhere(self, request: Request) -> Response:
        """No such address: a sheet for people, the error document for programs."""
        view = Nowhere(f"{request.method} {request.url.path}"[:200])
        if "text/html" in request.headers.get("accept", ""):
            return await self._show(view)
        return _error(view.error)

    async def _show(self, view: View) -> Response:
        try:
            regions = await self._office.read(view.regions)
            code, body = 200, view.frame(regions)
        except FairlaneError as error:
            code = 404 if isinstance(error, NotFound) else 503
            regions, body = {}, _trouble(error)
        now = await self._office.read(lambda desk: desk.now() // 1000)
        sheet = Sheet(
            view.title, view.place, view.address, body, regions.get("switch"), version(), now
        )
        told = document(sheet)
        return HTMLResponse(told, code, headers=_HEADERS)


async def static(request: Request) -> Response:
    """A file that belongs to the page."""
    name = request.path_params["name"]
    if name not in _FILES:
        return _error(NotFound(f"there is no file {name!r} here"))
    found = (_STATIC / name).read_bytes()
    kept = {**_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(found, media_type=_TYPES[Path(name).suffix], headers=kept)


async def _given(request: Request) -> dict[str, str]:
    """The texts that were sent; a form of another site cannot send this type unasked."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise Invalid("send JSON", "Content-Type: application/json")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY_MAX:
            raise Invalid("that is too long", f"At most {BODY_MAX} bytes.")
    try:
        found = json.loads(body)
    except ValueError:
        raise Invalid("not JSON", "Send an object of texts.") from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise Invalid("not an object of texts", "Send texts by name.")
    return found


def _is_task(desk: Desk, wanted: str) -> bool:
    with desk.store.read() as reading:
        return reading.task(wanted) is not None


def _known(desk: Desk) -> dict[str, list[str]]:
    with desk.store.read() as reading:
        policy = desk.policy_for_reading(reading)
        kinds = {each.kind for each in reading.tallies()}
        projects = sorted(reading.projects())[:NAMES_MAX]
        groups = sorted(reading.groups())[:NAMES_MAX]
    caps = {"all", *policy.caps, *(f"project:{name}" for name in projects)}
    return {
        "projects": projects,
        "groups": groups,
        "kinds": sorted(kinds)[:NAMES_MAX],
        "agents": sorted(desk.settings.known_agents() or ())[:NAMES_MAX],
        "caps": sorted(caps)[:NAMES_MAX],
        "cap_values": [f"{name}={value}" for name, value in sorted(policy.caps.items())],
    }


def _trouble(error: FairlaneError) -> Html:
    body = empty(error.message, error.hint)
    return tag("div", tag("h1", "That did not work"), body, class_="narrow")


_CODES: tuple[tuple[type[FairlaneError], int], ...] = (
    (NotFound, 404),
    (Invalid, 422),
    (TryLater, 503),
)


def _error(error: FairlaneError) -> Response:
    code = next((code for kind, code in _CODES if isinstance(error, kind)), 409)
    told = FairlaneError(visible(error.message), visible(error.hint), error.error_code)
    return JSONResponse(told.document(), code, headers=_HEADERS)
