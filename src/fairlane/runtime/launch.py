"""Launch: a durable lease becomes a process: workspace, environment, command line, runner."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor as Threads
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from fairlane import workspaces
from fairlane.agents.contract import Agent, agents, given_environment
from fairlane.agents.parsers import parser_for
from fairlane.careful_files import make_folder
from fairlane.clock import Clock, Waker
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Ending, Report
from fairlane.engine.port import LocalPort, Port
from fairlane.executors import sandbox
from fairlane.executors.base import After, Calls, Executor, Handle, Orders, patterns, socket_of
from fairlane.executors.runfiles import make_run, put
from fairlane.executors.sandbox.view import Visible, config_folders
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.errors import FairlaneError, Shortage
from fairlane.model.event import Happening
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.sandbox import NO_SANDBOX
from fairlane.model.task import Check, Task
from fairlane.runtime.shortage import shortage
from fairlane.settings import Settings
from fairlane.workspaces.place import Place, place_of

#: How many launches are prepared at once: a slow worktree delays no other.
LAUNCHES_AT_ONCE = 4
#: What a failed launch counts as, by the code of its error; every other one is the task's own.
_COUNTS_AS = {
    "stopped": Happening.STOPPED,
    "paused": Happening.RELEASED,
    "taken": Happening.RELEASED,
    "closed": Happening.RELEASED,
    Shortage.code: Happening.ENVIRONMENT,
    **dict.fromkeys(workspaces.CARRY_PROBLEMS, Happening.FAILED),
}

#: Makes a thread pool of a size and a name.
ThreadsOf = Callable[[int, str], Threads]


@dataclass(frozen=True, slots=True)
class Host:
    """What attempts on this host need: folders, settings, the engine, the executor."""

    home: Path
    settings: Settings
    clock: Clock
    port: Port
    executor: Executor
    executor_named: Callable[[str], Executor]
    agents: Mapping[str, Agent]
    threads: ThreadsOf
    db: str | None = None  # the store's URL, where a caller named one
    after: After | None = None  # what runs at the end of each process, unless a daemon watches

    def executor_of(self, lease: LocalLeaseDocument) -> Executor:
        """The executor that launched an attempt; `Invalid`: its package was removed."""
        return self.executor_named(lease["executor"])

    def reader_of(self, lease: LocalLeaseDocument) -> Agent:
        """Whose output is read; of an agent that has left the settings only the exit code is."""
        return self.agents.get(lease["agent"]) or self.agents["shell"]


def host_of(
    context: Context, threads: ThreadsOf = ThreadPoolExecutor, after: After | None = None
) -> Host:
    """The host of a context."""
    settings = context.settings
    return Host(
        context.home, settings, context.clock, LocalPort(context), context.executor(),
        context.executor, agents(settings), threads, context.db, after,
    )  # fmt: skip


class LaunchFailed(FairlaneError):
    """An attempt could not be started."""

    code = "launch_failed"

    @property
    def ending(self) -> Ending:
        """How the attempt ends."""
        happening = _COUNTS_AS.get(self.error_code, Happening.LAUNCH_FAILED)
        if self.error_code not in workspaces.CARRY_PROBLEMS:
            return Ending(happening, Report(detail=self.message))
        return Ending(happening, Report(detail=f"{self.message}. {self.hint}"), park=True)


@dataclass(frozen=True, slots=True)
class Launched:
    """What became of one launch."""

    lease: LocalLeaseDocument
    outcome: Handle | Ending


def is_agent(lease: LocalLeaseDocument, handle: Handle) -> bool:
    """Whether a launch has started the agent; else it is the setup of its workspace."""
    return handle.run == Path(lease["run"])


class WorkThreads:
    """A pool queues work before it starts a thread for it: work without one is not given again."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self.stranded = False  # whether work is queued that no thread may ever take

    def submit(self, work: Callable[..., None], *arguments: object) -> None:
        """Run this in a thread, now or when one can be had."""
        try:
            self._threads.submit(work, *arguments)
        except RuntimeError as error:
            if "new thread" not in str(error):
                raise
            self.stranded = True

    def start_stranded(self) -> None:
        """Ask for a thread again; `OSError`: it still cannot be had."""
        try:
            self._threads.submit(_nothing)  # whatever takes this takes the rest too
        except RuntimeError as error:
            raise OSError(str(error)) from error
        self.stranded = False

    def close(self) -> None:
        """Finish what has begun."""
        self._threads.shutdown(wait=True)


def _nothing() -> None:
    pass


class Launcher:
    """Starts leases in threads, with a pause between two of them where the policy asks for it."""

    def __init__(self, host: Host, waker: Waker) -> None:
        self._host, self._waker = host, waker
        self._threads = WorkThreads(host.threads(LAUNCHES_AT_ONCE, "launch"))
        self._due: list[tuple[float, LocalLeaseDocument]] = []  # when each is to start
        self._launched: SimpleQueue[Launched] = SimpleQueue()
        self._preparing: dict[str, LocalLeaseDocument] = {}

    @property
    def busy(self) -> bool:
        """Whether any launch has not been taken out yet."""
        return bool(self._due or self._preparing)

    def begin(self, leases: Sequence[LocalLeaseDocument], pause: float = 0.0) -> None:
        """Start these one after another, `pause` seconds apart."""
        now = self._host.clock.monotonic()
        self._due += [(now + number * pause, lease) for number, lease in enumerate(leases)]
        self.start_due()

    def due_in(self) -> float:
        """Seconds until the next start."""
        first = min((at for at, _ in self._due), default=float("inf"))
        return max(0.0, first - self._host.clock.monotonic())

    def start_due(self) -> None:
        """Start those whose time has come, unless something forbids it by now."""
        if self._threads.stranded:
            self._threads.start_stranded()
        now = self._host.clock.monotonic()
        due = [(at, lease) for at, lease in self._due if at <= now]
        blocked = self._host.port.blocked([lease["lease"] for _, lease in due]) if due else {}
        for entry in due:
            lease = entry[1]
            block = blocked.get(lease["lease"])
            self._due.remove(entry)
            self._preparing[lease["lease"]] = lease
            if block is None:
                self._threads.submit(self._launch, lease)
            else:
                self._report(lease, LaunchFailed(block.reason, code=block.code).ending)

    @property
    def waiting(self) -> dict[str, None]:
        """Leases that have no process yet, in the order of their starts."""
        return dict.fromkeys([*self._preparing, *(lease["lease"] for _, lease in self._due)])

    def take(self) -> Iterator[Launched]:
        """What became of launches since the last call, one by one."""
        while not self._launched.empty():
            launched = self._launched.get()
            self._preparing.pop(launched.lease["lease"], None)
            yield launched

    def close(self) -> None:
        """Finish what is being prepared, and give back what has not begun."""
        self._threads.close()
        closed = LaunchFailed("the worker ended before its start", code="closed")
        for _, lease in self._due:
            self._report(lease, closed.ending)
        self._due.clear()

    def _report(self, lease: LocalLeaseDocument, outcome: Handle | Ending) -> None:
        self._launched.put(Launched(lease, outcome))
        self._waker.set()

    def _launch(self, lease: LocalLeaseDocument) -> None:
        outcome: Handle | Ending
        try:
            outcome = launch(self._host, lease)
        except LaunchFailed as error:
            outcome = error.ending
        except Exception as error:  # a bug here must not hold the lease for ever
            outcome = LaunchFailed(f"{type(error).__name__}: {error}").ending
        self._report(lease, outcome)


def launch(host: Host, lease: LocalLeaseDocument, is_set_up: bool = False) -> Handle:
    """Start one attempt now: the setup of its workspace where that is due, else its agent.

    The handle of a setup has a run folder of its own. `is_set_up`: it has just run.
    """
    try:
        agent, place = _known_agent(host, lease), _prepared(host, lease)
        if lease["problem"]:
            raise LaunchFailed(lease["problem"])
        if lease["setup"] and not is_set_up:
            from fairlane.runtime import setup

            if (begun := setup.begin(host, lease, place)) is not None:
                return begun
        return host.executor.launch(_orders(host, lease, agent, place))
    except (FairlaneError, OSError) as error:
        raise launch_failure(error, lease) from error


def launch_failure(error: FairlaneError | OSError, lease: LocalLeaseDocument) -> LaunchFailed:
    """What an error before the start of an agent means for its attempt."""
    if isinstance(error, LaunchFailed):
        return error
    if isinstance(error, FairlaneError):
        code = error.error_code if error.error_code in _COUNTS_AS else None
        return LaunchFailed(error.message, error.hint, code)
    missing = shortage(error, Path(lease["run"]))
    return LaunchFailed(missing or str(error), code=Shortage.code if missing else None)


def _known_agent(host: Host, lease: LocalLeaseDocument) -> Agent:
    agent = host.agents.get(lease["agent"])
    if agent is None:
        name = lease["agent"]
        raise LaunchFailed(f"agent {name} is not known here", "Name it in fairlane.toml.")
    return agent


def _prepared(host: Host, lease: LocalLeaseDocument) -> Place:
    starts = [(start["task"], start["head"]) for start in lease["start"]]
    return workspaces.prepare(*whose(host, lease), starts=starts)


def _orders(host: Host, lease: LocalLeaseDocument, agent: Agent, place: Place) -> Orders:
    run = make_run(Path(lease["run"]))
    put(run / "prompt.md", lease["prompt"])
    settings = host.settings
    env, calls = _environment(host, agent, lease), _calls(host, lease, run)
    orders = Orders(
        folder=run,
        argv=tuple(lease["argv"]),
        cwd=place.path,
        env={
            **env,
            **_fairlane_environment(host, lease, place.path),
            "FAIRLANE_SOCKET": str(calls.socket),
        },
        stdin=lease["prompt"] if agent.stdin else None,
        stop=agent.stop,
        grace=agent.grace,
        final=parser_for(agent).FINAL,
        timeout=lease["timeout"],
        silence=lease["silence"],
        max_bytes=settings.log.max_bytes,
        mask=patterns(settings.log.mask, {**os.environ, **env}),
        after=host.after,
        calls=calls,
    )
    return _confined(host, agent, lease, orders, place.reads)


def _confined(
    host: Host, agent: Agent, lease: LocalLeaseDocument, orders: Orders, reads: Sequence[Path]
) -> Orders:
    """The orders in the sandbox of the attempt; `reads`: what its workspace needs to see."""
    box = host.settings.sandbox_for(lease["agent"], lease["project"])
    if box == NO_SANDBOX:
        return orders
    # Not by variables of the task: whoever added it would choose what the agent may change.
    given = given_environment(host.settings, agent, lease["pool"])
    folders = config_folders(agent.config, given) if box.kind != "none" else ()
    own = Visible(tuple(str(path) for path in reads), (orders.env["FAIRLANE_ARTIFACTS"], *folders))
    return sandbox.confined(orders, box, host.home, own, store_file(host))


def store_file(host: Host) -> Path | None:
    """The store, where it is not in the home folder."""
    scheme, _, rest = (host.db or host.settings.store.url or "").partition(":")
    return Path(rest.removeprefix("//")).expanduser() if scheme == "sqlite" and rest else None


def place_for(host: Host, lease: LocalLeaseDocument) -> Place:
    """Where an attempt works, or worked."""
    return place_of(*whose(host, lease))


def whose(
    host: Host, lease: LocalLeaseDocument
) -> tuple[Path, Settings, Project, Task, str | None, bool]:
    """The words by which workspaces know an attempt."""
    confined = host.settings.is_confined(lease["agent"], lease["project"])
    project, task = _project_of(lease), _task_of(lease)
    return host.home, host.settings, project, task, lease["workspace"], confined


def _project_of(lease: LocalLeaseDocument) -> Project:
    """The project as its workspaces need it."""
    names = lease["workspaces"]
    checks = [Check(row["name"], tuple(row["argv"])) for row in lease["checks"]]
    return Project(
        lease["project"],
        workspaces=None if names is None else tuple(names),
        repo=lease["repo"],
        pr=tuple(lease["pr"]),
        checks=(*checks, *(Check("", tuple(argv)) for argv in lease["project_checks"])),
        protect=None if lease["protect"] is None else tuple(lease["protect"]),
        hooks=lease["hooks"],
    )


def _task_of(lease: LocalLeaseDocument) -> Task:
    """The task as its workspace needs it."""
    return Task(
        lease["task"], title=lease["subject"], base=lease["base"], merge=lease["merge"],
        no_checks=not lease["checks"],
    )  # fmt: skip


def _environment(host: Host, agent: Agent, lease: LocalLeaseDocument) -> dict[str, str]:
    """What is chosen of this process's environment, and what agent, pool and task set."""
    return {**given_environment(host.settings, agent, lease["pool"]), **lease["env"]}


def _calls(host: Host, lease: LocalLeaseDocument, run: Path) -> Calls:
    """The socket of an attempt, and what answers there."""
    where = (str(host.home), lease["lease"], *((host.db,) if host.db else ()))
    argv = (sys.executable, "-P", "-m", "fairlane.app.attempt_call", *where)
    return Calls(socket_of(run), argv)


def _fairlane_environment(host: Host, lease: LocalLeaseDocument, place: Path) -> dict[str, str]:
    """What the attempt sees of Fairlane."""
    return {
        "FAIRLANE_TASK": lease["task"],
        "FAIRLANE_ATTEMPT": str(lease["attempt"]),
        "FAIRLANE_LEASE": lease["lease"],
        "FAIRLANE_FENCE": str(lease["fence"]),
        "FAIRLANE_PROJECT": lease["project"],
        "FAIRLANE_HOME": str(host.home),
        "FAIRLANE_ARTIFACTS": str(make_folder(host.home / "artifacts" / lease["task"])),
        "FAIRLANE_WORKSPACE": str(place),
    }
