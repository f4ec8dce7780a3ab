"""Bad places and broken files: a clear error or the right answer, never damage."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from fairlane.store.sqlite.migrate import SCHEMA
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.places import (
    IMPATIENT,
    Home,
    command,
    for_reading_only,
    held,
    refused,
    small_disk,
)

pytestmark = pytest.mark.slow
PROMPT = "x" * 100_000


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    home.done("add", "first", "--id", "a")
    return home


def sound(home: Home) -> None:
    store = SqliteStore.open(home.file)
    try:
        assert store.check() == []
    finally:
        store.close()


def files(folder: Path) -> dict[str, bytes]:
    """Every byte under a folder, but for what readers share."""
    found = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.name: file.read_bytes() for file in found if not file.name.endswith("-shm")}


# A disk that is full


def test_a_full_disk_takes_nothing_by_half_and_loses_nothing(tmp_path):
    with small_disk(tmp_path / "disk", "2m") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 400_000)
        home = Home(disk / "home")
        accepted = []
        for number in range(40):
            said = home("add", "--id", f"t{number}", "-", text=PROMPT)
            if said.code:
                break
            accepted.append(f"t{number}")
        refused(said, 75, said.document["error"]["code"], str(home.file))
        assert said.document["error"]["code"] in ("disk_full", "io_error")
        assert accepted
        ballast.unlink()
        assert home.ids() == accepted
        sound(home)
        assert home.done("add", "--id", "more", "-", text="y")["tasks"][0]["created"]


def test_a_file_that_may_not_grow_loses_nothing(home):
    before = home.ids()
    arguments = ("add", PROMPT, "--id", "large", "--home", home.folder, "--json")
    said = command(*arguments, file_bytes=65536)
    assert said.document["error"]["code"] in ("disk_full", "io_error")
    refused(said, 75, said.document["error"]["code"], str(home.file))
    assert home.ids() == before
    sound(home)
    assert command(*arguments).code == 0
    assert home.ids() == [*before, "large"]


def test_a_full_disk_at_first_use_leaves_nothing_that_cannot_be_used(tmp_path):
    with small_disk(tmp_path / "disk", "48k") as disk:
        home = Home(disk / "home")
        said = home("add", "x")
        assert said.document["error"]["code"] in ("disk_full", "io_error")
        refused(said, 75, said.document["error"]["code"])
        shutil.copytree(home.folder, tmp_path / "elsewhere")
    moved = Home(tmp_path / "elsewhere")
    assert moved.done("add", "x")["tasks"][0]["created"]
    sound(moved)


# A place for reading only


def test_a_folder_that_cannot_be_written_says_so(tmp_path):
    with small_disk(tmp_path / "disk", "8m") as disk:
        home = Home(disk / "home")
        home.done("add", "x", "--id", "a")
        for_reading_only(disk)
        before = files(disk)
        for verb in (("add", "y"), ("lease",), ("reclaim",), ("pause",)):
            refused(home(*verb), 1, "read_only", "cannot be written", "permissions")
        nowhere = Home(disk / "new")
        refused(nowhere("add", "y"), 2, "invalid", "no home folder")
        assert files(disk) == before


# A file that another process holds


def test_a_busy_store_says_so_and_never_looks_like_nothing_to_do(home):
    with held(home.file):
        for verb in (["lease"], ["add", "y"], ["reclaim"], ["lease", "--wait", "1s"]):
            said = command(*verb, "--home", home.folder, "--json", code=IMPATIENT)
            refused(said, 75, "busy", "is busy", "Try again")
        said = command("list", "--home", home.folder, "--json", code=IMPATIENT)
        assert [row["id"] for row in said.document["tasks"]] == ["a"], "reading goes on"
    assert home.done("lease")["leases"][0]["task"] == "a"


# A file that is damaged


def damage_header(file: Path) -> None:
    file.write_bytes(b"SQLite farmat 3\x00" + file.read_bytes()[16:])


def damage_pages(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 64] = bytes(each ^ 0xA5 for each in data[start : start + 64])
    file.write_bytes(data)


def damage_first_page(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[100:140] = b"\xff" * 40
    file.write_bytes(data)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:10_000])


def text(file: Path) -> None:
    file.write_text("These are my notes.\n" * 300, encoding="utf-8")


def emptied(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize(
    "damage", [damage_header, damage_pages, damage_first_page, cut, text, emptied]
)
def test_a_damaged_file_starts_nothing_and_is_left_as_it_is(home, damage):
    backup = home.folder / "backups" / "fairlane-daily-1.db"
    backup.parent.mkdir()
    shutil.copy(home.file, backup)
    damage(home.file)
    before = files(home.folder)
    for verb in (("lease",), ("add", "y"), ("list",), ("status",), ("plan",)):
        refused(home(*verb), 1, "corrupt", f"{home.file} is damaged", str(backup))
    assert files(home.folder) == before
    shutil.copy(backup, home.file)  # as the hint says
    assert home.ids() == ["a"]


def test_without_a_backup_a_damaged_file_says_that(home):
    text(home.file)
    refused(home("lease"), 1, "corrupt", "is damaged", "There is no backup")


@pytest.mark.parametrize("column", ["facts", "body"])
def test_a_row_that_is_not_ours_is_damage(home, column):
    connection = sqlite3.connect(home.file)
    connection.execute(f"UPDATE tasks SET {column} = '{{\"title'")
    connection.commit()
    connection.close()
    refused(home("lease"), 1, "corrupt", "not JSON")
    refused(home("show", "a"), 1, "corrupt", "not JSON")


def test_an_empty_log_beside_a_store_is_nothing(home):
    Path(f"{home.file}-wal").write_bytes(b"")
    assert home.ids() == ["a"]
    Path(f"{home.file}-wal").write_bytes(b"junk" * 2000)
    assert home.ids() == ["a"]
    sound(home)


# A file of somebody else


def test_a_newer_store_is_refused_and_left_as_it_is(home):
    connection = sqlite3.connect(home.file)
    connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    before = files(home.folder)
    for verb in (("lease",), ("list",), ("add", "y")):
        refused(home(*verb), 1, "schema_newer", f"has schema {SCHEMA + 1}", "Upgrade Fairlane")
    assert files(home.folder) == before


@pytest.mark.parametrize("version", [0, SCHEMA, SCHEMA + 5])
def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path, version):
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    connection = sqlite3.connect(home.file)
    connection.execute("CREATE TABLE tasks (id TEXT, status TEXT)")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    before = files(home.folder)
    for verb in (("lease",), ("list",), ("add", "y")):
        refused(home(*verb), 1, "foreign_store", "is not a store of Fairlane", "--db sqlite:")
    assert files(home.folder) == before


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    home = Home(tmp_path / "home")
    home.file.mkdir(parents=True)
    refused(home("add", "x"), 75, "unreachable", "cannot be opened")


# A policy that breaks while work goes on


@pytest.mark.parametrize("broken", ["caps.all = 2.5", "[caps", "cups.all = 3", "\xff\xfe"])
def test_a_broken_policy_refuses_writes_and_answers_reads(home, broken):
    policy = home.folder / "policy.toml"
    policy.write_text("caps.all = 1\n", encoding="utf-8")
    lease = home.done("lease")["leases"][0]["lease"]
    home.done("add", "second", "--id", "b")
    policy.write_text(broken, encoding="latin-1")
    for verb in (("lease",), ("add", "y"), ("complete", lease), ("release", lease), ("reclaim",)):
        said = home(*verb)
        assert said.code == 2, said
        assert str(policy) in said.document["error"]["message"]
        assert said.document["error"]["hint"]
    for verb in (("list",), ("status",), ("plan",), ("show", "b"), ("why", "b")):
        said = home(*verb)
        assert said.code == 0, said
        assert "the last good policy is shown" in said.err, verb
    assert "1 of 1" in str(home("plan").document), "the cap of the last good policy"
    policy.write_text("caps.all = 2\n", encoding="utf-8")
    assert home.done("lease")["leases"][0]["task"] == "b"
    assert home.done("complete", lease)["status"] == "done"
