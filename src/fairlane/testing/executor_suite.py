"""What every executor must do. A plug-in's test names its executor:

pytest.register_assert_rewrite("fairlane.testing")

class TestMyExecutor(ExecutorSuite):
    name = "my-executor"              # as `worker.executor` names it

The suite launches small Python programs, waits for their end with `Executor.watch`, and gives up
after `SECONDS`. One case kills the process that launched an attempt: the executor must be found by
its name there, so its entry point must be installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlane.clock import SYSTEM, Clock, poll
from fairlane.executors import executor_named
from fairlane.executors.base import Ended, Executor, Exit, Gone, Handle, Orders, Running
from fairlane.executors.runfiles import Lines, end_of
from fairlane.model.errors import FairlaneError
from fairlane.model.record import dataclass, replace

#: How long a case waits for what must happen; far more than a busy machine needs.
SECONDS = 60.0
#: Launches an attempt, and dies at once.
_LAUNCHER = """
import json, os, signal, sys
from pathlib import Path
from fairlane.executors import executor_named
from fairlane.executors.base import Orders
name, folder, argv, warm = json.load(sys.stdin)
folder, executor = Path(folder), executor_named(name)
if warm:
    executor.warm_up()
executor.launch(Orders(folder, tuple(argv), folder, dict(os.environ)))
os.kill(os.getpid(), signal.SIGKILL)
"""


@dataclass(frozen=True, slots=True)
class Act:
    """What an agent does in a case, in this order."""

    stubborn: bool = False  # it ignores the interrupt and the request to terminate
    shows: bool = False  # it prints FAIRLANE_TASK, its folder and its standard input, a line each
    prints: tuple[str, ...] = ()  # lines
    errors: tuple[str, ...] = ()  # lines on standard error
    stays: bool = False  # it runs until it is stopped
    code: int = 0
    signal: int = 0  # it kills itself with this signal

    @property
    def program(self) -> str:
        """The act in Python."""
        lines = ["import os, signal, sys, time"]
        if self.stubborn:
            lines += [f"signal.signal({number}, signal.SIG_IGN)" for number in (2, 15)]
        if self.shows:
            lines += ["print(os.environ['FAIRLANE_TASK'], os.getcwd(), input(), sep='\\n')"]
        lines += [f"print({line!r})" for line in self.prints]
        lines += [f"print({line!r}, file=sys.stderr)" for line in self.errors]
        lines += ["sys.stdout.flush()", "time.sleep(3600)" if self.stays else ""]
        lines += [
            f"os.kill(os.getpid(), {self.signal})" if self.signal else f"sys.exit({self.code})"
        ]
        return "\n".join(lines)


class ExecutorSuite:
    """All cases; each takes an executor, and a run folder that is empty."""

    name: str
    clock: Clock = SYSTEM
    warm = False  # whether launches are prepared, as a daemon does; others must work too

    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        """The executor under test."""
        executor = executor_named(self.name)
        yield executor
        executor.close()

    @pytest.fixture
    def run(self, tmp_path: Path) -> Path:
        """The run folder of an attempt."""
        return self.make_run(tmp_path, "t1")

    # What an author of an executor may have to replace

    def orders(self, run: Path, act: Act, **more: object) -> Orders:
        """Orders for an agent that does this."""
        argv = (sys.executable, "-S", "-c", act.program)
        env = {**os.environ, "FAIRLANE_TASK": run.parent.name}
        return Orders(run, argv, run, env, **more)  # type: ignore[arg-type]

    def another(self, executor: Executor) -> Executor:
        """The executor as the next process makes it."""
        return executor_named(self.name)

    def launch(self, executor: Executor, orders: Orders) -> Handle:
        """Start an attempt."""
        if self.warm:
            executor.warm_up()
        return executor.launch(orders)

    def launch_and_die(self, orders: Orders) -> None:
        """Launch in a process that is then killed."""
        text = json.dumps([self.name, str(orders.folder), orders.argv, self.warm])
        launcher = subprocess.run(
            [sys.executable, "-c", _LAUNCHER], input=text.encode(), check=False
        )
        assert launcher.returncode == -9

    # Start to end

    def test_it_runs_prints_and_ends(self, executor: Executor, run: Path) -> None:
        act = Act(prints=("one", "two"), errors=("oops",), code=3)
        ended = self.ended(executor, self.launch(executor, self.orders(run, act)))
        assert (ended.exit_code, ended.signal, ended.stopped) == (3, None, "")
        assert 0 < ended.started_at <= ended.ended_at
        assert executor.output(run, "stdout", 0, 100) == b"one\ntwo\n"
        assert executor.output(run, "stdout", 4, 2) == b"tw"
        assert executor.output(run, "stdout", 8, 100) == b""
        assert executor.output_size(run, "stdout") == 8
        assert executor.output(run, "stderr", 0, 100) == b"oops\n"
        assert [line for part in Lines(executor, run).rest() for line in part] == ["one", "two"]
        assert end_of(executor, run, "stdout", 4) == b"two\n"

    def test_errors_stand_among_the_output_where_it_is_asked(
        self, executor: Executor, run: Path
    ) -> None:
        orders = replace(self.orders(run, Act(prints=("one",), errors=("oops",))), joined=True)
        assert self.ended(executor, self.launch(executor, orders)).exit_code == 0
        assert sorted(executor.output(run, "stdout", 0, 100).split()) == [b"one", b"oops"]
        assert executor.output(run, "stderr", 0, 100) == b""

    def test_it_gets_its_environment_folder_and_input(self, executor: Executor, run: Path) -> None:
        orders = self.orders(run, Act(shows=True), stdin="a prompt\n")
        assert self.ended(executor, self.launch(executor, orders)).exit_code == 0
        shown = executor.output(run, "stdout", 0, 10_000).decode()
        assert shown == f"t1\n{orders.cwd}\na prompt\n"

    @pytest.mark.parametrize(("code", "told"), [(0, "a secret"), (3, "")])
    def test_a_success_tells_the_seal(
        self, executor: Executor, run: Path, code: int, told: str
    ) -> None:
        orders = self.orders(run, Act(code=code), seal="a secret")
        assert self.ended(executor, self.launch(executor, orders)).seal == told

    def test_a_death_by_signal_is_told(self, executor: Executor, run: Path) -> None:
        ended = self.ended(executor, self.launch(executor, self.orders(run, Act(signal=9))))
        assert (ended.exit_code, ended.signal) == (None, 9)

    def test_a_program_that_does_not_exist_is_a_launch_error(
        self, executor: Executor, run: Path
    ) -> None:
        try:
            handle = self.launch(executor, Orders(run, ("/no/such/program",), run, {}))
            problem = self.ended(executor, handle).launch_error
        except (FairlaneError, OSError) as error:
            problem = str(error)
        assert "/no/such/program" in problem

    def test_two_run_at_once_and_do_not_mix(self, executor: Executor, tmp_path: Path) -> None:
        runs = [self.make_run(tmp_path, name) for name in ("t1", "t2")]
        handles = [
            self.launch(executor, self.orders(run, Act(prints=(run.parent.name,), stays=True)))
            for run in runs
        ]
        for run in runs:
            self.printed(executor, run)
            assert executor.output(run, "stdout", 0, 100).decode() == f"{run.parent.name}\n"
        executor.stop(handles[0])
        assert self.ended(executor, handles[0]).stopped == "stop"
        assert executor.poll(handles[1]) == Running()
        executor.stop(handles[1])
        assert self.ended(executor, handles[1]).stopped == "stop"

    # Alive, ended, gone

    def test_poll_says_running_then_ended(self, executor: Executor, run: Path) -> None:
        handle = self.launch(executor, self.orders(run, Act(prints=("here",), stays=True)))
        assert executor.poll(handle) == Running()
        self.printed(executor, run)
        assert executor.poll(handle) == executor.poll(Handle(run)) == Running()
        executor.stop(handle)
        ended = self.ended(executor, handle)
        assert executor.poll(handle) == executor.poll(Handle(run)) == Ended(ended)
        assert executor.watch(handle) is None
        executor.stop(handle)  # there is nothing left to stop
        executor.clean_up(run)
        assert executor.poll(handle) == Ended(ended)

    def test_of_a_run_that_never_was_nothing_is_known(self, executor: Executor, run: Path) -> None:
        for folder in (run, run.parent / "2"):
            assert executor.poll(Handle(folder)) == Gone()
            assert executor.poll(Handle(folder, "not a handle")) == Gone()
            assert executor.adopt(folder) is None
            assert executor.watch(Handle(folder)) is None
            assert executor.output(folder, "stdout", 0, 10) == b""
            assert executor.output_size(folder, "stdout") == 0
            executor.stop(Handle(folder))
            executor.clean_up(folder)

    def test_a_handle_survives_as_text(self, executor: Executor, run: Path) -> None:
        handle = self.launch(executor, self.orders(run, Act(stays=True)))
        again = self.another(executor)
        assert again.poll(Handle(run, str(handle.text))) == Running()
        again.stop(Handle(run, str(handle.text)))
        assert self.ended(again, Handle(run, str(handle.text))).stopped == "stop"

    # Stops

    def test_a_stubborn_agent_is_killed(self, executor: Executor, run: Path) -> None:
        act = Act(stubborn=True, prints=("ready",), stays=True)
        handle = self.launch(executor, self.orders(run, act, stop=(0.1, 0.1)))
        self.printed(executor, run)
        executor.stop(handle)
        ended = self.ended(executor, handle)
        assert (ended.stopped, ended.signal) == ("stop", 9)

    def test_a_timeout_stops_it(self, executor: Executor, run: Path) -> None:
        handle = self.launch(executor, self.orders(run, Act(stays=True), timeout=0.2))
        assert self.ended(executor, handle).stopped == "timeout"

    def test_silence_stops_it(self, executor: Executor, run: Path) -> None:
        handle = self.launch(executor, self.orders(run, Act(stays=True), silence=0.2))
        assert self.ended(executor, handle).stopped == "silence"

    # The next process

    def test_another_process_adopts_what_runs(self, executor: Executor, run: Path) -> None:
        self.launch(executor, self.orders(run, Act(prints=("here",), stays=True)))
        self.printed(executor, run)
        again = self.another(executor)
        handle = again.adopt(run)
        assert handle is not None
        assert again.poll(handle) == Running()
        again.stop(handle)
        assert self.ended(again, handle).stopped == "stop"
        assert again.adopt(run) is None

    def test_a_result_survives_the_death_of_its_launcher(
        self, executor: Executor, run: Path
    ) -> None:
        self.launch_and_die(self.orders(run, Act(prints=("done",), code=4)))
        self.until(lambda: isinstance(executor.poll(Handle(run)), Ended))
        assert self.ended(executor, Handle(run)).exit_code == 4
        assert executor.output(run, "stdout", 0, 100) == b"done\n"

    def test_what_was_revoked_never_starts(self, executor: Executor, run: Path) -> None:
        executor.revoke(run)
        try:
            handle = self.launch(executor, self.orders(run, Act(prints=("too late",))))
        except FairlaneError:
            handle = Handle(run)
        self.until(lambda: executor.poll(handle) != Running())
        assert executor.poll(handle) == Gone()
        assert executor.adopt(run) is None
        assert executor.output(run, "stdout", 0, 100) == b""

    def test_a_revocation_that_comes_too_late_changes_nothing(
        self, executor: Executor, run: Path
    ) -> None:
        handle = self.launch(executor, self.orders(run, Act(prints=("here",), stays=True)))
        self.printed(executor, run)
        executor.revoke(run)
        assert executor.poll(handle) == Running()
        executor.stop(handle)
        assert self.ended(executor, handle).stopped == "stop"

    # A run folder that its agent has changed

    def test_a_hostile_run_folder_harms_nobody(
        self, executor: Executor, run: Path, tmp_path: Path
    ) -> None:
        handle = self.launch(executor, self.orders(run, Act(prints=("here",))))
        self.ended(executor, handle)
        secret = tmp_path / "secret"
        secret.write_text("secret")
        for file in sorted(run.iterdir()):
            file.unlink()
            file.symlink_to(secret)
        for stream in ("stdout", "stderr"):
            assert executor.output_size(run, stream) in (0, len("here\n"))
            assert b"secret" not in end_of(executor, run, stream, 100)
        state = executor.poll(Handle(run))
        assert not isinstance(state, Running)
        assert executor.adopt(run) is None
        executor.stop(Handle(run))
        executor.clean_up(run)
        assert secret.read_text() == "secret"

    # Inside

    def make_run(self, folder: Path, task: str) -> Path:
        """The run folder of a task's first attempt."""
        run = folder / "runs" / task / "1"
        run.mkdir(parents=True)
        return run

    def ended(self, executor: Executor, handle: Handle) -> Exit:
        """Wait for the end of an attempt, as a daemon does."""
        watch = executor.watch(handle)
        if watch is not None:
            ready = self.clock.wait(SECONDS, watch)
            watch.close()
            assert ready == [watch], "its watch did not become ready"
        state = executor.poll(handle)
        assert isinstance(state, Ended), state
        return state.exit

    def printed(self, executor: Executor, run: Path) -> None:
        """Wait for the first words of an attempt."""
        self.until(lambda: executor.output_size(run, "stdout") > 0)

    def until(self, ask: Callable[[], bool]) -> None:
        """Wait for something that nothing tells of."""
        assert poll(ask, SECONDS, 0.01, self.clock), "it did not happen in time"
