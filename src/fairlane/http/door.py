"""The door: a link that works once, changed into a cookie; and the way out."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.types import Scope

from fairlane.http.answers import Answer, HttpError, answer
from fairlane.http.guard import cookie_of
from fairlane.http.sessions import LINK_SECONDS, SESSION_LENGTH, Sessions
from fairlane.model.instant import SECOND


class Door:
    """Lets a browser in, once a link."""

    def __init__(self, sessions: Sessions, cookie: str, secure: bool) -> None:
        self.sessions, self.cookie = sessions, cookie
        # Lax: a link in a chat or a terminal of another site leads here, and can do no more.
        self._marks = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")

    def link(self) -> Answer:
        """A new link, below the server's own address."""
        path = f"/open?key={self.sessions.new_link()}"
        return answer({"schema": "fairlane/1", "path": path, "seconds": int(LINK_SECONDS)})

    async def open(self, scope: Scope) -> Answer:
        """Change a key into a cookie, and go to the page; who has a cookie may click again."""
        if scope["method"] == "HEAD":  # whoever only looks uses nothing up
            return Answer(204, b"", [])
        query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=10)
        cookie = self.sessions.open(query.get("key", [""])[0])
        if cookie is None and self.sessions.is_good(cookie_of(scope, self.cookie)):
            return Answer(303, b"", [(b"location", b"/")])
        if cookie is None:
            hint = "`fairlane link` prints a new one."
            raise HttpError(401, "used_link", "this link was used, or is too old", hint)
        length = f"; Max-Age={SESSION_LENGTH // SECOND}"
        return Answer(303, b"", [(b"location", b"/"), self._set(cookie + self._marks + length)])

    async def leave(self, scope: Scope) -> Answer:
        """This browser is known no more."""
        self.sessions.end(cookie_of(scope, self.cookie))
        return Answer(303, b"", [(b"location", b"/"), self._set(self._marks + "; Max-Age=0")])

    def _set(self, value: str) -> tuple[bytes, bytes]:
        return b"set-cookie", f"{self.cookie}={value}".encode()
