"""Upkeep of the store: a copy of it, and the schema that this program writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import Any, Protocol

from fairlane.model.errors import Invalid, Refused
from fairlane.model.instant import to_datetime
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk


class Copied(Protocol):
    """A store that can be copied while others work."""

    path: Path

    def backup(self, target: Path) -> None:
        """A consistent copy."""


def backup(desk: Desk, target: Path | None = None) -> dict[str, Any]:
    """A consistent copy while others work; nothing is overwritten."""
    store: Copied = desk.store  # type: ignore[assignment]  # the only store that there is, is one
    if target is None:
        stamp = to_datetime(desk.now()).astimezone(UTC).strftime("%Y%m%d-%H%M%S")
        folder = store.path.absolute().parent / "backups"  # where a damaged one is looked up
        folder.mkdir(mode=0o700, exist_ok=True)
        target = free_name(folder / f"{store.path.stem}-{stamp}.db")
    elif target.is_dir():
        target = free_name(target / store.path.name)
    if target.exists():
        raise Refused(f"{target} is there already", "Choose another name.", code="exists")
    if not target.parent.is_dir():
        raise Invalid(f"{target.parent} is no folder", "Make it first, or choose another.")
    store.backup(target)
    return {"schema": SCHEMA, "backup": str(target), "bytes": target.stat().st_size}


def free_name(path: Path) -> Path:
    """This name, or one with a number that is not taken."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return found


def migrated(before: int | None, desk: Desk) -> dict[str, Any]:
    """What opening a store has done to its schema."""
    store: Copied = desk.store  # type: ignore[assignment]
    after = schema_at(store.path)
    return {"schema": SCHEMA, "store": str(store.path), "from": before, "to": after}


def refuse_copying(source: str | None, target: str | None) -> None:
    """Between stores of different sorts, once there is more than one."""
    if source is None and target is None:
        return
    for url in (source, target):
        if url is None:
            raise Invalid("--from and --to go together", "Give both URLs of stores.")
        if not url.startswith("sqlite:"):
            sort = url.partition(":")[0]
            message = f"there is no store for {sort}: URLs here; known is sqlite:"
            raise Invalid(message, "Write it as sqlite:PATH.", code="invalid_store")
    hint = "To copy a SQLite store: fairlane backup FILE."
    raise Refused("both are SQLite stores: there is nothing to migrate", hint)


def sqlite_path(url: str) -> Path | None:
    """The file that a URL names; None: it is no SQLite store."""
    scheme, _, rest = url.partition(":")
    return Path(rest.removeprefix("//")).expanduser() if scheme == "sqlite" and rest else None


def schema_at(path: Path) -> int | None:
    """The schema of a file, read without touching it; None: there is no such file."""
    if not path.exists():
        return None
    with reading_only(path) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def reading_only(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as it lies there, by a connection that changes nothing."""
    from fairlane.store.sqlite.errors import explained, refuse_emptied
    from fairlane.store.sqlite.whole import read_only

    refuse_emptied(path)
    with explained(path):
        connection = read_only(path)
        try:
            yield connection
        finally:
            connection.close()
