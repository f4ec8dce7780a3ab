"""The stage: processes that run one at a time, each until its next gate; time that is told.

Every thread of a process is a strand. A strand stops at each gate (before and after a transaction,
around a launch, in a wait) and goes on when the stage says so: who goes on next is a choice, and
the list of choices is the whole history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

from fairlane.clock import SYSTEM, VirtualClock, Waitable
from fairlane.file_watch import ASKED
from fairlane.model.instant import SECOND, Instant
from fairlane.policy.policy import Policy
from fairlane.settings import HOST

#: The name of the machine that has the store, among the hosts.
STORE = "store"
#: How often a strand looks whether something is ready before it must let others go on.
LOOKS_MAX = 500
_CURRENT: ContextVar[Strand] = ContextVar("strand")


class Killed(BaseException):
    """The process was killed: none of its code runs any more."""


@dataclass(slots=True)
class HostClock:
    """The clock of one host: it can be set, and it may run too fast or too slow."""

    true: VirtualClock
    rate: float = 1.0
    _now: float = 0.0  # at the anchor, in microseconds
    _seconds: float = 0.0  # the same for elapsed seconds
    _anchor: float = 0.0  # true seconds

    def __post_init__(self) -> None:
        self._now = float(self.true.at)

    def now(self) -> Instant:
        """What this host takes the time to be."""
        return round(self._now + self._passed() * SECOND)

    def monotonic(self) -> float:
        """Seconds; setting the clock does not change them."""
        return self._seconds + self._passed()

    def set(self, ahead: float, rate: float) -> None:
        """Jump by some seconds, and run at another rate from now on."""
        self._now += (self._passed() + ahead) * SECOND
        self._seconds += self._passed()
        self._anchor, self.rate = self.true.elapsed, rate

    def _passed(self) -> float:
        return (self.true.elapsed - self._anchor) * self.rate


class Strand:
    """One thread of a process; it runs only while the stage waits for it."""

    def __init__(self, process: Process, name: str, work: Callable[[], object]) -> None:
        self.process, self.name, self._work = process, name, work
        self.gate = "begin"  # where it stands
        self.order = ""  # the fault that it meets next
        self.inside = 0  # how many transactions are open: no gate opens inside one
        self.ended = False
        self.looks = 0  # waits since the last gate that took no time
        self.policy: Policy | None = None  # as it has read it last
        self.policy_broken = False  # the file could not be read then
        self._wakes: float | None = None  # true seconds; None: it does not sleep
        self._waits_for: Callable[[], bool] | None = None
        self._turn = Lock()
        self._turn.acquire()
        thread = Thread(target=copy_context().run, args=(self._main,), name=name, daemon=True)
        thread.start()

    def is_ready(self) -> bool:
        """Whether it could go on now."""
        if self._waits_for is not None:
            if self._waits_for():
                return True
            return self._wakes is not None and self.process.stage.clock.elapsed >= self._wakes
        return True

    @property
    def wakes(self) -> float | None:
        """When its sleep is over, in true seconds."""
        return self._wakes

    def resume(self) -> None:
        """Let it run to its next gate; called by the stage."""
        self._turn.release()
        self.process.stage.back.acquire()

    def stop_at(self, gate: str) -> str:
        """Wait at a gate until the stage says go; the fault to meet there, or nothing."""
        if self.process.dead:
            raise Killed
        if self.inside:
            return ""
        self.gate = gate
        self._pause()
        order, self.order = self.order, ""
        return order

    def sleep(self, seconds: float | None, ready: Callable[[], bool]) -> None:
        """Wait until something is ready or the time is over."""
        if self.process.dead:
            raise Killed
        now = self.process.stage.clock.elapsed
        self._wakes = None if seconds is None else now + max(0.0, seconds)
        self._waits_for, self.gate = ready, "wait"
        self._pause()
        self._waits_for = self._wakes = None

    def _pause(self) -> None:
        self.looks = 0
        self.process.stage.back.release()
        self._turn.acquire()
        if self.process.dead:
            raise Killed

    def _main(self) -> None:
        self._turn.acquire()
        _CURRENT.set(self)
        HOST.set(self.process.host)
        ASKED.set(False)
        try:
            if not self.process.dead:
                self._work()
        except Killed:
            self.process.dead = True
        except BaseException as error:
            self.process.errors.append(error)
        self.ended = True
        self.process.stage.back.release()


@dataclass(slots=True, eq=False)
class Process:
    """A process of a host: its strands live and die together."""

    stage: Stage
    name: str
    host: str
    clock: ProcessClock = field(init=False)
    strands: list[Strand] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)  # that ended a strand
    dead: bool = False
    policy: Policy | None = None  # the last good one that it has read
    frozen_until: float = 0.0  # true seconds
    begun: int = 0  # strands so far

    def __post_init__(self) -> None:
        self.clock = ProcessClock(self)

    def begin(self, work: Callable[[], object]) -> Strand:
        """One more thread."""
        name = self.name if not self.begun else f"{self.name}/{self.begun}"
        self.begun += 1
        strand = Strand(self, name, work)
        self.strands.append(strand)
        return strand

    def gate(self, name: str) -> str:
        """The strand that calls waits here; the fault that it meets, or nothing."""
        return _CURRENT.get().stop_at(name)

    def threads(self, size: int, name: str) -> Threads:
        """A thread pool of this process."""
        return Threads(self)

    def spawn(self, work: Callable[[], None], name: str) -> None:
        """A thread that nobody waits for."""
        self.begin(work)

    @property
    def frozen(self) -> bool:
        """Whether it was stopped and has not come back."""
        return self.stage.clock.elapsed < self.frozen_until


def current() -> Strand:
    """The strand that runs."""
    return _CURRENT.get()


def running_strand() -> Strand | None:
    """The strand that runs; None: nobody of the stage, but who looks at it."""
    return _CURRENT.get(None)


class Threads(Executor):
    """A thread pool whose threads are strands."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._mine: list[Strand] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Begin a strand."""
        future: Future[Any] = Future()

        def do() -> None:
            try:
                future.set_result(work(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)
                self._process.stage.unseen.append(error)

        self._mine.append(self._process.begin(do))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for all that was begun."""
        if not self._process.dead and not all(strand.ended for strand in self._mine):
            current().sleep(None, lambda: all(strand.ended for strand in self._mine))


class ProcessClock:
    """Time as one process sees it: its host's clock, and waits that are gates."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._host = process.stage.hosts[process.host]

    def now(self) -> Instant:
        """By the clock of the machine that has the store: that is the time that decides."""
        return self._process.stage.hosts[STORE].now()

    def own(self) -> Instant:
        """What its own host takes the time to be; nothing may be decided by it."""
        return self._host.now()

    def monotonic(self) -> float:
        """By its host's clock."""
        return self._host.monotonic()

    def wait(self, timeout: float | None, *waitables: Waitable) -> list[Waitable]:
        """Let others run until one of these is ready, or the time is over."""
        return self.wait_unless(lambda: False, timeout, *waitables)

    def wait_unless(
        self, over: Callable[[], bool], timeout: float | None, *waitables: Waitable
    ) -> list[Waitable]:
        """The same, or until something else has happened."""

        def ready() -> list[Waitable]:
            return SYSTEM.wait(0.0, *waitables) if waitables else []

        there, strand = ready(), current()
        strand.looks += 1
        if strand.looks > LOOKS_MAX:
            strand.stop_at("spin")
        if there or over() or (timeout is not None and timeout <= 0):
            return there
        seconds = None if timeout is None else timeout / self._host.rate
        current().sleep(seconds, lambda: over() or bool(ready()))
        return ready()


class Stage:
    """All processes, and the one who says whose turn it is."""

    def __init__(self, at: Instant, hosts: Sequence[str]) -> None:
        self.clock = VirtualClock(at)
        self.hosts = {name: HostClock(self.clock) for name in (*hosts, STORE)}
        self.unseen: list[Exception] = []  # that ended work of a thread pool
        self.processes: dict[str, Process] = {}
        self.back = Lock()
        self.back.acquire()

    def start(self, name: str, host: str, work: Callable[[Process], object]) -> Process:
        """A new process; it has not run yet."""
        process = self.processes[name] = Process(self, name, host)
        process.begin(lambda: work(process))
        return process

    def ready(self) -> list[Strand]:
        """The strands that could go on now, in the order of their processes."""
        return [
            strand
            for process in self.processes.values()
            if not process.frozen
            for strand in process.strands
            if strand.is_ready()
        ]

    def go(self, strand: Strand, order: str = "") -> list[BaseException]:
        """Let one strand run to its next gate; the errors that ended strands of its process."""
        process = strand.process
        strand.order = order
        strand.resume()
        return self._tidy(process)

    def kill(self, process: Process) -> list[BaseException]:
        """End a process where it stands."""
        process.dead = True
        return self._tidy(process)

    def _tidy(self, process: Process) -> list[BaseException]:
        if process.dead or process.errors:
            process.dead = True
            for strand in process.strands:
                if not strand.ended:
                    strand.resume()
        process.strands = [strand for strand in process.strands if not strand.ended]
        if not process.strands:
            self.processes.pop(process.name, None)
        return process.errors

    def next_wake(self) -> float | None:
        """The true seconds at which the first sleep is over or the first alarm rings."""
        sleeping = [
            max(strand.wakes, process.frozen_until)
            for process in self.processes.values()
            for strand in process.strands
            if strand.wakes is not None
        ]
        alarm = self.clock.next_alarm()
        return min([*sleeping, *([] if alarm is None else [alarm])], default=None)

    def let_pass(self, seconds: float) -> None:
        """Time passes; what is due in the world happens on the way."""
        end = self.clock.elapsed + seconds
        while self.clock.elapsed < end:
            self.clock.wait(end - self.clock.elapsed)

    def close(self) -> None:
        """End everything."""
        while self.processes:
            self.kill(next(iter(self.processes.values())))
