"""A home folder with a real daemon, real processes, and marks that agents leave."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from fairlane.app import STORE_FILE, open_context
from fairlane.engine.context import Context
from fairlane.executors.runner import marked
from fairlane.service import tasks
from tests import holder, warm
from tests.waiting import LIMIT_SECONDS, until

__all__ = ["World", "is_zombie", "until", "wait_for"]
_ENDS = ("succeeded", "failed", "launch_failed", "lost", "throttled", "environment", "released")


def wait_for(seconds: float) -> None:
    """Let a drawn time pass: the moment of a kill is random."""
    end = monotonic() + seconds
    until(lambda: monotonic() >= end)


class World:
    """One home folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.marks = home / "marks"
        self.marks.mkdir(parents=True)
        self.seconds = LIMIT_SECONDS  # that a command may take
        self.warm = True  # whether daemons are forked; their environment shows nothing then
        self.policy('retry.base = "1s"\nretry.jitter = 0\nbreaker.half_open_after = "none"\n')
        self.settings("[worker]\nslots = 10\n")

    def policy(self, text: str) -> None:
        (self.home / "policy.toml").write_text(text, encoding="utf-8")

    def settings(self, text: str) -> None:
        (self.home / "fairlane.toml").write_text(text, encoding="utf-8")

    @contextmanager
    def context(self) -> Iterator[Context]:
        context = open_context(self.home)
        try:
            yield context
        finally:
            context.store.close()

    def add(self, *records: dict[str, Any], again: bool = False) -> None:
        with self.context() as context:
            tasks.add(context, [{"agent": "shell", **record} for record in records], again=again)

    def marking(self, name: str, seconds: float, more: str = "") -> dict[str, Any]:
        """A task that marks its start and its end."""
        mark = self.marks / name
        script = f'echo start $$ >> "{mark}"; {more} sleep {seconds}; echo end $$ >> "{mark}"'
        return {"id": name, "command": ["sh", "-c", script]}

    def waiting(self, name: str, more: str = "") -> dict[str, Any]:
        """A task that marks its start and runs until `let_go`."""
        wait = f'while ! test -e "{self.marks / name}.go"; do sleep 0.1; done;'
        return self.marking(name, 0, more + wait)

    def let_go(self, *names: str) -> None:
        for name in names:
            (self.marks / f"{name}.go").touch()

    def fairlane(self, *words: str) -> dict[str, Any]:
        """One command in a process of its own; its document."""
        return self._command(words)

    def _command(self, words: Sequence[str], *, daemon: bool = False) -> dict[str, Any]:
        line = ["--home", str(self.home), "--json", *words]
        done = warm.run(line, os.environ, Path.cwd(), seconds=self.seconds, daemon=daemon)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def up(self) -> int:
        """A daemon, as `up --detach` starts it, without the cost of its start."""
        words = ("up", "--detach", "--no-server")
        return int(self._command(words, daemon=self.warm)["pid"])

    def run(self, *words: str) -> dict[str, Any]:
        return self.fairlane("run", "--until-idle", *words)

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        until(lambda: is_zombie(pid))

    def freeze(self, pid: int) -> None:
        """Stop a process at a moment when it holds no lock of the store."""
        with self.context() as context, context.store.write():
            os.kill(pid, signal.SIGSTOP)
            until(lambda: {state(each) for each in Path(f"/proc/{pid}/task").iterdir()} == {"T"})

    def statuses(self) -> dict[str, str]:
        """What tests ask over and over: these two columns alone."""
        file = self.home / STORE_FILE
        if not file.exists():
            return {}
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", timeout=30, uri=True)) as store:
            return dict(store.execute("SELECT id, status FROM tasks ORDER BY seq"))

    def attempts(self, task: str) -> list[Any]:
        with self.context() as context, context.store.read() as reading:
            return reading.attempts(task)

    def runner(self, task: str) -> dict[str, Any]:
        """What the runner of a task's last attempt says of itself, once its agent runs."""
        number = len(self.attempts(task)) or 1
        path = self.home / "runs" / task / str(number) / "runner.json"

        def told() -> dict[str, Any] | None:
            try:
                found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return None
            return found if "agent_pid" in found else None

        found: dict[str, Any] = until(told)
        return found

    def started(self, task: str) -> None:
        until((self.marks / task).exists)

    def mark_counts(self) -> Counter[str]:
        lines = [line for file in self.marks.iterdir() for line in file.read_text().splitlines()]
        return Counter(line.split()[0] for line in lines)

    def processes(self) -> list[int]:
        """Processes of any run of this home that are still there."""
        found = []
        for folder in self.home.glob("runs/*/*"):
            found += [pid for pid in marked(str(folder)) if not is_zombie(pid)]
        return found

    def most_in_flight(self) -> int:
        """The most that were in flight at once, by the log."""
        with self.context() as context, context.store.read() as reading:
            events = reading.events(limit=100_000)
        flying, most = 0, 0
        for event in events:
            flying += (event.kind == "leased") - (event.kind in _ENDS) * ("attempt" in event.data)
            most = max(most, flying)
        return most

    def reclaim(self) -> dict[str, Any]:
        with self.context() as context:
            return dict(holder.reclaim(context))

    def sound(self) -> bool:
        with self.context() as context:
            return context.store.check() == []


def is_zombie(pid: int) -> bool:
    """Whether it has ended: all its threads have, so that its files are closed."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return True
    return all(state(each) in "ZX" for each in threads)


def state(folder: Path) -> str:
    """The letter by which the kernel tells what a process or thread does; X: it is gone."""
    try:
        text = (folder / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "X"
    return text.rpartition(")")[2].split()[0]
