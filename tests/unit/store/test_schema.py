"""The schema is what its migrations make, and every named statement is used, and by an index."""

from __future__ import annotations

import re
import sqlite3
from fnmatch import fnmatch

import pytest

from fairlane.model.task import LaneKey, Status
from fairlane.store.base import Filter
from fairlane.store.sql.reading import SqlReading
from fairlane.store.sqlite import migrate
from fairlane.store.sqlite.migrate import HERE, migrations
from fairlane.store.sqlite.store import statements

#: Every table whose rows grow with the work; nothing that is asked often reads all of one.
GROWS = ("tasks", "attempts", "events", "decisions", "needs", "usage")
#: Once a day, and only where the policy was changed: which texts do decisions name?
RARE = "compact_policies"
NAMED = re.compile(r"""_(?:rows?|do|do_many|count)\(\s*f?"([^"]+)"|_statements\[f?"([^"]+)"\]""")
CHOSEN = re.compile(r"""\("(\w+)" if .* else "(\w+)"\)""")


@pytest.fixture
def connection():
    connection = sqlite3.connect(":memory:")
    migrate.apply(connection, 0)
    yield connection
    connection.close()


def schema(connection: sqlite3.Connection) -> dict[str, str]:
    """Every table and index by name, without comments and spaces."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    return {f"{sort} {name}": plain(sql) for sort, name, sql in rows}


def plain(sql: str | None) -> str:
    text = " ".join(re.sub(r"--[^\n]*", "", sql or "").split())
    text = re.sub(r'^CREATE TABLE "(\w+)"', r"CREATE TABLE \1", text)  # SQLite quotes a new name
    return re.sub(r" (?=[,)])", "", text)  # where a column was added, SQLite has its own spaces


def test_the_schema_for_reading_is_what_the_migrations_make(connection):
    read = sqlite3.connect(":memory:")
    read.executescript((HERE / "schema.sql").read_text(encoding="utf-8"))
    assert schema(read) == schema(connection)
    read.close()


def test_migrations_are_numbered_without_gaps(connection):
    numbers = [number for number, _, _ in migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert migrate.schema_of(connection) == migrate.SCHEMA == numbers[-1]
    assert all(re.fullmatch(r"\d{4}_[a-z_]+", name) for _, name, _ in migrations())


def test_every_statement_of_a_migration_is_found():
    for _, name, text in migrations():
        joined = " ".join(plain(each) for each in migrate.statements(text))
        assert joined == plain(text), name


def used() -> set[str]:
    """Names of statements in the code; a part that is filled in stands as `*`."""
    names_used: set[str] = set()
    for file in ("reading.py", "writing.py", "compacting.py"):
        text = (HERE.parent / "sql" / file).read_text(encoding="utf-8")
        names = [name for pair in NAMED.findall(text) for name in pair if name]
        names_used |= {re.sub(r"\{[^}]*\}", "*", name) for name in names}
        for pair in CHOSEN.findall(text):
            names_used |= {f"{name}{more}" for name in pair for more in ("", "_of_task")}
    return names_used


def test_every_named_statement_is_used_and_every_used_one_is_there():
    names, wanted = set(statements()), used()
    assert [name for name in names if not any(fnmatch(name, each) for each in wanted)] == []
    assert [each for each in wanted if not any(fnmatch(name, each) for name in names)] == []


def steps(connection: sqlite3.Connection, statement: str) -> list[str]:
    """How SQLite goes about a statement."""
    for count in range(40):
        try:
            rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", (None,) * count)
        except sqlite3.ProgrammingError:
            continue  # another number of values
        return [row[3] for row in rows]
    raise AssertionError(statement)


def reads_all(connection: sqlite3.Connection, statement: str) -> list[str]:
    """The steps that go through a whole table, or a whole index that holds every row of it."""
    if re.fullmatch(r"SELECT 1 FROM \w+ LIMIT 1", plain(statement)):
        return []  # the first row, whichever it is
    partial = {row[0] for row in connection.execute(PARTIAL)}
    scans = []
    for step in steps(connection, statement):
        scan = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", step)
        if scan and scan[1] in GROWS and scan[2] not in partial:
            scans.append(step)
    return scans


PARTIAL = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'"


@pytest.mark.parametrize("name", [name for name in statements() if not fnmatch(name, RARE)])
def test_no_statement_reads_a_whole_table(connection, name):
    assert reads_all(connection, statements()[name]) == []


def test_a_statement_that_reads_a_whole_table_is_found(connection):
    assert reads_all(connection, "SELECT * FROM tasks WHERE kind = ?") == ["SCAN tasks"]


@pytest.mark.parametrize(
    ("which", "index"),
    [
        (Filter(wait="artifact"), "tasks_wait"),
        (Filter(wait="upstream", project="p"), "tasks_wait"),
        (Filter(status=(Status.PARKED,)), "tasks_live"),
        (Filter(status=(Status.LEASED, Status.RUNNING)), "tasks_live"),
        (Filter(group="g", status=(Status.QUEUED,)), "tasks_group"),
        (Filter(parent="p"), "tasks_parent"),
        (Filter(held_lanes=(LaneKey(),)), "tasks_lane"),
    ],
)
def test_a_listing_uses_the_index_of_what_is_asked(connection, which, index):
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    SqlReading(connection, statements()).listing(which)
    connection.set_trace_callback(None)
    statement = next(each for each in seen if " FROM tasks WHERE seq" in each)
    assert f"INDEX {index}" in " ".join(steps(connection, statement))
