"""Sessions: one-time links that open the dashboard, the cookies they are exchanged for, login."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from fairlane.clock import SYSTEM
from fairlane.http.messages import Answer, HttpError, answer, cookies_of
from fairlane.http.routes import Call, parse_query
from fairlane.model.instant import DAY, SECOND, Instant

FILE = "sessions.json"
#: Leads a browser to a link; removed when a link is used.
OPENING_FILE = "opening.html"
#: How long a link waits to be opened.
LINK_SECONDS = 600.0
#: How long a cookie is good.
SESSION_LENGTH = 30 * DAY
LINKS_MAX, SESSIONS_MAX = 100, 100


class Sessions:
    """Links that were given out, and cookies that are good; only their digests are kept."""

    def __init__(self, home: Path, now: Callable[[], Instant]) -> None:
        self._path, self._now = home / FILE, now
        self._links: dict[str, float] = {}
        self._ends: dict[str, Instant] = self._read()

    def new_link(self) -> str:
        """A key that opens the page once."""
        key = secrets.token_urlsafe(32)
        self._links[_digest(key)] = SYSTEM.monotonic() + LINK_SECONDS
        while len(self._links) > LINKS_MAX:
            del self._links[next(iter(self._links))]
        return key

    def open(self, key: str) -> str | None:
        """The cookie that a key is changed into; None: it was used, or is too old."""
        until = self._links.pop(_digest(key), None)
        if until is None or SYSTEM.monotonic() > until:
            return None
        cookie = secrets.token_urlsafe(32)
        self._ends[_digest(cookie)] = self._now() + SESSION_LENGTH
        self._write()
        self._path.with_name(OPENING_FILE).unlink(missing_ok=True)
        return cookie

    def is_good(self, cookie: str) -> bool:
        """Whether a link was exchanged for this cookie, and it has not expired."""
        until = self._ends.get(_digest(cookie))
        return until is not None and self._now() < until

    def end(self, cookie: str) -> None:
        """This cookie is good no more."""
        if self._ends.pop(_digest(cookie), None) is not None:
            self._write()

    def _read(self) -> dict[str, Instant]:
        try:
            ends = json.loads(self._path.read_text(encoding="ascii"))
            return {str(key): int(until) for key, until in ends.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}  # no session: a new link helps

    def _write(self) -> None:
        now = self._now()
        good = sorted((until, key) for key, until in self._ends.items() if until > now)
        self._ends = {key: until for until, key in good[-SESSIONS_MAX:]}
        write_private(self._path, json.dumps(self._ends))


def write_private(path: Path, text: str) -> None:
    """A file that only its owner reads, and that is never seen half written."""
    new = path.with_suffix(f".{os.getpid()}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class Login:
    """Lets a browser in, once a link."""

    def __init__(self, sessions: Sessions, cookie: str, secure: bool) -> None:
        self.sessions, self.cookie = sessions, cookie
        # Lax: a link in a chat or a terminal of another site leads here, and can do no more.
        self._marks = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")

    def link(self) -> Answer:
        """A new link, below the server's own address."""
        path = f"/open?key={self.sessions.new_link()}"
        return answer({"schema": "fairlane/1", "path": path, "seconds": int(LINK_SECONDS)})

    async def open(self, call: Call) -> Answer:
        """Exchange a key for a cookie and redirect; a browser with a cookie may click again."""
        if call.scope["method"] == "HEAD":  # a preview does not use the link up
            return Answer(204, b"", [])
        cookie = self.sessions.open(parse_query(call.scope).get("key", [""])[0])
        known = cookies_of(call.scope, self.cookie)
        if cookie is None and any(map(self.sessions.is_good, known)):
            return Answer(303, b"", [(b"location", b"/")])
        if cookie is None:
            hint = "`fairlane link` prints a new one."
            raise HttpError(401, "used_link", "this link was used, or is too old", hint)
        length = f"; Max-Age={SESSION_LENGTH // SECOND}"
        return Answer(303, b"", [(b"location", b"/"), self._set(cookie + self._marks + length)])

    async def leave(self, call: Call) -> Answer:
        """This browser is known no more."""
        for cookie in cookies_of(call.scope, self.cookie):
            self.sessions.end(cookie)
        return Answer(303, b"", [(b"location", b"/"), self._set(self._marks + "; Max-Age=0")])

    def _set(self, value: str) -> tuple[bytes, bytes]:
        return b"set-cookie", f"{self.cookie}={value}".encode()
