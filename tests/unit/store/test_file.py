"""Which files are whole: what is only in the log counts, what is nowhere does not."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairlane.model.errors import FairlaneError
from fairlane.store.sqlite import file, migrate
from fairlane.store.sqlite.store import SqliteStore
from tests.unit.contexts import TestContext

PAGE = 4096
HEAD, FRAME = 32, 24
TASKS = 40


@pytest.fixture
def store(tmp_path):
    """Everything is in the file, and nothing in its log."""
    store = SqliteStore.open(tmp_path / "used.db")
    add(store, *("p" * 3000 for _ in range(TASKS - 1)))
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.connection.execute("PRAGMA wal_autocheckpoint = 0")
    yield store
    store.close()


@pytest.fixture
def whole_file(store):
    store.close()
    return store.path


@pytest.fixture
def crashed(store, tmp_path):
    """What somebody leaves who is killed: new pages are in the log alone."""
    add(store, "p" * 100_000)
    path = tmp_path / "crashed.db"
    shutil.copy(store.path, path)
    shutil.copy(f"{store.path}-wal", f"{path}-wal")
    return path


def add(store: SqliteStore, *prompts: str) -> None:
    TestContext(store.path.parent, store=store).add(*({"prompt": prompt} for prompt in prompts))


def opened(path: Path, fully: bool = True) -> int:
    """The number of tasks in a store that is file."""
    store = SqliteStore.open(path)
    try:
        store.verify(fully)
        with store.read() as reading:
            return sum(tally.count for tally in reading.tallies())
    finally:
        store.close()


def refused(path: Path, what: str, fully: bool = True) -> str:
    """The hint of the error; nothing was changed."""
    before = files(path)
    with pytest.raises(FairlaneError, match=what) as error:
        opened(path, fully)
    assert error.value.error_code == "corrupt"
    assert files(path) == before
    return error.value.hint


def files(path: Path) -> list[bytes]:
    """The file and its log."""
    found = (path, Path(f"{path}-wal"))
    return [file.read_bytes() for file in found if file.exists()]


def damage(path: Path) -> None:
    """Zeros in place of a page that is used."""
    data = bytearray(path.read_bytes())
    page = max(at for at in range(0, len(data), PAGE) if data[at] == 13)
    data[page : page + PAGE] = bytes(PAGE)
    path.write_bytes(data)


def copy_from_log(path: Path, pages: int) -> int:
    """Begin to copy the log into the file, as a checkpoint does; how many pages it has."""
    log = Path(f"{path}-wal").read_bytes()
    starts = range(HEAD, len(log), FRAME + PAGE)
    newest = {int.from_bytes(log[at : at + 4], "big"): at + FRAME for at in starts}
    with path.open("r+b") as file:
        for number in sorted(newest)[:pages]:
            file.seek((number - 1) * PAGE)
            file.write(log[newest[number] : newest[number] + PAGE])
    return len(newest)


# What is missing


@pytest.mark.parametrize("lost", [1, 100, PAGE - 1, PAGE, 5 * PAGE])
def test_a_file_that_is_cut_is_refused_when_it_is_opened(whole_file, lost):
    os.truncate(whole_file, whole_file.stat().st_size - lost)
    before = files(whole_file)
    with pytest.raises(FairlaneError, match=r"is damaged: .*(missing|malformed)"):
        SqliteStore.open(whole_file)
    assert files(whole_file) == before


def test_pages_that_are_only_in_the_log_are_there(crashed):
    assert opened(crashed) == TASKS


def test_a_checkpoint_that_was_cut_off_leaves_the_file_whole(crashed):
    before, log = files(crashed)
    for copied in range(1, copy_from_log(crashed, 0)):
        crashed.write_bytes(before)
        Path(f"{crashed}-wal").write_bytes(log)
        Path(f"{crashed}-shm").unlink(missing_ok=True)
        copy_from_log(crashed, copied)
        if crashed.stat().st_size > len(before):
            os.truncate(crashed, crashed.stat().st_size - 100)
        assert opened(crashed) == TASKS, copied


def test_a_file_that_lacks_more_than_its_log_has_is_refused(crashed):
    os.truncate(crashed, crashed.stat().st_size - 100)
    refused(crashed, "bytes are missing at its end")


def test_a_file_whose_log_is_gone_in_the_middle_of_a_checkpoint_is_refused(crashed):
    copy_from_log(crashed, 5)
    Path(f"{crashed}-wal").unlink()
    refused(crashed, "malformed|missing")


def test_an_empty_file_beside_a_log_is_refused_and_the_log_stays(crashed):
    crashed.write_bytes(b"")
    assert "There is no backup of it" in refused(crashed, "it is empty")


def test_a_damaged_file_keeps_its_log(crashed):
    damage(crashed)
    refused(crashed, "is damaged")


def test_whoever_reads_and_finds_damage_leaves_the_log_too(crashed):
    with closing(sqlite3.connect(f"{crashed.as_uri()}?immutable=1", uri=True)) as connection:
        asked = "SELECT rootpage FROM sqlite_schema WHERE name = 'decisions'"
        page = connection.execute(asked).fetchone()[0]
    data = bytearray(crashed.read_bytes())
    data[(page - 1) * PAGE] = 0
    crashed.write_bytes(data)
    before = files(crashed)
    store = SqliteStore.open(crashed)
    with pytest.raises(FairlaneError, match="is damaged"), store.read() as reading:
        reading.decisions()
    store.close()
    assert files(crashed) == before


def test_whoever_writes_looks_first(whole_file):
    damage(whole_file)
    before = files(whole_file)
    store = SqliteStore.open(whole_file)
    for _ in range(2):  # it stays refused
        with pytest.raises(FairlaneError, match="is damaged"):
            add(store, "more")
        with pytest.raises(FairlaneError, match="is damaged"), store.sharing():
            pass
    store.close()
    assert files(whole_file) == before


# Large files are not looked at by everybody


def test_a_large_file_is_looked_at_once_an_hour(whole_file, monkeypatch):
    monkeypatch.setattr(file, "SMALL_BYTES", 0)
    mark = Path(f"{whole_file}-checked")
    assert opened(whole_file, fully=False)
    damage(whole_file)
    store = SqliteStore.open(whole_file)
    store.verify(fully=False)
    store.close()
    refused(whole_file, "is damaged", fully=True)
    for hours in (-1, 2):
        at = mark.stat().st_mtime - 3600 * hours
        os.utime(mark, (at, at))
        refused(whole_file, "is damaged", fully=False)
        os.utime(mark)


def test_another_file_in_its_place_is_looked_at(whole_file, monkeypatch, tmp_path):
    monkeypatch.setattr(file, "SMALL_BYTES", 0)
    opened(whole_file)
    other = shutil.copy(whole_file, tmp_path / "other.db")
    damage(other)
    other.replace(whole_file)
    refused(whole_file, "is damaged", fully=False)


def test_a_small_file_has_no_mark(whole_file):
    opened(whole_file)
    assert not Path(f"{whole_file}-checked").exists()


# Backups


def test_the_last_backup_that_is_whole_is_named(whole_file):
    good, bad = (migrate.backup_path(whole_file, name) for name in ("good", "bad"))
    shutil.copy(whole_file, good)
    shutil.copy(whole_file, bad)
    damage(bad)
    os.utime(good, (1, 1))
    damage(whole_file)
    assert f"The last good backup is {good}." in refused(whole_file, "is damaged")
    good.unlink()
    assert "All backups of it are damaged too (1)" in refused(whole_file, "is damaged")
    assert sorted(bad.parent.iterdir()) == [bad]


def test_a_damaged_store_is_not_backed_up(whole_file, tmp_path):
    damage(whole_file)
    store = SqliteStore.open(whole_file)
    with pytest.raises(FairlaneError, match="is damaged"):
        store.backup(tmp_path / "copy.db")
    store.close()
    assert not (tmp_path / "copy.db").exists()
