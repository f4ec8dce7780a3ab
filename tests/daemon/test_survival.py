"""Agents survive the daemon, the daemon survives its agents, and nothing runs twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.executors import runner
from fairlane.executors.base import Ended, Gone, Orders
from fairlane.executors.process import ProcessExecutor, orders_text
from fairlane.executors.runner import REVOKED
from fairlane.lifecycle.step import HAPPENINGS
from fairlane.model.task import Outcome
from tests.daemon.world import World, until, wait_for
from tests.faults.places import small_disk
from tests.faults.test_no_room import taken_in

pytestmark = pytest.mark.slow


def test_ten_kills_of_the_daemon_lose_nothing_and_double_nothing(world: World) -> None:
    draw = random.Random(4)
    world.policy("caps.all = 10\n")
    names = [f"k{number}" for number in range(20)]
    world.add(*(world.marking(name, draw.uniform(1.0, 4.0)) for name in names))
    for _ in range(10):
        pid = world.up()
        wait_for(draw.uniform(0.05, 0.8))
        world.kill(pid)
    world.run()
    assert world.statuses() == dict.fromkeys(names, "done")
    assert world.mark_counts() == {"start": 20, "end": 20}
    for name in names:  # a kill between lease and launch costs a lost attempt, and no process
        outcomes = [each.outcome for each in world.attempts(name)]
        assert outcomes == ["lost"] * (len(outcomes) - 1) + ["succeeded"]
    assert world.most_in_flight() <= 10
    assert world.processes() == []
    assert world.sound()


def test_a_daemon_that_is_down_longer_than_the_lease_loses_nothing(world: World) -> None:
    world.policy('lease.ttl = "1s"\ncaps.all = 2\n')
    world.add(world.waiting("a"), world.waiting("b"), world.marking("c", 0.1))
    pid = world.up()
    world.started("a")
    world.started("b")
    world.kill(pid)
    expires = max(each.expires_at for name in "ab" for each in world.attempts(name))
    with world.context() as context:
        until(lambda: context.now() > expires)
    assert world.reclaim()["reclaimed"] == []  # their processes live
    assert world.fairlane("lease")["leases"] == []  # and cap all is full
    world.let_go("a", "b")
    world.run()
    assert set(world.statuses().values()) == {"done"}
    assert world.mark_counts() == {"start": 3, "end": 3}


def test_a_stopped_daemon_goes_on_where_it_was(world: World) -> None:
    world.policy('lease.ttl = "1s"\ncaps.all = 2\n')
    world.add(world.waiting("a"))
    pid = world.up()
    world.started("a")
    world.freeze(pid)
    expires = world.attempts("a")[0].expires_at
    with world.context() as context:
        until(lambda: context.now() > expires)
    assert world.reclaim()["reclaimed"] == []
    os.kill(pid, signal.SIGCONT)
    world.let_go("a")
    until(lambda: world.statuses()["a"] == "done")
    assert len(world.attempts("a")) == 1


def test_down_and_up_in_the_middle_of_running_agents(world: World) -> None:
    world.add(world.waiting("a"))
    world.up()
    world.started("a")
    world.fairlane("down")
    assert world.statuses()["a"] == "running"
    world.up()
    world.let_go("a")
    until(lambda: world.statuses()["a"] == "done")
    assert [each.outcome for each in world.attempts("a")] == ["succeeded"]


def test_a_second_scheduler_is_refused(world: World) -> None:
    world.up()
    with pytest.raises(AssertionError, match="runs already"):
        world.run()


def test_a_killed_runner_costs_one_lost_attempt_and_leaves_no_agent(world: World) -> None:
    script = f'echo start >> "{world.marks}/a"; test $FAIRLANE_ATTEMPT = 2 || sleep 60'
    world.add({"id": "a", "command": ["sh", "-c", script]})
    world.up()
    world.started("a")
    told = world.runner("a")
    os.kill(told["pid"], signal.SIGKILL)
    until(lambda: world.statuses()["a"] == "done")
    assert [each.outcome for each in world.attempts("a")] == ["lost", "succeeded"]
    assert world.processes() == []


def test_a_killed_agent_has_failed(world: World) -> None:
    world.policy("retry.max_attempts = 1\n")
    world.add(world.marking("a", 3600))
    world.up()
    world.started("a")
    os.killpg(world.runner("a")["agent_pid"], signal.SIGKILL)
    until(lambda: world.statuses()["a"] == "parked")
    assert [each.outcome for each in world.attempts("a")] == ["failed"]


def test_cancel_stops_what_ignores_every_polite_signal(world: World) -> None:
    world.settings('[worker]\nslots = 4\n[agents.shell]\nstop = ["300ms", "300ms"]\n')
    world.add(world.marking("a", 3600, more="trap '' INT TERM; sleep 3600 & "))
    world.up()
    world.started("a")
    world.fairlane("cancel", "a")
    until(lambda: world.statuses()["a"] == "canceled")
    assert world.processes() == []


def test_what_an_agent_leaves_behind_is_swept(world: World) -> None:
    world.add(world.marking("a", 0.1, more="setsid sleep 300 & (sleep 300 &) ;"))
    world.run()
    assert world.statuses()["a"] == "done"
    assert world.processes() == []


def test_down_with_stop_agents_gives_the_work_back(world: World) -> None:
    world.add(world.marking("a", 3600), world.marking("b", 3600))
    world.up()
    world.started("a")
    world.started("b")
    world.fairlane("down", "--stop-agents")
    assert set(world.statuses().values()) == {"queued"}
    assert world.attempts("a")[0].outcome == "environment"
    assert world.processes() == []


def test_a_stopped_agent_past_its_lease_is_not_lost(world: World) -> None:
    world.policy('lease.ttl = "1s"\n')
    world.add(world.waiting("a"))
    world.up()
    world.started("a")
    group = world.runner("a")["agent_pid"]
    os.killpg(group, signal.SIGSTOP)
    first = world.attempts("a")[0].expires_at
    until(lambda: world.attempts("a")[0].expires_at > first)
    os.killpg(group, signal.SIGCONT)
    world.let_go("a")
    until(lambda: world.statuses()["a"] == "done")
    assert len(world.attempts("a")) == 1


def test_an_agent_that_prints_without_end_fills_no_disk(world: World) -> None:
    world.settings("[log]\nmax_bytes = 100000\n")
    script = "head -c 300000000 /dev/zero | tr '\\0' 'x'; echo; echo the end"
    world.add({"id": "a", "command": ["sh", "-c", script]})
    world.run()
    log = world.home / "runs" / "a" / "1" / "stdout.log"
    assert world.statuses()["a"] == "done"
    assert log.stat().st_size < 101_000
    assert "bytes were dropped" in log.read_text(errors="replace")


def test_a_runner_that_comes_too_late_starts_nothing(world: World) -> None:
    """Its daemon died when it had given the orders; the next one has not seen the runner."""
    folder = world.home / "runs" / "a" / "1"
    folder.mkdir(parents=True)
    mark = world.marks / "a"
    orders = Orders(folder, ("touch", str(mark)), world.home, dict(os.environ))
    executor = ProcessExecutor()
    executor.revoke(folder)
    handle = executor.launch(orders)
    until(lambda: executor.poll(handle) == Gone())
    assert not mark.exists()
    (folder / REVOKED).unlink()
    handle = executor.launch(orders)
    until(lambda: isinstance(executor.poll(handle), Ended))
    assert mark.exists()


def test_a_stop_that_comes_before_the_start_is_not_forgotten(world: World) -> None:
    folder = world.home / "runs" / "a" / "1"
    folder.mkdir(parents=True)
    orders = Orders(folder, ("sleep", "60"), world.home, dict(os.environ))
    program = (
        "import json, sys; from fairlane.executors.runner import Runner, ignore_nothing;"
        "ignore_nothing(); orders = json.load(sys.stdin);"
        "runner = Runner(orders['folder'], orders);"
        "runner.stop('stop'); print(runner.run()['signal'], runner.stopped)"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, input=orders_text(orders), capture_output=True, check=True)
    assert done.stdout.split() == [b"2", b"stop"]


def test_an_agent_ignores_no_signal_that_its_daemon_was_started_to_ignore(world: World) -> None:
    """As under `nohup`, or from a shell without job control."""
    file = world.marks / "ignored"
    world.add({"id": "a", "command": ["sh", "-c", f'grep SigIgn /proc/self/status > "{file}"']})
    words = ["-m", "fairlane", "--home", str(world.home), "run", "--until-idle"]
    shell = "trap '' HUP INT QUIT TERM USR1 USR2 CHLD TSTP; exec \"$@\""
    subprocess.run(["sh", "-c", shell, "sh", sys.executable, *words], check=True)
    assert world.statuses()["a"] == "done"
    mask = int(file.read_text().split()[1], 16)
    assert [number for number in signal.valid_signals() if mask >> (number - 1) & 1] == []


def test_a_full_disk_in_the_run_folder_loses_words_but_no_end(world: World) -> None:
    with small_disk(world.home / "runs", "128k"):
        world.add({"id": "a", "command": ["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' 'x'"]})
        world.run()
        assert world.statuses()["a"] == "done"
        assert [each.outcome for each in world.attempts("a")] == ["succeeded"]


def test_a_daemon_under_nohup_stays_when_its_terminal_closes(world: World) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        pid = world.up()
    finally:
        signal.signal(signal.SIGHUP, before)
    os.kill(pid, signal.SIGHUP)
    world.add(world.marking("a", 0))
    until(lambda: world.statuses() == {"a": "done"})
    assert len(world.attempts("a")) == 1


# A runner that is killed at the very end


def says_success(world: World, task: str) -> dict[str, object]:
    """A task whose agent marks its work, prints its final record, and then does not end."""
    world.settings('[agents.own]\nargv = ["{command}"]\nparser = "demo"\n')
    record = '{"type":"result","outcome":"succeeded","tokens":{"input":7,"output":5}}'
    script = f"echo start >> \"{world.marks}/{task}\"; echo '{record}'; exec sleep 600"
    return {"id": task, "agent": "own", "command": ["sh", "-c", script]}


def kill_after_record(world: World, task: str) -> None:
    """Kill the runner when the record is on disk, and nothing else of the end is."""
    log = world.home / "runs" / task / "1" / "stdout.log"
    until(lambda: log.exists() and b"succeeded" in log.read_bytes())
    world.kill(world.runner(task)["pid"])


def did_it_once(world: World, task: str) -> None:
    until(lambda: world.statuses()[task] == "done")
    (attempt,) = world.attempts(task)
    assert (attempt.outcome, attempt.tokens) == ("succeeded", (7, 5, 0, 0))
    assert world.mark_counts() == {"start": 1}
    assert world.processes() == []


def test_a_success_on_record_counts_though_its_runner_was_killed(world: World) -> None:
    world.add(says_success(world, "a"))
    world.up()
    kill_after_record(world, "a")
    did_it_once(world, "a")


@pytest.mark.parametrize("command", ["run", "reclaim"])
def test_so_it_does_when_nobody_was_there(world: World, command: str) -> None:
    world.add(says_success(world, "a"))
    pid = world.up()
    until(lambda: world.attempts("a")[0].handle is not None)
    world.kill(pid)
    kill_after_record(world, "a")
    world.fairlane(command)
    did_it_once(world, "a")


def test_a_record_of_a_failure_is_no_success(world: World) -> None:
    world.settings('[agents.own]\nargv = ["{command}"]\nparser = "demo"\n')
    record = '{"type":"result","outcome":"failed"}'
    script = f"test $FAIRLANE_ATTEMPT = 2 || {{ echo '{record}'; exec sleep 600; }}"
    world.add({"id": "a", "agent": "own", "command": ["sh", "-c", script]})
    world.up()
    log = world.home / "runs" / "a" / "1" / "stdout.log"
    until(lambda: log.exists() and b"failed" in log.read_bytes())
    world.kill(world.runner("a")["pid"])
    until(lambda: len(world.attempts("a")) == 2)
    assert world.attempts("a")[0].outcome == "lost"


@pytest.mark.parametrize(("code", "outcome"), [(0, "succeeded"), (3, "failed")])
def test_an_exit_that_the_runner_has_seen_counts_though_it_was_killed(
    world: World, code: int, outcome: str
) -> None:
    """It is killed after the end of its agent and before its exit record is there."""
    folder, gate = world.home / "runs" / "a" / "1", world.home / "gate"
    world.add({"id": "a", "command": ["true"]})
    world.fairlane("lease")
    folder.mkdir(parents=True)
    os.mkfifo(gate)
    waits = (
        f"import sys; sys.path.append({str(Path(runner.__file__).parents[1])!r}); import runner;"
        f"runner.sweep = lambda *_: open({str(gate)!r}).read(); sys.exit(runner.main())"
    )
    argv = ("sh", "-c", f"exit {code}")
    orders = orders_text(Orders(folder, argv, world.home, dict(os.environ)))
    process = subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(orders)
    process.stdin.close()
    with gate.open("w"):  # the runner is there: its agent has ended
        assert not (folder / "exit.json").exists()
        process.kill()
        process.wait()
    ending = taken_in(world, folder)
    assert (ending.happening, world.processes()) == (HAPPENINGS[Outcome(outcome)], [])
