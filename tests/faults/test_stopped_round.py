"""A process that is stopped while it looks or plans keeps no other writer waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlane.clock import SystemClock
from fairlane.engine.attempts import lease
from fairlane.engine.context import Context
from fairlane.engine.look.workers import Asker
from fairlane.model.instant import SECOND
from fairlane.model.project import Project
from fairlane.model.record import changed
from fairlane.model.task import Attempt
from fairlane.service import tasks
from fairlane.settings import Settings, host_name
from fairlane.store.sqlite.store import SqliteStore

#: One round whose process stops itself when it comes to a function for the first time.
CHILD = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
from fairlane.clock import SystemClock
from fairlane.engine.attempts import lease
from fairlane.engine.context import Context
from fairlane.engine.look.workers import Asker
from fairlane.settings import Settings
from fairlane.store.sqlite.store import SqliteStore

home, module, name = Path(sys.argv[1]), import_module(sys.argv[2]), sys.argv[3]
real, stopped = getattr(module, name), []

def stops(*arguments):
    if not stopped:
        stopped.append(True)
        os.kill(os.getpid(), signal.SIGSTOP)
    return real(*arguments)

setattr(module, name, stops)
store = SqliteStore.open(home / "fairlane.db")
context = Context(home, store, Settings(), SystemClock(), "child")
print(*[row["task"] for row in lease(context, Asker("child")).documents])
"""


@contextmanager
def stopped_in(home: Path, module: str, name: str) -> Iterator[subprocess.Popen[str]]:
    """A process that does one round, stopped where it calls this function."""
    words = [sys.executable, "-c", CHILD, str(home), f"fairlane.{module}", name]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"{module}.{name} is not called: {status}"
        yield child
    finally:
        child.kill()
        child.communicate()


def went_on(child: subprocess.Popen[str]) -> list[str]:
    """The tasks that it leased once it was continued."""
    os.kill(child.pid, signal.SIGCONT)
    leased, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    return leased.split()


@pytest.fixture
def context(tmp_path):
    store = SqliteStore.open(tmp_path / "fairlane.db", busy_seconds=0.1)
    yield Context(tmp_path, store, Settings(), SystemClock(), "test")
    store.close()


def expired(context: Context, task: str) -> None:
    """An attempt of this host whose lease is over, and of whose process nobody knows."""
    (document,) = lease(context, Asker("box")).documents
    assert document["task"] == task
    with context.store.write() as tx:
        row = tx.attempt(document["lease"])
        assert isinstance(row, Attempt)
        over = context.now() - SECOND
        tx.put_attempts(
            [changed(row, executor="process", host=host_name(), handle=None, expires_at=over)]
        )


@pytest.mark.parametrize(
    ("module", "name"),
    [("engine.round", "_missing"), ("engine.liveness", "state_of"), ("planner.lanes", "plan")],
    ids=["artifacts", "processes", "plan"],
)
def test_others_write_while_a_round_is_stopped(context, tmp_path, module, name):
    tasks.add(context, [{"id": "lost"}])
    expired(context, "lost")
    with context.store.write() as tx:
        tx.put(changed(tx.table(Project)["default"], repo=str(tmp_path)))
    tasks.add(context, [{"id": "reads", "artifacts": ["out.txt"]}, {"id": "first"}])
    with stopped_in(tmp_path, module, name) as child:
        tasks.add(context, [{"id": "second"}])
        (document,) = lease(context, Asker("test", limit=1)).documents
        Path(tmp_path, "out.txt").touch()
        leased = went_on(child)
    assert document["task"] in ("lost", "first")
    assert document["task"] not in leased, "a plan is made again when somebody has written"
    assert "second" in leased


def test_a_shared_commit_leaves_what_it_cannot_ask_about(context):
    tasks.add(context, [{"id": "lost"}])
    expired(context, "lost")
    with context.store.read() as reading:
        before = reading.open_attempts()
    with context.store.sharing():
        assert lease(context, Asker("test")).documents == []
    with context.store.read() as reading:
        assert reading.open_attempts() == before, "neither ended nor renewed"
    lease(context, Asker("test"))
    with context.store.read() as reading:
        assert reading.attempts("lost")[0].outcome == "lost"
