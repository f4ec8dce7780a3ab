"""Migrations: numbered files, applied in one transaction, after a backup."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from fairlead.model.errors import Refused
from fairlead.store.sqlite.queries import migrations

#: Marks a file as ours: "Fair" in ASCII.
APPLICATION_ID = 0x46616972


def latest() -> int:
    """The schema that this program writes."""
    return migrations()[-1][0]


def schema_of(connection: sqlite3.Connection) -> int:
    """The schema of a file; 0: empty."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def prepare(connection: sqlite3.Connection, path: Path, say: Callable[[str], None]) -> None:
    """Bring a file to the latest schema; one that is not ours or newer is refused."""
    version = schema_of(connection)
    if version == latest():
        return
    _refuse_foreign(connection, path, version)
    if version:
        backup = backup_path(path, f"schema-{version}")
        copy(connection, backup)
        say(f"{path}: schema {version} is brought to {latest()}; a backup is {backup}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        apply(connection, schema_of(connection))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def apply(connection: sqlite3.Connection, version: int) -> None:
    """Every migration after `version`, statement by statement."""
    for number, _, text in migrations():
        if number > version:
            for statement in statements(text):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number:d}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")


def statements(text: str) -> list[str]:
    """The statements of a migration, one by one."""
    found, held = [], ""
    for line in text.splitlines(keepends=True):
        held += line
        if sqlite3.complete_statement(held):
            found.append(held.strip())
            held = ""
    return found


def backup_path(path: Path, why: str) -> Path:
    """A name for a backup that is not taken."""
    folder = path.parent / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    number = 1
    while (found := folder / f"{path.stem}-{why}-{number}.db").exists():
        number += 1
    return found


def copy(connection: sqlite3.Connection, target: Path) -> None:
    """A consistent copy, readable by the owner only."""
    target.touch(mode=0o600)
    other = sqlite3.connect(target)
    try:
        connection.backup(other)
    finally:
        other.close()


def _refuse_foreign(connection: sqlite3.Connection, path: Path, version: int) -> None:
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and mark != APPLICATION_ID:
        hint = "Choose another file with --db sqlite:PATH."
        raise Refused(f"{path} is not a store of Fairlead", hint, "foreign_store")
    if version > latest():
        message = f"{path} has schema {version}, this Fairlead knows up to {latest()}"
        hint = "Upgrade Fairlead: `pip install --upgrade fairlead`."
        raise Refused(message, hint, "schema_newer")
