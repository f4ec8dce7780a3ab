"""Virtual processes on the executor port: attempts that follow a script, without files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fairlane.clock import VirtualClock, Waker
from fairlane.executors.base import Ended, Exit, Gone, Handle, Orders, Running, State, Watch
from fairlane.model.instant import Instant
from fairlane.model.record import dataclass, field, replace

_DONE = Exit(exit_code=0)
_SILENT = Exit(signal=15, stopped="silence")


@dataclass(frozen=True, slots=True)
class Script:
    """What an attempt does after its launch; times are seconds since then."""

    seconds: float | None = 1.0  # how long it runs; None: until it is stopped
    prints: tuple[tuple[float, str], ...] = ()  # (when, text), in order
    errors: tuple[tuple[float, str], ...] = ()  # the same, to standard error
    exit: Exit = _DONE
    gone: bool = False  # it ends without a result, as after `kill -9` of a runner
    refused: Exception | None = None  # raised by the launch
    stop_seconds: float = 0.0  # how long it takes to stop
    stop_signal: int = 2  # of which it then dies


@dataclass(slots=True)
class VirtualProcess:
    """What runs, or ran, in a run folder."""

    handle: Handle
    script: Script
    started: float  # by the monotonic clock
    started_at: Instant
    seal: str
    state: State = field(default_factory=Running)
    told: bool = False  # to stop
    watches: list[Waker] = field(default_factory=list)


@dataclass(slots=True)
class Machine:
    """What runs on a virtual host; it outlives the executors of the daemons that come and go."""

    clock: VirtualClock
    attempts: dict[Path, VirtualProcess] = field(default_factory=dict)
    revoked: set[Path] = field(default_factory=set)
    launched: list[Orders] = field(default_factory=list)  # for tests to look at

    def end(self, attempt: VirtualProcess, state: State) -> None:
        """An attempt ends, unless it has already."""
        if attempt.state == Running():
            attempt.state = state
            for watch in attempt.watches:
                watch.set()

    def kill(self, run: Path) -> None:
        """An attempt vanishes without a result."""
        self.end(self.attempts[run], Gone())


class VirtualExecutor:
    """Launches attempts on a machine; `script` says what each of them does."""

    def __init__(
        self, machine: Machine, script: Callable[[Orders], Script] = lambda orders: Script()
    ) -> None:
        self.machine, self._script = machine, script

    def launch(self, orders: Orders) -> Handle:
        """Begin to follow the script."""
        script, machine = self._script(orders), self.machine
        if orders.joined:
            script = replace(script, prints=script.prints + script.errors, errors=())
        if script.refused is not None:
            raise script.refused
        machine.launched.append(orders)
        handle = Handle(orders.folder, f"virtual {len(machine.launched)}")
        attempt = VirtualProcess(
            handle, script, machine.clock.monotonic(), machine.clock.now(), orders.seal
        )
        machine.attempts[orders.folder] = attempt
        if orders.folder in machine.revoked:
            attempt.script, attempt.state = Script(), Gone()
        else:
            self._schedule(attempt, orders)
        return handle

    def poll(self, handle: Handle) -> State:
        """How far the script is."""
        attempt = self._attempt(handle)
        return Gone() if attempt is None else attempt.state

    def watch(self, handle: Handle) -> Watch | None:
        """A waker that the end of the script sets."""
        attempt = self._attempt(handle)
        if attempt is None or attempt.state != Running():
            return None
        attempt.watches.append(Waker())
        return attempt.watches[-1]

    def stop(self, handle: Handle) -> None:
        """End the script early."""
        attempt = self._attempt(handle)
        if attempt is not None:
            attempt.told = True
            ended = Exit(signal=attempt.script.stop_signal, stopped="stop")
            self._end_later(attempt, attempt.script.stop_seconds, ended)

    def adopt(self, run: Path) -> Handle | None:
        """The attempt of this run folder, if it runs."""
        attempt = self.machine.attempts.get(run)
        return attempt.handle if attempt is not None and attempt.state == Running() else None

    def revoke(self, run: Path) -> None:
        """A launch in this folder starts nothing."""
        if run not in self.machine.attempts:
            self.machine.revoked.add(run)

    def clean_up(self, run: Path) -> None:
        """Nothing is ever left behind."""

    def output(self, run: Path, stream: str, offset: int, limit: int) -> bytes:
        """What the script has printed by now."""
        attempt = self.machine.attempts.get(run)
        if attempt is None:
            return b""
        texts = attempt.script.prints if stream == "stdout" else attempt.script.errors
        passed = self.machine.clock.monotonic() - attempt.started
        data = "".join(text for when, text in texts if when <= passed).encode()
        return data[offset : offset + limit]

    def output_size(self, run: Path, stream: str) -> int:
        """How much of it there is."""
        return len(self.output(run, stream, 0, 1 << 62))

    def warm_up(self) -> None:
        """A launch takes no time."""

    def close(self) -> None:
        """Attempts go on."""

    def _attempt(self, handle: Handle) -> VirtualProcess | None:
        attempt = self.machine.attempts.get(handle.run)
        known = attempt is not None and handle.text in ("", attempt.handle.text)
        return attempt if known else None

    def _schedule(self, attempt: VirtualProcess, orders: Orders) -> None:
        """Its own end, and those that a timeout or its silence force."""
        script = attempt.script
        if orders.timeout is not None:
            self._end_later(attempt, orders.timeout, Exit(signal=15, stopped="timeout"))
        if orders.silence is not None:
            self._end_later(attempt, _silent_at(script, orders.silence), _SILENT)
        if script.seconds is not None:
            self._end_later(attempt, script.seconds, None if script.gone else script.exit)

    def _end_later(self, attempt: VirtualProcess, seconds: float, ended: Exit | None) -> None:
        clock = self.machine.clock

        def end() -> None:
            if ended is None:
                self.machine.end(attempt, Gone())
            else:
                seal = attempt.seal if ended.exit_code == 0 and not ended.stopped else ""
                begun, now = attempt.started_at, clock.now()
                result = replace(ended, started_at=begun, ended_at=now, seal=seal)
                self.machine.end(attempt, Ended(result))

        clock.after(seconds, end)


def _silent_at(script: Script, silence: float) -> float:
    """When it has printed nothing for this long."""
    last = 0.0
    for when, _ in sorted(script.prints + script.errors):
        if when - last > silence:
            break
        last = when
    return last + silence
