"""The guard: whoever calls is looked at here first, whatever is called: API, page, MCP, sockets."""

from __future__ import annotations

import asyncio
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlane.http.answers import Answer, Headers, HttpError, answer_error
from fairlane.http.badges import GUEST, NOBODY, Who, who_shows
from fairlane.http.bodies import BODY_BYTES_MAX, header
from fairlane.http.places import Places
from fairlane.http.sessions import Sessions

#: Open to everybody: whether the process lives, whether the store answers, and the door.
OPEN = frozenset({"/healthz", "/readyz", "/open"})
#: Where the token of an attempt is good for something: the API, and MCP.
CALLED = ("/api/v1/", "/mcp/")
#: Wrong proofs that are answered at once; the next ones wait, or are turned away.
GUESSES, GUESS_SECONDS, GUESSERS_MAX = 20, 1.0, 64
_READING = ("GET", "HEAD", "OPTIONS")
_TOKEN_NAMES = (b"token=", b"access_token=", b"bearer=", b"authorization=")
_SAFE: Headers = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]


class Guard:
    """Host, Origin, token or cookie, size and speed; then the application."""

    def __init__(
        self, app: ASGIApp, token: str, places: Places, sessions: Sessions, cookie: str
    ) -> None:
        self._app, self._token = app, token
        self._places, self._sessions, self._cookie = places, sessions, cookie
        self._guesses: list[float] = []
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        is_socket = scope["type"] == "websocket"
        safe = send if is_socket else _Safe(send)
        try:
            self._places.check(scope)
            scope["fairlane.who"] = await self._who(scope)
            size = 0 if is_socket else _refuse_large(scope)
        except HttpError as error:
            await _refuse(error, scope, receive, safe)
            return
        if size is None:
            measured = _Measured(scope, receive, safe)
            await self._app(scope, measured.receive, measured.send)
        else:
            await self._app(scope, receive, safe)

    async def _who(self, scope: Scope) -> Who:
        """Whose proof is good; whoever has none gets to the open paths alone."""
        path = scope["path"]
        shown = header(scope, b"authorization")
        if path in OPEN:
            return NOBODY
        _refuse_in_query(scope, self._token)
        if shown:
            who = self._shown(shown)
        elif self._sessions.is_good(cookie_of(scope, self._cookie)):
            _refuse_cross_site(scope)
            return GUEST
        else:
            raise _no_token("a token is needed")
        if who is NOBODY:
            await self._slow_down()
            raise _no_token("this token is not good")
        if who.lease is not None and not f"{path}/".startswith(CALLED):
            hint = f"It is for what is below {CALLED[0]}."
            raise HttpError(403, "forbidden", "the token of an attempt is not for this", hint)
        _refuse_foreign_fetch(scope)
        return who

    def _shown(self, shown: bytes) -> Who:
        scheme, _, rest = shown.decode("latin-1").partition(" ")
        return who_shows(self._token, rest.strip()) if scheme.lower() == "bearer" else NOBODY

    async def _slow_down(self) -> None:
        """Guessing: a few are answered at once, then each waits, and few may wait."""
        now = monotonic()
        self._guesses = [at for at in self._guesses if now - at < 60.0]
        if len(self._guesses) < GUESSES:
            self._guesses.append(now)
            return
        if self._waiting >= GUESSERS_MAX:
            wait = [(b"retry-after", b"60")]
            hint = "The token stands in the home folder."
            raise HttpError(429, "guessing", "too many wrong tokens", hint, wait)
        self._waiting += 1
        try:
            await asyncio.sleep(GUESS_SECONDS)
        finally:
            self._waiting -= 1


class _Safe:
    """Sends with the headers that every response has."""

    __slots__ = ("_send",)

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        """A response's start gets the headers; what an application has set itself stays."""
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            given = {name for name, _ in headers}
            message["headers"] = headers + [each for each in _SAFE if each[0] not in given]
        await self._send(message)


class _Measured:
    """A body whose length nobody says is counted; too much is answered here, and then is over."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._left = BODY_BYTES_MAX
        self._started = self._over = False

    async def receive(self) -> Message:
        """The next part."""
        if self._over:
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                return await self._end(_too_large())
        return message

    async def send(self, message: Message) -> None:
        """Unless it has been answered here."""
        if not self._over:
            self._started = True
            await self._send(message)

    async def _end(self, error: HttpError) -> Message:
        self._over = True
        if not self._started:
            await _refuse(error, self._scope, self._receive, self._send)
        return {"type": "http.disconnect"}


def cookie_of(scope: Scope, name: str) -> str:
    """A cookie's value; empty: it is not there."""
    for key, value in scope["headers"]:
        if key == b"cookie":
            for part in value.decode("latin-1").split(";"):
                found, _, text = part.strip().partition("=")
                if found == name:
                    return str(text)
    return ""


def _refuse_in_query(scope: Scope, token: str) -> None:
    """Addresses are kept in histories and logs: no token is ever taken from one."""
    query = scope["query_string"].lower()
    if query and any(query.startswith(n) or b"&" + n in query for n in _TOKEN_NAMES):
        raise _no_token("a token in the address is not looked at")
    if token.lower().encode() in query:
        raise _no_token("a token in the address is not looked at")


def _refuse_cross_site(scope: Scope) -> None:
    """A cookie comes by itself: what changes something must come from this page."""
    _refuse_foreign_fetch(scope)
    has_origin = bool(header(scope, b"origin"))  # and it is the same: Places has looked
    if scope["type"] == "websocket":
        if not has_origin:
            raise _foreign("a socket with a cookie names its origin")
        return
    named = has_origin or header(scope, b"sec-fetch-site") == b"same-origin"
    if scope["method"] not in _READING and not named:
        raise _foreign("a write with a cookie names its origin")


def _refuse_foreign_fetch(scope: Scope) -> None:
    """Another site's page may lead a person here, and nothing more."""
    site = header(scope, b"sec-fetch-site")
    if site not in (b"cross-site", b"same-site"):
        return
    reading = scope["type"] == "http" and scope["method"] in _READING
    if not (reading and header(scope, b"sec-fetch-mode") == b"navigate"):
        raise _foreign("a page of another site asks")


def _refuse_large(scope: Scope) -> int | None:
    """The length of the body as it is said; None: nobody says."""
    said = header(scope, b"content-length")
    if not said:
        return None if header(scope, b"transfer-encoding") else 0
    size = int(said)  # the parser has let only digits through
    if size > BODY_BYTES_MAX:
        raise _too_large()
    return size


async def _refuse(error: HttpError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": error.error_code})
        return
    found = refusal(error, scope)
    found.headers.append((b"connection", b"close"))  # what is left of the body is not read
    await found(scope, receive, send)


def refusal(error: Exception, scope: Scope) -> Answer:
    """The error document; a person who has no cookie is told what opens the page."""
    if not isinstance(error, HttpError) or error.status != 401:
        return answer_error(error)
    if b"text/html" not in header(scope, b"accept"):
        return answer_error(error)
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Fairlane</title>"
        "<meta name=viewport content='width=device-width'>"
        "<h1>This page opens by a link</h1>"
        "<p>In a terminal, <code>fairlane link</code> prints one. It works once; this browser is"
        " then remembered.</p></html>"
    )
    headers = [(b"content-type", b"text/html; charset=utf-8"), *error.headers]
    return Answer(error.status, text.encode(), headers)


def _too_large() -> HttpError:
    hint = f"At most {BODY_BYTES_MAX // 2**20} MiB; send it in parts."
    return HttpError(413, "too_large", "the body is too large", hint)


def _foreign(message: str) -> HttpError:
    return HttpError(403, "foreign_origin", message, "Open the page itself, or use the token.")


def _no_token(message: str) -> HttpError:
    hint = "Send the header Authorization: Bearer TOKEN; `token` in the home folder has it."
    return HttpError(401, "no_token", message, hint, [(b"www-authenticate", b"Bearer")])
