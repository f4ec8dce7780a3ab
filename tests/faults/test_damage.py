"""A damaged store starts and accepts nothing, and stays as it is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairlane.app import STORE_FILE
from fairlane.cli import main
from fairlane.store.sqlite.store import SqliteStore
from tests.acceptance.commands import ROOT, fairlane
from tests.faults.damage import DAMAGES, build, is_damaged

pytestmark = pytest.mark.slow


class Copies:
    """Homes whose stores are copies of one, with a backup beside each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.whole = folder, folder / "whole"
        self.witness = folder / "witness"
        build(self.whole, self.witness)

    def home(self, name: str, damage: str = "") -> Path:
        home = self.folder / name
        (home / "backups").mkdir(parents=True)
        shutil.copy(self.whole / "policy.toml", home)
        shutil.copy(self.whole / STORE_FILE, home / "backups" / "fairlane-daily-1.db")
        (home / STORE_FILE).write_bytes(self.data(damage))
        return home

    def data(self, damage: str) -> bytes:
        data = bytearray((self.whole / STORE_FILE).read_bytes())
        if damage:
            DAMAGES[damage](data, Random(damage))
        return bytes(data)


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    return Copies(tmp_path_factory.mktemp("copies"))


@pytest.fixture
def call(capsys):
    """Commands in this process: the exit code, the document, and what people read."""

    def call(home: Path, *words: str) -> tuple[int, dict[str, Any], str]:
        code = main.run(["--home", str(home), "--json", *words])
        said = capsys.readouterr()
        return code, json.loads(said.out), said.err

    return call


def content(home: Path) -> dict[str, bytes]:
    """The store and its log, if there is anything in it."""
    found = {file.name: file.read_bytes() for file in home.glob(f"{STORE_FILE}*")}
    return {name: data for name, data in found.items() if not name.endswith("-shm") and data}


def backup_of(home: Path) -> str:
    return str(home / "backups" / "fairlane-daily-1.db")


def test_a_whole_copy_is_worked_on(copies, call):
    home = copies.home("sound")
    findings = call(home, "doctor")[1]["findings"]
    assert [each["level"] for each in findings if each["what"] == "store"] == ["fine"]
    assert call(home, "add", "x")[0] == 0
    assert call(home, "backup")[0] == 0
    code, document, _ = call(home, "run", "--once", "--batch", "1")
    assert (code, document["ended"]) == (0, 1)
    assert copies.witness.exists()
    copies.witness.unlink()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_copy_is_not_worked_on(copies, call, damage):
    home = copies.home(damage, damage)
    before, damaged = content(home), is_damaged(home / STORE_FILE)
    for words in (("add", "x"), ("run", "--once", "--batch", "1"), ("status",), ("backup",)):
        if not damaged and words[0] == "run":  # what SQLite cannot see may be worked on
            continue
        code, document, err = call(home, *words)
        assert "Traceback" not in err
        if damaged:
            assert (words, code) == (words, 1)
            assert document["error"]["code"] == "corrupt", document
            assert backup_of(home) in document["error"]["hint"]
            assert content(home) == before, words
    code, document, err = call(home, "doctor")
    assert "Traceback" not in err
    if damaged:
        found = [each for each in document["findings"] if each["what"] == "store"]
        assert (code, [each["level"] for each in found]) == (1, ["wrong"])
        assert backup_of(home) in found[0]["hint"]
        assert content(home) == before
        assert not copies.witness.exists()
        assert [str(file) for file in (home / "backups").iterdir()] == [backup_of(home)]


def test_most_of_the_copies_are_damaged(copies, tmp_path):
    found = 0
    for damage in DAMAGES:
        file = tmp_path / STORE_FILE
        file.write_bytes(copies.data(damage))
        found += is_damaged(file)
    assert found >= 40


WRITES = (
    "lease",
    "edit t1 --priority 3",
    "cancel t1",
    "retry t1",
    "pause",
    "reclaim",
    "clear --yes",
)


@pytest.mark.parametrize("damage", ["cut by 100", "index page 1"])
@pytest.mark.parametrize("line", WRITES)
def test_no_command_changes_a_damaged_store(copies, call, line, damage):
    home = copies.home(f"{line}, {damage}", damage)
    before = content(home)
    code, document, _ = call(home, *line.split())
    assert (code, document["error"]["code"]) == (1, "corrupt"), document
    assert content(home) == before


@pytest.mark.parametrize("line", ["list", "migrate", "up --no-server", "serve --port 0"])
def test_a_cut_store_is_not_even_opened(copies, call, line):
    """Less than a page is missing: SQLite alone would not mind."""
    home = copies.home(line, "cut by 100")
    before = content(home)
    code, document, _ = call(home, *line.split())
    assert (code, document["error"]["code"]) == (1, "corrupt"), document
    assert "100 of " in document["error"]["message"]
    assert content(home) == before


def test_an_index_that_does_not_fit_is_refused_by_whoever_serves(copies, call):
    home = copies.home("served", "index page 1")
    assert call(home, "list")[0] == 0, "reading goes on where it finds nothing"
    for words in (("up", "--no-server"), ("serve", "--port", "0")):
        code, document, _ = call(home, *words)
        assert (code, document["error"]["code"]) == (1, "corrupt")
    assert not (home / "server.json").exists()


def test_a_daemon_that_does_not_come_up_names_the_backup(copies):
    home = copies.home("detached", "zeros 1")
    said = fairlane("--home", home, "--json", "up", "--detach", "--no-server")
    assert said.code == 1
    error = said.document["error"]
    assert f"the daemon did not come up: {home / STORE_FILE} is damaged" in error["message"]
    assert backup_of(home) in error["hint"]
    assert "daemon.log" in error["hint"]


# A store that is whole is never called damaged


def test_a_store_in_use_is_never_called_damaged(tmp_path):
    """Four write, copy the log into the file, close and are killed, while others look."""
    file = tmp_path / STORE_FILE
    SqliteStore.open(file).close()
    writers = [Opener("write", file) for _ in range(4)]
    lookers = [Opener("look", file) for _ in range(2)]
    try:
        for _ in range(8):
            assert writers[0].hear() == "written"
            writers.pop(0).kill()
            writers.append(Opener("write", file))
        assert [looker.hear() for looker in lookers for _ in range(12)] == ["whole"] * 24
    finally:
        for each in (*writers, *lookers):
            each.kill()
    store = SqliteStore.open(file)
    store.verify()
    assert store.check() == []
    store.close()


class Opener:
    """A process that opens a store over and over, and says what it found."""

    def __init__(self, role: str, file: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.openers", role, str(file)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def hear(self) -> str:
        """The next line; nothing when it has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
