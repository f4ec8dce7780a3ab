"""Who holds the write lock of a store."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairlane.store.sqlite import lock
from fairlane.store.sqlite.store import SqliteStore


def test_the_kernel_names_the_process_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "fairlane.db"
    with closing(SqliteStore.open(path)) as store:
        assert lock.holder_of(path) is None
        with store.write():
            holder = lock.holder_of(path)
        assert holder is not None
        assert (holder.pid, holder.stopped) == (os.getpid(), False)
        assert lock.holder_of(path) is None


def test_a_reader_holds_no_write_lock(tmp_path: Path) -> None:
    path = tmp_path / "fairlane.db"
    with closing(SqliteStore.open(path)) as store, store.read():
        assert lock.holder_of(path) is None


def test_a_store_that_was_never_opened_has_no_holder(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    sqlite3.connect(path).close()
    assert lock.holder_of(path) is None
    assert lock.busy(path, "database is locked").hint == "Try again in a moment."


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("/usr/bin/python3 -m fairlane --home /x/y up --no-server", "fairlane up"),
        ("/usr/bin/python3 /opt/bin/fairlane add Rotate-key-sk-123", "fairlane add"),
        ("/opt/bin/fairlane", "fairlane"),
        ("/usr/bin/sqlite3 /home/ann/fairlane.db", "sqlite3"),
    ],
)
def test_a_command_is_shown_without_its_arguments(words: str, shown: str) -> None:
    assert lock._command(words.split()) == shown
