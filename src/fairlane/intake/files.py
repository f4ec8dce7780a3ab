"""Files of others: found, read as text and parsed, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairlane.intake.sources.base import Where
from fairlane.model.errors import Invalid

#: Beyond this size it is no list of work.
FILE_BYTES_MAX = 500_000_000
UNREADABLE = "unreadable"


def locate(where: Where, places: Sequence[str], what: str) -> Path:
    """The file that is meant: itself, or the first of the places in its folder."""
    if where.path is None:
        raise Invalid("there is nothing to read", f"Give {what}.", code=UNREADABLE)
    if not where.path.is_dir():
        return where.path
    for place in places:
        if (where.path / place).is_file():
            return where.path / place
    looked = ", ".join(places)
    raise Invalid(f"{where.path}: none of {looked} in it", f"Give {what}.", code=UNREADABLE)


def read_text(path: Path, what: str) -> str:
    """The text of a file, without a byte order mark."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise Invalid(f"{path}: too large", f"Give {what}.", code=UNREADABLE)
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise Invalid(message, f"Give {what}.", code=UNREADABLE) from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{path}: not UTF-8 text", f"Give {what}.", code=UNREADABLE) from error


def parse_json(text: str, name: str, what: str) -> Any:
    """The document that a text is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{name}: not JSON: {error}", f"Give {what}.", code=UNREADABLE) from error
