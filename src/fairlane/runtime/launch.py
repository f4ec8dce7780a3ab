"""Launch: a durable lease becomes a process: workspace, environment, command line, runner."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor as Threads
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile

from fairlane import workspaces
from fairlane.agents.contract import Agent, agents, expanded, passed
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
from fairlane.model.errors import MISSING, ON_DISK, FairlaneError, Shortage
from fairlane.model.event import Happening
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.sandbox import NO_SANDBOX
from fairlane.model.task import Task
from fairlane.settings import PoolSettings, Settings

#: How many launches are prepared at once: a slow worktree delays no other.
LAUNCHES_AT_ONCE = 4
#: What a failed launch counts as, by the code of its error; every other one is the task's own.
_COUNTS_AS = {
    "stopped": Happening.STOPPED,
    "paused": Happening.RELEASED,
    "taken": Happening.RELEASED,
    "closed": Happening.RELEASED,
    Shortage.code: Happening.ENVIRONMENT,
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

    def executor_of(self, lease: LocalLeaseDocument) -> Executor:
        """The executor that launched an attempt; `Invalid`: its package was removed."""
        return self.executor_named(lease["executor"])

    def reader_of(self, lease: LocalLeaseDocument) -> Agent:
        """Whose output is read; of an agent that has left the settings only the exit code is."""
        return self.agents.get(lease["agent"]) or self.agents["shell"]


def host_of(context: Context, threads: ThreadsOf = ThreadPoolExecutor) -> Host:
    """The host of a context."""
    settings = context.settings
    return Host(
        context.home, settings, context.clock, LocalPort(context), context.executor(),
        context.executor, agents(settings), threads, context.db,
    )  # fmt: skip


class LaunchFailed(FairlaneError):
    """An attempt could not be started."""

    code = "launch_failed"

    @property
    def ending(self) -> Ending:
        """How the attempt ends."""
        happening = _COUNTS_AS.get(self.error_code, Happening.LAUNCH_FAILED)
        return Ending(happening, Report(detail=self.message))


@dataclass(frozen=True, slots=True)
class Launched:
    """What became of one launch."""

    lease: LocalLeaseDocument
    outcome: Handle | Ending


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

    def __init__(self, host: Host, waker: Waker, after: After | None = None) -> None:
        self._host, self._waker, self._after = host, waker, after
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
    def waiting(self) -> set[str]:
        """Leases that have no process yet."""
        return {*self._preparing, *(lease["lease"] for _, lease in self._due)}

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
            outcome = launch(self._host, lease, self._after)
        except LaunchFailed as error:
            outcome = error.ending
        except Exception as error:  # a bug here must not hold the lease for ever
            outcome = LaunchFailed(f"{type(error).__name__}: {error}").ending
        self._report(lease, outcome)


def launch(host: Host, lease: LocalLeaseDocument, after: After | None = None) -> Handle:
    """Start one attempt now."""
    try:
        return host.executor.launch(_orders(host, lease, after))
    except LaunchFailed:
        raise
    except Shortage as error:
        raise LaunchFailed(error.message, error.hint, error.code) from error
    except FairlaneError as error:
        raise LaunchFailed(error.message, error.hint) from error
    except OSError as error:
        missing = shortage(error, Path(lease["run"]))
        code = Shortage.code if missing else None
        raise LaunchFailed(missing or str(error), code=code) from error


def _orders(host: Host, lease: LocalLeaseDocument, after: After | None) -> Orders:
    agent = host.agents.get(lease["agent"])
    if agent is None:
        name = lease["agent"]
        raise LaunchFailed(f"agent {name} is not known here", "Name it in fairlane.toml.")
    place = workspaces.prepare(
        host.home, host.settings, project_of(lease), task_of(lease), lease["workspace"],
        sandboxed=host.settings.is_confined(lease["agent"], lease["project"]),
    )  # fmt: skip
    run = make_run(Path(lease["run"]))
    if lease["problem"]:
        raise LaunchFailed(lease["problem"])
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
        after=after,
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
    given = _given_environment(host, agent, lease)
    folders = config_folders(agent.config, given) if box.kind != "none" else ()
    own = Visible(tuple(str(path) for path in reads), (orders.env["FAIRLANE_ARTIFACTS"], *folders))
    return sandbox.confined(orders, box, host.home, own, _store_file(host))


def _store_file(host: Host) -> Path | None:
    """The store, where it is not in the home folder."""
    scheme, _, rest = (host.db or host.settings.store.url or "").partition(":")
    return Path(rest.removeprefix("//")).expanduser() if scheme == "sqlite" and rest else None


def project_of(lease: LocalLeaseDocument) -> Project:
    """The project as its workspaces need it."""
    names = lease["workspaces"]
    return Project(
        lease["project"],
        workspaces=None if names is None else tuple(names),
        repo=lease["repo"],
        pr=tuple(lease["pr"]),
        hooks=lease["hooks"],
    )


def task_of(lease: LocalLeaseDocument) -> Task:
    """The task as its workspace needs it."""
    return Task(lease["task"], title=lease["subject"], base=lease["base"], merge=lease["merge"])


def _environment(host: Host, agent: Agent, lease: LocalLeaseDocument) -> dict[str, str]:
    """What is chosen of this process's environment, and what agent, pool and task set."""
    return {**_given_environment(host, agent, lease), **lease["env"]}


def _given_environment(host: Host, agent: Agent, lease: LocalLeaseDocument) -> dict[str, str]:
    """The same without what the task sets."""
    pool = host.settings.pools.get(lease["pool"] or "", PoolSettings())
    chosen = passed(os.environ, (*agent.passes, *pool.passes))
    return {**chosen, **expanded(agent.env), **expanded(pool.env)}


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


def shortage(error: OSError, folder: Path) -> str:
    """What our side lacks, on which disk, or for which file; empty: the error has another cause.

    `folder` is where it happened, unless the error names a path itself.
    """
    number = error.errno or 0
    if number not in ON_DISK:
        return MISSING.get(number, "")
    place = Path(os.fsdecode(error.filename)) if error.filename else folder
    existing = next(path for path in (place, *place.parents) if path.exists())
    disk = os.statvfs(existing)
    used_up = disk.f_files > 0 and disk.f_favail == 0
    what = "no file can be made (inodes are used up)" if used_up else MISSING[number]
    return f"{what} on the disk of {place}"


def shortage_now(folder: Path) -> str:
    """What the disk of a folder lacks at this moment; empty: something can be written there."""
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return shortage(OSError(error.errno, error.strerror), folder)
    return ""
