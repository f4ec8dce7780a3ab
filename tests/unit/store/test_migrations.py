"""A store of an older schema: what its rows become, and the way back."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairlane.store.news import VALUES
from fairlane.store.sqlite import migrate
from fairlane.store.sqlite.store import SqliteStore

#: A store of schema 2, as the version before wrote it.
(WRITTEN,) = (Path(__file__).parents[2] / "acceptance" / "old_home").glob("*.sql")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(WRITTEN.read_text())
    return path


def bodies(path: Path) -> dict[str, dict[str, object]]:
    """What else each attempt says, by its lease."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT lease, body FROM attempts").fetchall()
    return {lease: json.loads(body) for lease, body in rows}


def test_a_process_number_becomes_a_handle(old: Path) -> None:
    before = bodies(old)
    assert any("pid" in body for body in before.values())
    assert any("pid" not in body for body in before.values())
    store = SqliteStore.open(old, say=lambda message: None)
    with store.read() as reading:
        for lease, body in before.items():
            attempt = reading.attempt(lease)
            assert attempt is not None
            number, start = body.pop("pid", None), body.pop("pid_started", None)
            assert attempt.handle == (None if number is None else f"{number} {start}")
    assert store.check() == []
    store.close()
    after = bodies(old)
    for lease, body in before.items():
        after[lease].pop("handle", None)
        assert after[lease] == body


def test_small_values_keep_their_names(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        names = dict(connection.execute("SELECT name, value FROM kept").fetchall())
    assert names
    store = SqliteStore.open(old, say=lambda message: None)
    with store.read() as reading:
        assert {name: reading.value(name) for name in names} == {
            name: json.loads(text) for name, text in names.items()
        }
    store.close()


def test_what_ended_before_is_compacted_once(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        ended = connection.execute("SELECT count(*) FROM tasks WHERE ended_at NOT NULL").fetchone()
    assert ended[0]
    store = SqliteStore.open(old, say=lambda message: None)
    for count in (ended[0], 0):
        with store.write() as writing:
            assert writing.compact(1 << 60).tasks == count
    assert store.check() == []
    store.close()


def test_versions_go_on_and_what_came_before_is_not_known(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        (next_,) = connection.execute("SELECT next FROM numbers WHERE name = 'version'").fetchone()
    store = SqliteStore.open(old, say=lambda message: None)
    with store.read() as reading:
        mark = reading.mark()
        assert mark.version == next_ - 1
        assert reading.news(mark).is_empty
        assert reading.news(mark._replace(version=mark.version - 1)).anything
    with store.write() as writing:
        writing.put_value("v", 1)
    with store.read() as reading:
        assert reading.news(mark).tables == {VALUES: {"v"}}
    assert store.check() == []
    store.close()


def test_the_way_back_is_the_copy_that_a_migration_leaves(old: Path) -> None:
    said: list[str] = []
    before = bodies(old)
    SqliteStore.open(old, say=said.append).close()
    (copy,) = (old.parent / "backups").iterdir()
    assert str(copy) in said[0]
    with closing(sqlite3.connect(copy)) as connection:
        assert migrate.schema_of(connection) == 2
    assert bodies(copy) == before
    copy.replace(old)
    SqliteStore.open(old, say=said.append).close()  # and forward again
    with closing(sqlite3.connect(old)) as connection:
        assert migrate.schema_of(connection) == migrate.SCHEMA
