"""Token: what a caller over HTTP must show. One line in the home folder, for its owner alone."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from fairlane.model.errors import Refused

FILE = "token"
#: Random bytes of a token.
BYTES = 32


def home_token(home: Path) -> str:
    """The token of a home folder, made if there is none; one that others can read is refused."""
    path = home / FILE
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(path)
    with os.fdopen(made, "w") as file:
        file.write(secrets.token_urlsafe(BYTES) + "\n")
    return _read(path)


def known_token(home: Path) -> str | None:
    """The token of a home folder, if it has one."""
    return _read(home / FILE) if (home / FILE).exists() else None


def _read(path: Path) -> str:
    found = path.stat()
    if found.st_mode & 0o077:
        hint = f"Make a new one: rm {path}. The old one must count as known."
        raise Refused(f"{path}: others can read this token", hint, code="open_token")
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if len(text) < BYTES:
        hint = f"Remove it, and a new one is made: rm {path}"
        raise Refused(f"{path}: this is no token", hint, code="bad_token")
    return text
