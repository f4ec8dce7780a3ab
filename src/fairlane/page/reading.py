"""Reading: what a task's page asks for beside its view: logs, parts of transcripts, files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from fairlane.app.shared_queue import SharedQueue
from fairlane.engine.context import Context
from fairlane.executors.runfiles import Damaged
from fairlane.model.errors import FairlaneError, Refused
from fairlane.page.answers import HEADERS, refused
from fairlane.page.html import join, visible
from fairlane.page.views import changes, transcript
from fairlane.page.words import file_of, numbers
from fairlane.service.logs import Log
from fairlane.service.transcript_parts import part

#: Most of a log at once, and of a file that is sent as it is.
LOG_BYTES = 64 * 1024
RAW_BYTES = 1024 * 1024


def reading_routes(queue: SharedQueue) -> list[Route]:
    """Every address from which a task's page reads."""
    reads = Reads(queue)
    return [
        Route("/page/log", reads.log, methods=["GET"]),
        Route("/page/transcript", reads.transcript, methods=["GET"]),
        Route("/page/changes", reads.changes, methods=["GET"]),
        Route("/page/raw", reads.raw, methods=["GET"]),
    ]


class Reads:
    """What each address answers."""

    def __init__(self, queue: SharedQueue) -> None:
        self._queue = queue

    async def log(self, request: Request) -> Response:
        """A part of a log, as text in JSON with control characters made visible."""
        query = request.query_params
        asked: dict[str, object] = {"task": query.get("task", ""), "limit": LOG_BYTES}
        asked |= numbers(query, "attempt", "offset")
        asked |= {"stream": query["stream"]} if "stream" in query else {}
        try:
            page = await self._queue.ask("logs", asked)
        except FairlaneError as error:
            return refused(error)
        return JSONResponse({**page, "text": visible(page["text"])}, headers=HEADERS)

    async def transcript(self, request: Request) -> Response:
        """A part of a transcript, as markup of escaped text."""
        query = request.query_params
        task, cursor = query.get("task", ""), query.get("cursor")
        places = numbers(query, "attempt", "before")

        def read(context: Context) -> dict[str, object]:
            found = part(context, task, places.get("attempt"), cursor or None, places.get("before"))
            rows = transcript.entries(found)
            told = {"html": join(rows), "entries": len(rows), "start": found.start}
            return told | {k: getattr(found, k) for k in ("attempt", "cursor", "ended")}

        try:
            return JSONResponse(await self._queue.read(read), headers=HEADERS)
        except FairlaneError as error:
            return refused(error)

    async def changes(self, request: Request) -> Response:
        """What an attempt changed, or one file of it, as markup of escaped text."""
        query = request.query_params
        given = numbers(query, "attempt", "now")
        asked = changes.Asked(
            query.get("task", ""), given.get("attempt"), bool(given.get("now")), file_of(query)
        )
        draw = changes.one_file if asked.file else changes.panel
        try:
            html = await self._queue.read_git(lambda context: draw(context, asked))
        except FairlaneError as error:
            return refused(error)
        return JSONResponse({"html": html}, headers=HEADERS)

    async def raw(self, request: Request) -> Response:
        """A log whole, as it was written; browsers show it as text and keep it as a file."""
        query = request.query_params
        task, number = query.get("task", ""), numbers(query, "attempt").get("attempt")
        stream, check = query.get("stream", "stdout"), query.get("check")

        def find(context: Context) -> Path:
            return Log(context, task, number, stream, check).run

        try:
            run = await self._queue.read(find)
            first = await self._bytes(run, stream, 0)
        except FairlaneError as error:
            return refused(error)
        kind = "text/plain; charset=utf-8"
        return StreamingResponse(self._all(run, stream, first), headers=HEADERS, media_type=kind)

    async def _all(self, run: Path, stream: str, data: bytes) -> AsyncIterator[bytes]:
        offset = 0
        while data:
            yield data
            offset += len(data)
            data = await self._bytes(run, stream, offset)

    async def _bytes(self, run: Path, stream: str, offset: int) -> bytes:
        def read(context: Context) -> bytes:
            try:
                return context.executor().output(run, stream, offset, RAW_BYTES)
            except Damaged as error:  # its agent has changed its run folder
                raise Refused(f"{run}: {stream} cannot be read: {error}") from error

        data: bytes = await self._queue.read(read)
        return data
