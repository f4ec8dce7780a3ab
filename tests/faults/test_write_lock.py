"""A process that is stopped while it writes: others say who it is, and `down` still ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.places import IMPATIENT, Home, command, refused
from tests.waiting import LIMIT_SECONDS, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

#: A command that stops itself before its first commit after a file is there.
STOPS = """
import os, signal, sys
from pathlib import Path
from fairlane.store.sql.writing import SqlWriting
go, real = Path(sys.argv.pop(1)), SqlWriting.finish

def finish(writing):
    version = real(writing)
    if go.exists():
        go.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)
    return version

SqlWriting.finish = finish
sys.argv[0] = "fairlane"
from fairlane.cli.main import main
main()
"""
#: Has the lock of a home folder, and does not end when it is asked to.
STUBBORN = """
import fcntl, json, os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.chdir(sys.argv[1])
lock = open("daemon.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
open("daemon.json", "w").write(json.dumps({"pid": os.getpid(), "what": "up", "begun": True}))
print(flush=True)
sys.stdin.read()
"""
#: Runs a command with less patience for a daemon that is to end.
HASTY = """
from fairlane.cli.work import daemon
daemon.DOWN_SECONDS = 0.5
from fairlane.cli.main import main
main()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.done("add", "x", "--id", "a")
    return found


@contextmanager
def stopped(home: Home, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of this home that is stopped in the middle of a write."""
    go = home.folder / "go"
    if words[0] != "up":
        go.touch()
    program = [sys.executable, "-c", STOPS, str(go), "--home", str(home.folder), *words]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if words[0] == "up":
            until(lambda: home("doctor").out.count("runs (pid"))
            go.touch()
        until(lambda: os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT))
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_SECONDS)


def test_writers_are_told_who_holds_the_lock_and_what_helps(home: Home) -> None:
    with stopped(home, "pause") as process:
        for words in (["add", "y"], ["lease"], ["clear", "--yes"]):
            said = command(*words, "--home", home.folder, "--json", code=IMPATIENT)
            holder = f"(pid {process.pid}) is stopped and holds the write lock"
            refused(said, 75, "busy", holder, f"kill -CONT {process.pid}")
        assert home.ids() == ["a"], "reading goes on"
        said = home("doctor")
        assert said.code == 1
        (finding,) = [row for row in said.document["findings"] if row["what"] == "lock"]
        assert f"pid {process.pid}) is stopped" in finding["message"]
        assert f"kill -CONT {process.pid}" in finding["hint"]
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait(LIMIT_SECONDS) == 0
    assert home.done("add", "y", "--id", "b")["tasks"][0]["created"]


def test_nobody_waits_long_for_a_stopped_holder(home: Home) -> None:
    """With all the patience of an ordinary command: it sees that the holder is stopped."""
    with stopped(home, "pause") as process:
        refused(home("add", "y"), 75, "busy", f"(pid {process.pid}) is stopped")
        process.kill()
        process.wait(LIMIT_SECONDS)
        assert home.done("add", "y", "--id", "b")["tasks"][0]["created"], "killed: rolled back"
        assert home.done("status")["paused"] == []


def test_down_ends_a_daemon_that_is_stopped_while_it_writes(home: Home) -> None:
    (home.folder / "policy.toml").write_text('lease.ttl = "1s"\n')  # it writes often
    with stopped(home, "up", "--no-server") as process:
        findings = home("doctor").document["findings"]
        (finding,) = [row for row in findings if row["what"] == "daemon"]
        assert finding["level"] == "wrong"
        assert finding["hint"] == f"Let it continue: kill -CONT {process.pid}."
        assert home.done("down")["pid"] == process.pid
        assert process.wait(LIMIT_SECONDS) == 0


def test_down_says_what_it_found_when_the_daemon_does_not_end(home: Home) -> None:
    words = [sys.executable, "-c", STUBBORN, str(home.folder)]
    daemon = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        said = command("down", "--home", home.folder, "--json", code=HASTY)
        message = f"the daemon (pid {daemon.pid}) has not ended yet"
        refused(said, 75, "busy", message, f"kill -KILL {daemon.pid}")
        with stopped(home, "pause") as writer:
            said = command("down", "--home", home.folder, "--json", code=HASTY)
            refused(said, 75, "busy", f"(pid {writer.pid}) holds the write lock", "kill -CONT")
    finally:
        daemon.communicate(timeout=LIMIT_SECONDS)
