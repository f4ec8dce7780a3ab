"""A store of an older schema stays as it is while a daemon of the version before runs on it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from fairlane.store.sqlite.migrate import SCHEMA, schema_at
from tests.waiting import LIMIT_SECONDS

#: A store of schema 2, as the version before wrote it.
(WRITTEN,) = (Path(__file__).parent / "old_home").glob("*.sql")
#: Has the lock of a home folder, as a daemon has it, until it is told to end.
DAEMON = """
import fcntl, json, os, sys
lock = open("daemon.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
if sys.argv[1] == "named":
    open("daemon.json", "w").write(json.dumps({"pid": os.getpid(), "what": "up", "begun": True}))
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(home):
    """The file of a store that the version before wrote."""
    home.folder.mkdir(mode=0o700)
    path = home.folder / "fairlane.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(WRITTEN.read_text())
        connection.execute("PRAGMA journal_mode = WAL")
    assert schema_at(path) == 2
    return path


@pytest.fixture
def start(home):
    """Starts a process that has the lock of the home folder."""
    processes = []

    def started(*words):
        process = subprocess.Popen(
            [sys.executable, "-c", DAEMON, *words],
            cwd=home.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline()
        return process

    yield started
    for process in processes:
        process.communicate(timeout=LIMIT_SECONDS)


COMMANDS = {
    "add": ("add", "More"),
    "init": ("init",),
    "list": ("list",),
    "migrate": ("migrate",),
    "run": ("run", "--once"),
    "up": ("up", "--no-server"),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_no_command_migrates_below_an_old_daemon(home, store, start, words):
    daemon = start("named")
    error = home.error(*words)
    assert error["code"] == "old_daemon"
    assert error["message"] == f"`fairlane up` of the version before runs (pid {daemon.pid})"
    assert error["hint"] == "`fairlane down` ends it; agents go on. Then do this again."
    assert schema_at(store) == 2
    assert not (home.folder / "backups").exists()


def test_a_daemon_that_nobody_knows_is_one_too(home, store, start):
    start("nameless")
    assert home.error("list")["message"] == "`fairlane up` of the version before runs"
    assert schema_at(store) == 2


def test_another_home_does_not_migrate_its_store(home, store, start, tmp_path):
    start("named")
    error = home.error("--home", tmp_path / "other", "--db", f"sqlite:{store}", "list")
    assert error["code"] == "old_daemon"
    assert schema_at(store) == 2


def test_doctor_says_so(home, store, start):
    start("named")
    findings = {row["what"]: row for row in home.ask("doctor", code=1)["findings"]}
    assert findings["schema"]["level"] == "wrong"
    assert "of the version before runs" in findings["schema"]["message"]
    assert schema_at(store) == 2


def test_down_ends_it_and_leaves_the_store_alone(home, store, start):
    daemon = start("named")
    before = store.read_bytes()
    assert home.ask("down")["pid"] == daemon.pid
    daemon.wait(LIMIT_SECONDS)
    assert store.read_bytes() == before
    assert home.run("list").code == 0
    assert schema_at(store) == SCHEMA


def test_a_store_of_todays_schema_is_used_beside_a_daemon(home, store, start):
    home.run("migrate")
    start("named")
    assert home.ask("add", "More", "--id", "more")["tasks"][0]["created"]


def test_doctor_finds_an_old_daemon_on_a_store_of_todays_schema(home, store, start):
    """Somebody has migrated it beneath the daemon."""
    home.run("migrate")
    daemon = start("named")
    findings = {row["what"]: row for row in home.ask("doctor", code=1)["findings"]}
    assert findings["version"]["level"] == "wrong"
    assert f"(pid {daemon.pid}) is of an older version" in findings["version"]["message"]
    assert findings["version"]["hint"].startswith("`fairlane down`, then `fairlane up --detach`.")


def test_a_server_without_a_daemon_is_noticed_too(home, store):
    program = "import sys; print(flush=True); sys.stdin.read()"
    server = subprocess.Popen(
        [sys.executable, "-c", program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    (home.folder / "server.json").write_text(json.dumps({"url": "http://x", "pid": server.pid}))
    try:
        assert server.stdout is not None
        server.stdout.readline()
        error = home.error("list")
        assert error["message"] == f"`fairlane serve` of the version before runs (pid {server.pid})"
        assert error["hint"] == f"Stop it: kill {server.pid}. Then do this again."
        findings = home.ask("doctor", code=1)["findings"]
        assert any(f"(pid {server.pid})" in row["message"] for row in findings)
        assert schema_at(store) == 2
    finally:
        server.communicate(timeout=LIMIT_SECONDS)
    assert home.run("list").code == 0
    assert schema_at(store) == SCHEMA
