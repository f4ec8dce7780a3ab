"""Routes: the page as addresses of a Starlette application."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from fairlane.app.shared_queue import SharedQueue
from fairlane.engine.context import Context
from fairlane.model.errors import FairlaneError, Invalid, NotFound, TryLater
from fairlane.model.project import Group, Project
from fairlane.page.actions import ACTIONS
from fairlane.page.answers import HEADERS, refused
from fairlane.page.html import Html, tag, visible
from fairlane.page.live import Lasting, Live, View
from fairlane.page.parts import empty
from fairlane.page.reading import reading_routes
from fairlane.page.shell import document
from fairlane.page.views.groups import Groups
from fairlane.page.views.overview import Overview
from fairlane.page.views.task import TaskView
from fairlane.page.views.tasklist import TaskList

_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FILES = ("page.css", "task.css", "page.js", "task.js", "theme.js", "icon.svg")
#: Longest body of an action, most names that a form offers.
BODY_MAX = 256 * 1024
NAMES_MAX = 200
_ANY = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


@cache
def version() -> str:
    """What tells one state of these files from another; a window that has older ones reloads."""
    digest = hashlib.sha256()
    for path in sorted([*_STATIC.iterdir(), *Path(__file__).parent.rglob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def routes(queue: SharedQueue) -> list[Route]:
    """Every address of the page."""
    page = Page(queue)
    return [
        Route("/", page.view, methods=["GET"]),
        Route("/tasks", page.tasks, methods=["GET"]),
        Route("/task/{task:path}", page.view, methods=["GET"]),
        Route("/groups", page.view, methods=["GET"]),
        Route("/page/live", page.stream, methods=["GET"]),
        *reading_routes(queue),
        Route("/page/known", page.known, methods=["GET"]),
        Route("/page/do/{action}", page.act, methods=["POST"]),
        Route("/page/static/{name}", static, methods=["GET"]),
        Route("/{rest:path}", page.nowhere, methods=_ANY),
    ]


class Nowhere:
    """What an address shows that leads nowhere; its switch is the overview's."""

    title, place, address = "Not here", "", "/"

    def __init__(self, asked: str) -> None:
        hint = "The overview is at /, the API below /api/v1/."
        self.error = NotFound(f"there is no {asked} here", hint)

    def regions(self, context: Context) -> dict[str, Html]:
        """Nothing."""
        raise self.error

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """Nothing."""
        raise self.error


def view_of(address: str) -> View | None:
    """The view that an address names."""
    try:
        parts = urlsplit(address)
        return _view(unquote(parts.path), parse_qsl(parts.query, max_num_fields=32))
    except ValueError:  # too many fields, or no address at all
        return None


def _view(path: str, query: list[tuple[str, str]]) -> View | None:
    if path == "/":
        return Overview(dict(query))
    if path == "/tasks":
        return TaskList(query)
    if path == "/groups":
        return Groups()
    if path.startswith("/task/"):
        return TaskView(path.removeprefix("/task/"), dict(query))
    return None


class Page:
    """What each address answers."""

    def __init__(self, queue: SharedQueue) -> None:
        self._queue = queue
        self._live = Live(queue, version())

    async def view(self, request: Request) -> Response:
        """The view of an address."""
        view = _view(request.scope["path"], request.query_params.multi_items())
        return await self.nowhere(request) if view is None else await self._show(view)

    async def tasks(self, request: Request) -> Response:
        """The list; searching for the id of a task leads to the task itself."""
        wanted = request.query_params.get("find", "").strip()
        known = await self._queue.read(lambda context: _is_task(context, wanted))
        if known:
            return RedirectResponse(f"/task/{quote(wanted, safe='')}", 303)
        return await self.view(request)

    async def stream(self, request: Request) -> Response:
        """What changes in a view, as server-sent events."""
        view = view_of(request.query_params.get("view", "/"))
        if view is None:
            return refused(NotFound("there is no such view", "Open the page again."))
        if self._live.is_full:
            return refused(TryLater("too many windows are open", "Close some of them."))
        headers = {**HEADERS, "X-Accel-Buffering": "no"}
        stream = self._live.stream(view)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def known(self, request: Request) -> Response:
        """Names that a form can offer."""
        return JSONResponse(await self._queue.read(_known), headers=HEADERS)

    async def act(self, request: Request) -> Response:
        """Perform an action; an error says what to do next."""
        try:
            action = ACTIONS.get(request.path_params["action"])
            if action is None:
                raise NotFound("there is no such action", "Open the page again.")
            done = await action(self._queue, await _form(request))
        except FairlaneError as error:
            return refused(error)
        self._live.stir()
        return JSONResponse({"message": visible(done.message), "go": done.go}, headers=HEADERS)

    async def nowhere(self, request: Request) -> Response:
        """No such address: a sheet for people, the error document for programs."""
        view = Nowhere(f"{request.method} {request.url.path}"[:200])
        if "text/html" in request.headers.get("accept", ""):
            return await self._show(view)
        return refused(view.error)

    async def _show(self, view: View) -> Response:
        read = self._queue.read_git if isinstance(view, Lasting) else self._queue.read
        try:
            regions = await read(_whole(view))
            code, body = 200, view.frame(regions)
        except FairlaneError as error:
            code = 404 if isinstance(error, NotFound) else 503
            regions, body = {}, _trouble(error)
        now = await self._queue.read(lambda context: context.now() // 1000)
        text = document(view, body, regions.get("switch"), version(), now)
        return Response(text, code, HEADERS, "text/html")


def _whole(view: View) -> Callable[[Context], dict[str, Html]]:
    """What reads every part of a document, also those that its window keeps fresh itself."""

    def read(context: Context) -> dict[str, Html]:
        lasting = view.lasting(context) if isinstance(view, Lasting) else {}
        return {**view.regions(context), **lasting}

    return read


async def static(request: Request) -> Response:
    """A file that belongs to the page."""
    name = request.path_params["name"]
    if name not in _FILES:
        return refused(NotFound(f"there is no file {name!r} here"))
    content = (_STATIC / name).read_bytes()
    forever = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, media_type=_TYPES[Path(name).suffix], headers=forever)


async def _form(request: Request) -> dict[str, str]:
    """The texts that were sent; a form of another site cannot send this type unasked."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise Invalid("send JSON", "Content-Type: application/json")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY_MAX:
            raise Invalid("that is too long", f"At most {BODY_MAX} bytes.")
    try:
        form = json.loads(body)
    except ValueError:
        raise Invalid("not JSON", "Send an object of texts.") from None
    if not isinstance(form, dict) or not all(isinstance(text, str) for text in form.values()):
        raise Invalid("not an object of texts", "Send texts by name.")
    return form


def _is_task(context: Context, wanted: str) -> bool:
    with context.store.read() as reading:
        return bool(wanted) and reading.task(wanted) is not None


def _known(context: Context) -> dict[str, list[str]]:
    with context.store.read() as reading:
        policy = context.policy_for_reading(reading)
        kinds = {tally.kind for tally in reading.tallies()}
        projects = sorted(reading.table(Project))[:NAMES_MAX]
        groups = sorted(reading.table(Group))[:NAMES_MAX]
    caps = {"all", *policy.caps, *(f"project:{name}" for name in projects)}
    return {
        "projects": projects,
        "groups": groups,
        "kinds": sorted(kinds)[:NAMES_MAX],
        "agents": sorted(context.settings.known_agents() or ())[:NAMES_MAX],
        "caps": sorted(caps)[:NAMES_MAX],
        "cap_values": [f"{name}={value}" for name, value in sorted(policy.caps.items())],
    }


def _trouble(error: FairlaneError) -> Html:
    body = empty(error.message, error.hint)
    return tag("div", tag("h1", "That did not work"), body, class_="narrow")
