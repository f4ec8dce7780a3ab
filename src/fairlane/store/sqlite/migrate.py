"""Migrations: numbered files, applied in one transaction, after a backup."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path

from fairlane.model.errors import Refused
from fairlane.model.record import NamedTuple
from fairlane.store.sqlite import file

#: Marks a file as ours: "Fair" in ASCII.
APPLICATION_ID = 0x46616972
#: The schema that this program writes: the number of the last migration.
SCHEMA = 6
HERE = Path(__file__).parent


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Number, name and text of every migration, in order."""
    files = sorted((HERE / "migrations").glob("*.sql"))
    return tuple((int(f.name[:4]), f.stem, f.read_text(encoding="utf-8")) for f in files)


def schema_of(connection: sqlite3.Connection) -> int:
    """The schema of a file; 0: empty."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """A file that is not ours or newer is refused before anything in it is touched."""
    if not _is_ours(connection):
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        used = tables or schema_of(connection)
        if used and not _is_ours(connection):  # asked last: another process may have made it
            hint = "Choose another file with --db sqlite:PATH."
            raise Refused(f"{path} is not a store of Fairlane", hint, "foreign_store")
    version = schema_of(connection)
    if version > SCHEMA:
        message = f"{path} has schema {version}, this Fairlane knows up to {SCHEMA}"
        hint = "Upgrade Fairlane, the way you installed it."
        raise Refused(message, hint, "schema_newer")


def _is_ours(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)


class Inspected(NamedTuple):
    """What a file is like; problems are looked for where its schema is the latest."""

    schema: int
    latest: int
    problems: list[str]


def inspect(path: Path) -> Inspected:
    """Check a file without changing it; one that is damaged, foreign or newer is refused."""
    with file.reading_only(path) as connection:
        refuse_foreign(connection, path)
        _refuse_damaged(connection, path)
        schema = schema_of(connection)
        return Inspected(schema, SCHEMA, file.problems(connection) if schema == SCHEMA else [])


def schema_at(path: Path) -> int | None:
    """The schema of a file, read without changing it; None: there is no such file."""
    if not path.exists():
        return None
    with file.reading_only(path) as connection:
        return schema_of(connection)


def prepare(
    connection: sqlite3.Connection,
    path: Path,
    say: Callable[[str], None],
    permit: Callable[[Path], None],
) -> None:
    """Bring a file to the latest schema; of several that try at once, one does it.

    `permit` raises where an older schema must stay for now.
    """
    if schema_of(connection) == SCHEMA:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = schema_of(connection)
        if 0 < version < SCHEMA:
            permit(path)
            _refuse_damaged(connection, path)
            backup = backup_path(path, f"schema-{version}")
            _copy_beside(path, backup)
            say(f"{path}: schema {version} is brought to {SCHEMA}; a backup is {backup}")
        if version < SCHEMA:
            apply(connection, version)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
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
    complete, pending = [], ""
    for line in text.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            complete.append(pending.strip())
            pending = ""
    return complete


def backup_path(path: Path, why: str) -> Path:
    """A name for a backup that is not taken."""
    folder = path.parent / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    number = 1
    while (target := folder / f"{path.stem}-{why}-{number}.db").exists():
        number += 1
    return target


def copy(connection: sqlite3.Connection, target: Path) -> None:
    """A consistent copy, readable by the owner only; it has its name when it is whole."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)
        part.touch(mode=0o600)
        other = sqlite3.connect(part)
        try:
            connection.backup(other)
        finally:
            other.close()
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _copy_beside(path: Path, target: Path) -> None:
    """A copy of what was committed last: a connection that writes cannot be copied from."""
    beside = sqlite3.connect(path)
    try:
        copy(beside, target)
    finally:
        beside.close()


def _refuse_damaged(connection: sqlite3.Connection, path: Path) -> None:
    """What is damaged is not migrated, and a copy of it is no backup."""
    damage = file.damage(connection, path)
    if damage:
        raise file.corrupt(path, damage)
