"""Every executor behaves alike: processes, tmux sessions, and the fake that tests build on."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlane.clock import VirtualClock
from fairlane.executors.base import Ended, Executor, Exit, Gone, Handle, Orders
from fairlane.simulation.processes import Machine, Script, VirtualExecutor
from fairlane.testing.executor_suite import Act, ExecutorSuite


class TestProcess(ExecutorSuite):
    name = "process"


class TestForkedProcess(ExecutorSuite):
    name = "process"
    warm = True


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
class TestTmux(ExecutorSuite):
    name = "tmux"

    @pytest.fixture(autouse=True)
    def server(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """A tmux server of the case's own."""
        folder = tempfile.mkdtemp(prefix="tmux-")  # the path of a socket is short
        monkeypatch.setenv("TMUX_TMPDIR", folder)
        yield
        subprocess.run(["tmux", "kill-server"], check=False, capture_output=True)
        shutil.rmtree(folder)


class TestFake(ExecutorSuite):
    name = "fake"

    @pytest.fixture
    def executor(self) -> Executor:
        self.clock = VirtualClock(1_000)
        self.machine = Machine(self.clock)
        return self.another(None)

    def orders(self, run: Path, act: Act, **more: object) -> Orders:
        orders = super().orders(run, act, **more)
        self.acts = {**getattr(self, "acts", {}), run: act}
        return orders

    def another(self, executor: Executor | None) -> Executor:
        return VirtualExecutor(self.machine, self.script)

    def launch_and_die(self, orders: Orders) -> None:
        self.another(None).launch(orders)

    def script(self, orders: Orders) -> Script:
        if orders.argv == ("/no/such/program",):
            return Script(0.0, exit=Exit(launch_error=f"{orders.argv[0]}: no such file"))
        act = self.acts[orders.folder]
        lines = [*act.prints]
        if act.shows:
            lines = [orders.env["FAIRLANE_TASK"], str(orders.cwd), str(orders.stdin).strip()]
        return Script(
            seconds=None if act.stays else 1.0,
            prints=tuple((0.1, f"{line}\n") for line in lines),
            errors=tuple((0.1, f"{line}\n") for line in act.errors),
            exit=Exit(exit_code=None, signal=act.signal) if act.signal else Exit(act.code),
            stop_seconds=0.2 if act.stubborn else 0.0,
            stop_signal=9 if act.stubborn else 2,
        )

    # What only a fake can do

    def test_a_script_is_followed_by_the_clock(self, run: Path, executor: Executor) -> None:
        fake = VirtualExecutor(
            self.machine, lambda orders: Script(9.0, ((1.0, "a\n"), (5.0, "b\n")), exit=Exit(7))
        )
        handle = fake.launch(self.orders(run, Act()))
        lengths = []
        for _ in range(3):
            lengths.append(fake.output_size(run, "stdout"))
            self.clock.wait(3.0)
        assert lengths == [0, 2, 4]
        assert fake.poll(handle) == Ended(Exit(7, started_at=1_000, ended_at=9_001_000))

    def test_it_can_refuse_vanish_and_be_killed(self, tmp_path: Path, executor: Executor) -> None:
        run = self.make_run(tmp_path, "t1")
        scripts = iter([Script(refused=OSError(28, "no room")), Script(2.0, gone=True), Script()])
        fake = VirtualExecutor(self.machine, lambda orders: next(scripts))
        orders = self.orders(run, Act())
        with pytest.raises(OSError, match="no room"):
            fake.launch(orders)
        handle = fake.launch(orders)
        watch = fake.watch(handle)
        assert watch is not None
        assert self.clock.wait(60.0, watch) == [watch]
        watch.close()
        assert (fake.poll(handle), self.clock.monotonic()) == (Gone(), 2.0)
        second = fake.launch(replace(orders, folder=self.make_run(tmp_path, "t2")))
        self.machine.kill(second.run)
        assert fake.poll(second) == fake.poll(Handle(second.run)) == Gone()
