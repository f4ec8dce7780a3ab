"""Sessions: the page is opened by a link that works once; a cookie remembers who did."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from fairlane.model.instant import DAY, Instant

FILE = "sessions.json"
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
        self._links[_digest(key)] = monotonic() + LINK_SECONDS
        while len(self._links) > LINKS_MAX:
            del self._links[next(iter(self._links))]
        return key

    def open(self, key: str) -> str | None:
        """The cookie that a key is changed into; None: it was used, or is too old."""
        until = self._links.pop(_digest(key), None)
        if until is None or monotonic() > until:
            return None
        cookie = secrets.token_urlsafe(32)
        self._ends[_digest(cookie)] = self._now() + SESSION_LENGTH
        self._write()
        return cookie

    def is_good(self, cookie: str) -> bool:
        """Whether somebody opened the page with a link and has this cookie from it."""
        until = self._ends.get(_digest(cookie))
        return until is not None and self._now() < until

    def end(self, cookie: str) -> None:
        """This cookie is good no more."""
        if self._ends.pop(_digest(cookie), None) is not None:
            self._write()

    def _read(self) -> dict[str, Instant]:
        try:
            found = json.loads(self._path.read_text(encoding="ascii"))
            return {str(key): int(until) for key, until in found.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}  # nobody is known: a new link helps

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
