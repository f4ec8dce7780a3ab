"""The world that is tortured: hosts with homes and clocks, one store, daemons, callers, agents."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.daemon.main import Daemon
from fairlane.engine.context import Context, folder_of, run_folder
from fairlane.executors.base import Ended, Gone, Orders, Running
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import Instant, parse_instant
from fairlane.model.task import Attempt, Status, Task
from fairlane.policy.policy import Policy
from fairlane.service.attempt_rights import answer_attempt
from fairlane.service.operations.call import answer, fitting
from fairlane.service.operations.table import OPERATIONS
from fairlane.settings import Settings
from fairlane.simulation.processes import Machine, Script, VirtualProcess
from fairlane.store.base import Filter, Store
from fairlane.testing.torture.agents import script_of
from fairlane.testing.torture.ports import StagedContext, StagedExecutor, StagedStore, Write, named
from fairlane.testing.torture.promises import Broken, Checker, Party, Promise
from fairlane.testing.torture.stage import STORE, Process, Stage, Strand, running_strand

if TYPE_CHECKING:
    from fairlane.testing.torture.stores import Make

MORNING: Instant = parse_instant("2026-01-30T07:00:00Z")
#: The hosts: two have a daemon, people and programs call on all of them.
HOSTS, WITH_DAEMON = ("a", "b", "c"), ("a", "b")
PROJECTS = {"web": {"weight": 3}, "ops": {"weight": 1, "workspaces": ["w1", "w2"]}}
AGENTS = {
    "ada": {"argv": ["ada", "{prompt}"], "parser": "demo", "pool": "east"},
    "bob": {"argv": ["bob", "{prompt}"], "parser": "demo", "pool": "west"},
}
SOURCE = "queue.json"
NO_SURPRISE = Promise(0, "no surprise", "Nothing fails for a reason that has no name.")
#: Errors that are no answer: something is wrong inside.
_WRONG = ("internal", "corrupt", "store")


class World:
    """Everything there is; what is chosen happens by its methods."""

    def __init__(self, seed: int, make: Make, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self.stage = Stage(MORNING, HOSTS)
        self.machines = {host: Machine(self.stage.clock) for host in HOSTS}
        self.homes = {host: folder / host for host in HOSTS}
        self.daemons: dict[str, Daemon] = {}
        self.leases: list[tuple[str, str]] = []  # (lease, executor), as they were given out
        self.ids: list[str] = []  # of tasks, as they were added
        self.answers: Counter[str] = Counter()  # "ok" and codes of refusals
        self.said: list[str] = []
        self.broken: Broken | None = None
        self.tame = False
        self.away: tuple[str, float] = ("", 0.0)  # a fault of the store, and until when
        self._marks, self._known = 0, set[str]()
        self._settings = {host: _settings(host, folder) for host in HOSTS}
        self._open: dict[Process, list[Store]] = {}
        self._contexts: dict[str, Context] = {}  # by process
        (folder / "artifacts").mkdir()
        for home in self.homes.values():
            home.mkdir()
            (home / "artifacts").symlink_to(folder / "artifacts")  # as on a shared disk
        self.write_source([])
        self.make = make(folder)
        self.write_rules("")
        self.store = self.make()
        self.checker = Checker(self.store, self._party, self)
        self._prepare()

    def close(self) -> None:
        """End everything."""
        self.stage.close()
        self._shut()
        self.store.close()

    # Processes

    def context(self, process: Process, actor: str = "ann") -> Context:
        """What a process on a host works with."""
        store, host = self.make(), process.host
        self._open.setdefault(process, []).append(store)
        staged = StagedStore(store, process, self._committed)
        context = StagedContext(
            self.homes[host], staged, self._settings[host], process.clock, actor
        )
        context.executors["process"] = StagedExecutor(
            self.machines[host], self._script, process, self._launched
        )
        self._contexts[process.name] = context
        return context

    def ask(
        self, name: str, host: str, operation: str, arguments: Mapping[str, object]
    ) -> Process | None:
        """A process that calls an operation, as a command does; it has not run yet."""

        def work(process: Process) -> None:
            self._answered(process, name, operation, dict(arguments))

        return self._start(name, host, work)

    def call(
        self, name: str, host: str, lease: str, operation: str, arguments: Mapping[str, object]
    ) -> Process | None:
        """The attempt of a lease calls an operation with its token."""

        def work(process: Process) -> None:
            given = dict(arguments)
            if "lease" in OPERATIONS[operation].takes:
                given["lease"] = lease
            self._counted(lambda: answer_attempt(self.context(process), lease, operation, given))

        return self._start(name, host, work)

    def up(self, host: str) -> Process | None:
        """A daemon begins, unless one is there."""

        def work(process: Process) -> None:
            context = self.context(process)
            say = partial(self._say, host)
            daemon = Daemon(context, "up", say, threads=process.threads, spawn=process.spawn)
            self.daemons[host] = daemon
            daemon.run()

        return self._start(f"up-{host}", host, work)

    def _start(self, name: str, host: str, work: Callable[[Process], None]) -> Process | None:
        if name in self.stage.processes:
            return None
        return self.stage.start(name, host, work)

    def _answered(
        self, process: Process, actor: str, operation: str, arguments: dict[str, object]
    ) -> None:
        context = self.context(process, actor)
        called = OPERATIONS[operation]

        def perform() -> Mapping[str, object]:
            try:
                answered = answer(context, operation, **fitting(called, arguments))
            except FairlaneError as error:
                self._told(operation, arguments, {"code": error.error_code})
                raise
            self._told(operation, arguments, answered)
            return answered

        self._counted(perform)

    def _counted(self, perform: Callable[[], object]) -> None:
        try:
            perform()
            self.answers["ok"] += 1
        except FairlaneError as error:
            if error.error_code in _WRONG:
                raise
            self.answers[error.error_code] += 1

    # What happens

    def go(self, strand: Strand, order: str = "") -> None:
        """One thread goes on to its next gate."""
        fault, until = self.away
        if not order and self.stage.clock.elapsed < until and strand.gate in _touched(fault):
            order = fault
        process = strand.process
        errors = self.stage.go(strand, order)
        self._ended(process, errors)

    def kill(self, process: Process) -> None:
        """A process ends where it stands."""
        self._ended(process, self.stage.kill(process))

    def running(self) -> list[tuple[Machine, Path]]:
        """The agents that run, as machine and run folder."""
        return [
            (machine, run)
            for machine in self.machines.values()
            for run, attempt in machine.attempts.items()
            if attempt.state == Running()
        ]

    @property
    def waiting(self) -> int:
        """How many tasks are queued."""
        with self.store.read() as reading:
            tallies = reading.tallies()
        return sum(tally.count for tally in tallies if tally.status is Status.QUEUED)

    def failed(self) -> list[str]:
        """Tasks that can be retried: parked ones, and those that wait after a failure."""
        with self.store.read() as reading:
            rows = reading.listing(Filter(status=(Status.PARKED,)), limit=20)
            rows += reading.listing(Filter(wait="backoff"), limit=20)
        return [row.task.id for row in rows]

    def finished(self) -> list[str]:
        """Tasks that are over, the newest last."""
        with self.store.read() as reading:
            rows = reading.listing(Filter(status=(Status.DONE, Status.CANCELED)), limit=500)
        return [row.task.id for row in rows[-20:]]

    def write_rules(self, text: str) -> None:
        """The policy file of every host."""
        for home in self.homes.values():
            self._write(home / "policy.toml", text)

    def write_source(self, entries: list[dict[str, object]]) -> None:
        """The file that the daemon of host `a` follows."""
        text = json.dumps({"schemaVersion": 1, "entries": entries}, indent=1)
        self._write(self.folder / SOURCE, text)

    def _write(self, path: Path, text: str) -> None:
        """A new file in the place of the old one, with a mark of its own."""
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(text, encoding="utf-8")
        self._marks += 1
        os.utime(beside, ns=(self._marks * 10**9, self._marks * 10**9))
        beside.replace(path)

    # What is watched

    def _committed(self, process: Process, writes: list[Write]) -> None:
        for attempt in named(writes, "attempts"):
            if attempt.lease not in self._known:
                self._known.add(attempt.lease)
                self.leases.append((attempt.lease, attempt.executor))
        self.ids += [placed.task.id for placed in named(writes, "insert")]
        clock = self.stage.hosts[STORE]
        with self._noted():
            self.checker.committed(process.name, writes, self.stage.clock.now(), clock.now())

    def look_fully(self, settled: bool = False) -> None:
        """Compare everything; `settled`: what can end has ended."""
        plain = Context(self.homes["c"], self.store, self._settings["c"], self.stage.clock, "eye")
        with self._noted():
            self.checker.full([plain], settled)
            if settled:
                workers = tuple(self._settings[host].worker.name for host in WITH_DAEMON)
                now = self.stage.hosts[STORE].now()
                self.checker.settled(now, f"up-{WITH_DAEMON[0]}", workers)

    def state_of(self, attempt: Attempt) -> str:
        """What is really there of an attempt: `runs`, `result`, `gone`; empty: not known."""
        if attempt.executor == "none" or attempt.host is None:
            return ""
        there = self._process(attempt)
        if there is None or there.state == Gone():
            return "gone"
        return "runs" if there.state == Running() else "result"

    def is_told(self, attempt: Attempt) -> bool:
        """Whether its process has ended, or was told to stop."""
        there = self._process(attempt)
        return there is None or there.state != Running() or there.told

    def has_passed(self, attempt: Attempt, number: int) -> bool:
        """Whether the process of a check has ended well."""
        there = self._process(attempt, number)
        ended = there.state if there is not None else None
        return isinstance(ended, Ended) and ended.exit.exit_code == 0

    def _process(self, attempt: Attempt, check: int | None = None) -> VirtualProcess | None:
        """The process of an attempt, or of one of its checks."""
        run, host = run_folder(self.homes[attempt.host or ""], attempt), attempt.host or ""
        folder = run if check is None else folder_of(run, check, attempt.checks[check])
        return self.machines[host].attempts.get(folder)

    def missing(self, task: Task) -> list[str]:
        """The artifacts of a task that are not there."""
        folder = self.folder / "artifacts" / (task.parent or "")
        return [name for name in task.artifacts if not (folder / name).exists()]

    def _party(self, name: str) -> Party:
        """By which rules a process goes now."""
        context = self._contexts[name]
        process = self.stage.processes.get(name)
        daemon = name.startswith("up-")
        agents = frozenset(context.settings.known_agents())
        host = process.host if process is not None else ""
        strand = running_strand()
        if strand is None or (strand.policy is None and not strand.policy_broken):
            policy, broken = _read_policy(context), False
        else:
            policy, broken = strand.process.policy, strand.policy_broken
            policy = policy if broken else strand.policy
        return Party(policy, host, daemon, broken, agents)

    def _told(
        self, operation: str, arguments: Mapping[str, object], document: Mapping[str, object]
    ) -> None:
        with self._noted():
            self.checker.answered(operation, arguments, document)

    def _launched(self, process: Process, orders: Orders) -> None:
        with self._noted():
            self.checker.launched(process.name, orders)

    def last_event(self) -> int:
        """The number of the newest event of the log."""
        with self.store.read() as reading:
            newest = reading.events(0, 1, last=True)
        return newest[-1].number if newest else 0

    def _noted(self) -> _Noted:
        return _Noted(self)

    def _ended(self, process: Process, errors: list[BaseException]) -> None:
        if process.name not in self.stage.processes:
            for store in self._open.pop(process, ()):
                with suppress(Exception):
                    store.close()
        unseen, self.stage.unseen[:] = list(self.stage.unseen), []
        for error in (*errors, *unseen):
            if not _is_answer(error):
                self.surprise(f"{process.name} met {type(error).__name__}: {error}", error)

    def surprise(self, sentence: str, error: BaseException | None = None) -> None:
        """Something that no promise names, and that must not happen either."""
        if self.broken is None:
            self.broken = Broken(NO_SURPRISE, sentence)
            self.broken.__cause__ = error

    def _say(self, host: str, message: str) -> None:
        self.said.append(f"{host}: {message}")
        if "This is a bug" in message:
            self.surprise(f"the daemon of {host} says: {message}")

    def _script(self, orders: Orders) -> Script:
        return script_of(self.seed, orders, tame=self.tame)

    def _shut(self) -> None:
        for stores in self._open.values():
            for store in stores:
                with suppress(Exception):
                    store.close()

    def _prepare(self) -> None:
        """Projects, before anything can go wrong."""
        for name, values in PROJECTS.items():
            process = self.ask("init", "c", "project_add", {"name": name, "values": values})
            assert process is not None
            while process.strands:
                self.go(process.strands[0])


class _Noted:
    """A broken promise is kept for the stage: nobody who is watched may catch it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __enter__(self) -> None:
        """Begin to look."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Broken):
            self._world.broken = self._world.broken or error
            return True
        return False


def _read_policy(context: Context) -> Policy | None:
    with suppress(FairlaneError):
        return Policy.load(context.policy_file)
    return None


def _is_answer(error: BaseException) -> bool:
    """Whether it is a refusal, or the store's absence."""
    return isinstance(error, FairlaneError) and error.error_code not in _WRONG


def _touched(fault: str) -> tuple[str, ...]:
    """The gates that a fault of the store shuts."""
    if fault == "unreachable":
        return ("read", "write", "share", "verify")
    return ("write", "share")


def _settings(host: str, folder: Path) -> Settings:
    labels = {"a": ["gpu"], "b": [], "c": []}[host]
    table: dict[str, object] = {
        "agent": "ada", "agents": AGENTS, "worker": {"name": f"box-{host}", "labels": labels},
    }  # fmt: skip
    if host == "a":
        source = {"type": "queue.json", "path": str(folder / SOURCE), "every": "5m"}
        table["source"] = [{**source, "write_back": True, "project": "web"}]
    return Settings.parse(table)
