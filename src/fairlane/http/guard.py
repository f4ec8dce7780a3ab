"""The guard: checks every request first: host, origin, token or cookie, size and speed."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlane.clock import SYSTEM
from fairlane.http.identity import GUEST, NOBODY, OWNER, Secrets, Who
from fairlane.http.messages import BODY_BYTES_MAX, HttpError, cookies_of, header, refusal
from fairlane.http.sessions import Sessions
from fairlane.model.errors import FairlaneError
from fairlane.service.home.setup import lease_token
from fairlane.service.page_rights import not_for_page

#: Paths without a token: health, readiness and the login.
OPEN = frozenset({"/healthz", "/readyz", "/open"})
#: Where the token of an attempt is good for something: the API, and MCP.
CALLED = ("/api/v1/", "/mcp/")
#: Where the cookie of the page is good for nothing.
UNPAGED = ("/mcp/", "/metrics/")
#: Wrong proofs that are answered at once; the next ones wait, or are turned away.
GUESSES, GUESS_SECONDS, GUESSERS_MAX = 20, 1.0, 64
_READING = ("GET", "HEAD", "OPTIONS")
_TOKEN_NAMES = (b"token=", b"access_token=", b"bearer=", b"authorization=")
_SAFE = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]


class Guard:
    """Host, Origin, token or cookie, size and speed; then the application."""

    def __init__(
        self, app: ASGIApp, known: Secrets, allowed: AllowedHosts, sessions: Sessions, cookie: str
    ) -> None:
        self._app, self._known = app, known
        self._allowed, self._sessions, self._cookie = allowed, sessions, cookie
        self._guesses: list[float] = []
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        is_socket = scope["type"] == "websocket"
        safe = send if is_socket else _with_headers(send)
        try:
            self._allowed.check(scope)
            scope["fairlane.who"] = await self._who(scope)
            size = 0 if is_socket else _refuse_large(scope)
        except FairlaneError as error:
            await _refuse(error, scope, receive, safe)
            return
        if size is None:
            measured = _Measured(scope, receive, safe)
            await self._app(scope, measured.receive, measured.send)
        else:
            await self._app(scope, receive, safe)

    async def _who(self, scope: Scope) -> Who:
        """The identity behind a token or cookie; without one only the open paths answer."""
        path = scope["path"]
        shown = header(scope, b"authorization")
        if path in OPEN:
            return NOBODY
        _refuse_in_query(scope, self._known.token)
        if shown:
            scheme, _, rest = shown.decode("latin-1").partition(" ")
            who = who_shows(self._known, rest.strip()) if scheme.lower() == "bearer" else NOBODY
        elif any(map(self._sessions.is_good, cookies_of(scope, self._cookie))):
            _refuse_cross_site(scope)
            if f"{path}/".startswith(UNPAGED):
                raise not_for_page(path)
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

    async def _slow_down(self) -> None:
        """Guessing: a few are answered at once, then each waits, and few may wait."""
        now = SYSTEM.monotonic()
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


def who_shows(known: Secrets, shown: str) -> Who:
    """Whose token this is; the time it takes does not tell how much of it was right."""
    token = shown.encode("utf-8", "replace")
    if hmac.compare_digest(token, known.token.encode()):
        return OWNER
    lease, dot, _ = shown.rpartition(".")
    if dot and hmac.compare_digest(token, lease_token(known.attempt_key, lease).encode()):
        return Who("attempt", lease)
    return NOBODY


def _with_headers(send: Send) -> Send:
    """Sends with the headers that every response has; an application's own take precedence."""

    async def safe(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            names = {name for name, _ in headers}
            message["headers"] = headers + [pair for pair in _SAFE if pair[0] not in names]
        await send(message)

    return safe


class _Measured:
    """Counts the bytes of a chunked body; rejects it past the limit."""

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
                self._over = True
                if not self._started:
                    await _refuse(_too_large(), self._scope, self._receive, self._send)
                return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        """Unless it has been answered here."""
        if not self._over:
            self._started = True
            await self._send(message)


def _refuse_in_query(scope: Scope, token: str) -> None:
    """Addresses are kept in histories and logs: no token is ever taken from one."""
    query = scope["query_string"].lower()
    named = query and any(query.startswith(n) or b"&" + n in query for n in _TOKEN_NAMES)
    if named or token.lower().encode() in query:
        raise _no_token("a token in the address is not looked at")


def _refuse_cross_site(scope: Scope) -> None:
    """A browser adds the cookie by itself, so a write must name this origin."""
    _refuse_foreign_fetch(scope)
    has_origin = bool(header(scope, b"origin"))  # and it is the same: AllowedHosts has looked
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
    """The declared length of the body; None: not declared."""
    said = header(scope, b"content-length")
    if not said:
        return None if header(scope, b"transfer-encoding") else 0
    size = int(said)  # the parser has let only digits through
    if size > BODY_BYTES_MAX:
        raise _too_large()
    return size


async def _refuse(error: FairlaneError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": error.error_code})
        return
    response = refusal(error, scope)
    response.headers.append((b"connection", b"close"))  # what is left of the body is not read
    await response(scope, receive, send)


def _too_large() -> HttpError:
    hint = f"At most {BODY_BYTES_MAX // 2**20} MiB; send it in parts."
    return HttpError(413, "too_large", "the body is too large", hint)


def _foreign(message: str) -> HttpError:
    return HttpError(403, "foreign_origin", message, "Open the page itself, or use the token.")


def _no_token(message: str) -> HttpError:
    hint = "Send the header Authorization: Bearer TOKEN; `token` in the home folder has it."
    return HttpError(401, "no_token", message, hint, [(b"www-authenticate", b"Bearer")])


LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
#: Where a bind means every address.
EVERYWHERE = ("0.0.0.0", "::", "")
#: Most combinations of host and origin to remember.
KNOWN_MAX = 100
_LOOKED_AT = (b"host", b"origin")
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class AllowedHosts:
    """Names with the port that is bound; another name is an attack by DNS, or a mistake."""

    def __init__(self, host: str, port: int, more: Iterable[str] = ()) -> None:
        names = [*LOOPBACK, *more]
        if host not in EVERYWHERE:
            names.append(bracketed(host))
        self._port = port
        self._known: set[tuple[object, ...]] = set()  # combinations that passed the check
        self._names = {name.lower() for name in names}

    def check(self, scope: Scope) -> None:
        """Host and Origin of a request, or 403."""
        asked = tuple(pair for pair in scope["headers"] if pair[0] in _LOOKED_AT)
        shown = (asked, scope["scheme"], scope.get("server"))
        if shown in self._known:
            return
        self._look(scope)
        if len(self._known) < KNOWN_MAX:
            self._known.add(shown)

    def _look(self, scope: Scope) -> None:
        host = header(scope, b"host").decode("latin-1").lower()
        if not self._is_ours(scope, host):
            hint = "Ask by the address it listens at, or serve with --name NAME."
            raise HttpError(403, "foreign_host", f"this is not {host[:100] or 'named'}", hint)
        for name in _LOOKED_AT:
            if sum(key == name for key, _ in scope["headers"]) > 1:
                said, code = name.decode().title(), f"foreign_{name.decode()}"
                raise HttpError(403, code, f"{said} is given twice", "Give it once.")
        origin = header(scope, b"origin").decode("latin-1").lower()
        if origin and not same_origin(origin, host):
            hint = "Pages of other sites may not ask here."
            raise HttpError(403, "foreign_origin", f"a page of {origin[:100]} asks", hint)

    def _is_ours(self, scope: Scope, host: str) -> bool:
        if host in self._names and ":" in host.rpartition("]")[2]:
            return True  # a name that the settings give with its port
        name, port = split_host(host)
        if port is None:
            port = _PORTS[scope["scheme"]]
        if port != self._port:
            return False
        server = scope.get("server")  # the very address at which the call came in
        return name in self._names or (server is not None and name == bracketed(server[0]))


def same_origin(origin: str, host: str) -> bool:
    """Whether a page's origin is this very host and port."""
    scheme, _, place = origin.partition("://")
    if scheme not in ("http", "https"):
        return False
    name, port = split_host(place)
    own_name, own_port = split_host(host)
    usual = _PORTS[scheme]
    return name == own_name and (port or usual) == (own_port or usual)


def split_host(host: str) -> tuple[str, int | None]:
    """A Host header's name and port; -1 is no port at all."""
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port
    except ValueError:
        return "", -1
    if parts.netloc != host or parts.hostname is None or "@" in host:
        return "", -1
    return bracketed(parts.hostname), port


def bracketed(host: str) -> str:
    """An address of IP 6 in brackets, as URLs have it."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
