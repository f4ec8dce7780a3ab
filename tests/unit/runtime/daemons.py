"""A daemon in virtual time: memory store, fake executor, no threads, no processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TypeVar

from fairlane.clock import VirtualClock
from fairlane.daemon.main import Daemon, RunOptions
from fairlane.engine.context import Context
from fairlane.executors.base import Exit, Orders
from fairlane.model.instant import parse_instant
from fairlane.model.task import Attempt
from fairlane.service import tasks
from fairlane.service.reports import listing
from fairlane.settings import Settings
from fairlane.simulation.processes import Machine, Script, VirtualExecutor
from fairlane.store.memory.store import MemoryStore

T = TypeVar("T")
NOON = parse_instant("2026-01-30T12:00:00Z")
FAILS = Script(exit=Exit(exit_code=1))


class InlineThreads(Executor):
    """Runs what it is given at once, in the caller's thread."""

    def __init__(self, size: int = 1, name: str = "") -> None:
        self.closed = False

    def submit(self, work: Callable[..., T], /, *args: object, **kwargs: object) -> Future[T]:
        assert not self.closed
        future: Future[T] = Future()
        try:
            future.set_result(work(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.closed = True


def inline(work: Callable[[], None], name: str) -> None:
    """Run it at once."""
    work()


class World:
    """One home folder and one host, which daemons come to and leave."""

    def __init__(self, home: Path, settings: dict[str, object] | None = None) -> None:
        self.home = home
        self.clock = VirtualClock(NOON)
        self.host = Machine(self.clock)
        self.scripts: dict[str, Script] = {}
        self.said: list[str] = []
        self.store = MemoryStore()
        self.settings = Settings.parse({"worker": {"name": "box"}} | (settings or {}))
        self.context = self.new_context()

    def new_context(self) -> Context:
        """As another process has it: the same store, the same host."""
        store = MemoryStore(beside=self.store)
        context = Context(self.home, store, self.settings, self.clock, "ann")
        context.executors["process"] = VirtualExecutor(self.host, self._script)
        return context

    def policy(self, text: str) -> None:
        """Write the policy file."""
        (self.home / "policy.toml").write_text(text, encoding="utf-8")

    def add(self, *ids: str, **fields: object) -> None:
        """Add tasks that run a command."""
        records = [{"id": name, "command": ["true"], **fields} for name in ids]
        tasks.add(self.context, records)

    def daemon(
        self, what: str = "run", tick: Callable[[Daemon], None] = lambda daemon: None
    ) -> Daemon:
        """A daemon of this home."""
        context = self.new_context()
        return Daemon(context, what, self.said.append, tick, InlineThreads, inline)

    def run(self, **options: object) -> Daemon:
        """Schedule until there is nothing more to do."""
        daemon = self.daemon()
        daemon.run(RunOptions(until_idle=True, **options))  # type: ignore[arg-type]
        return daemon

    def up(self, seconds: float, how: str = "leave") -> Daemon:
        """A daemon that is told to end after this long."""
        daemon = self.daemon("up")
        self.clock.after(seconds, lambda: daemon.stop(how))
        daemon.run()
        return daemon

    def launched(self) -> list[str]:
        """The tasks of all launches, in order."""
        return [orders.folder.parent.name for orders in self.host.launched]

    def statuses(self) -> dict[str, str]:
        """The stored status of every task."""
        return {row["id"]: row["status"] for row in listing.list_tasks(self.context)["tasks"]}

    def attempts(self, task: str) -> list[Attempt]:
        """Its attempts, oldest first."""
        with self.store.read() as reading:
            return list(reading.attempts(task))

    def events(self, kind: str) -> list[int]:
        """When events of a kind happened, in seconds after noon."""
        with self.store.read() as reading:
            return [
                round((event.at - NOON) / 1e6) for event in reading.events() if event.kind == kind
            ]

    def _script(self, orders: Orders) -> Script:
        task, run = orders.folder.parent.name, orders.folder.name
        return self.scripts.get(f"{task}/{run}") or self.scripts.get(task, Script())
