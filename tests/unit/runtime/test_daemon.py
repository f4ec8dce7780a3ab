"""The daemon's loop in virtual time: what it starts, takes in, retries, adopts and leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.daemon import notices
from fairlane.daemon.main import RunOptions
from fairlane.engine import attempts
from fairlane.engine.end_attempt import Ending
from fairlane.engine.look.workers import Asker
from fairlane.executors.base import Exit, Gone, Orders
from fairlane.model.errors import FairlaneError, TryLater
from fairlane.notify.send import Sent
from fairlane.runtime import ending, settle
from fairlane.runtime.launch import Host
from fairlane.runtime.lock import holder
from fairlane.runtime.watch import RunningAttempt
from fairlane.service import queue, tasks
from fairlane.settings import NotifyRule, Settings, host_name
from fairlane.simulation.processes import Script
from tests.unit.runtime.daemons import FAILS, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_what_is_ready_runs_and_is_done(world: World) -> None:
    world.add("a", "b")
    world.add("c", needs=["a"])
    daemon = world.run()
    assert world.statuses() == dict.fromkeys("abc", "done")
    assert world.launched() == ["a", "b", "c"]
    assert (daemon.attempts.ended, daemon.attempts.parked) == (3, 0)
    assert 2.0 <= world.clock.monotonic() < 4.0


def test_a_failure_is_retried_when_its_time_has_come_and_then_parked(world: World) -> None:
    world.policy('retry.max_attempts = 3\nretry.base = "30s"\n')
    world.scripts["a"] = FAILS
    world.add("a")
    daemon = world.run()
    assert world.statuses() == {"a": "parked"}
    assert [attempt.outcome for attempt in world.attempts("a")] == ["failed"] * 3
    assert world.clock.monotonic() >= 60
    assert daemon.attempts.parked == 1


def test_output_is_reported_while_it_runs(world: World) -> None:
    line = '{"type":"usage","tokens":{"input":7,"output":3}}\n'
    world.scripts["a"] = Script(seconds=30.0, prints=((1.0, line),))
    world.add("a", command=[], prompt="go", agent="demo")
    notes: list[int] = []

    def tick(daemon: object) -> None:
        open_attempts = [row for row in world.attempts("a") if row.ended_at is None]
        notes.extend(sum(row.tokens) for row in open_attempts if sum(row.tokens))

    daemon = world.daemon("up", tick)
    world.clock.after(5.0, lambda: daemon.stop("leave"))
    daemon.run()
    assert notes
    assert set(notes) == {10}


def test_a_daemon_leaves_its_agents_and_the_next_one_adopts_them(world: World) -> None:
    world.scripts["a"] = Script(seconds=100.0)
    world.add("a")
    world.up(5.0)
    assert world.statuses() == {"a": "running"}
    world.run()
    assert world.statuses() == {"a": "done"}
    assert world.launched() == ["a"]
    assert "adopted: a" in world.said


def test_an_end_while_no_daemon_runs_is_taken_in_by_the_next(world: World) -> None:
    world.scripts["a"] = Script(seconds=100.0)
    world.add("a")
    world.up(5.0)
    world.clock.wait(200.0)
    world.run()
    assert world.statuses() == {"a": "done"}
    assert world.launched() == ["a"]
    assert "ended meanwhile: a" in world.said


def test_an_attempt_that_vanished_is_lost_and_runs_again(world: World) -> None:
    world.policy('retry.base = "0s"\n')
    world.scripts["a"] = Script(seconds=100.0)
    world.add("a")
    world.up(5.0)
    world.host.kill(world.home / "runs" / "a" / "1")
    world.run()
    assert [attempt.outcome for attempt in world.attempts("a")] == ["lost", "succeeded"]
    assert "lost: a" in world.said


def test_a_run_that_has_not_shown_itself_is_revoked_and_starts_nothing_later(world: World) -> None:
    world.policy('retry.base = "0s"\n')
    world.add("a")
    died = Asker("box", None, "process", host_name())  # between its lease and its launch
    assert len(attempts.lease(world.context, died).documents) == 1
    world.run()
    assert [attempt.outcome for attempt in world.attempts("a")] == ["lost", "succeeded"]
    run, executor = world.home / "runs" / "a" / "1", world.context.executor()
    late = executor.launch(Orders(run, ("true",), run, {}))
    assert executor.poll(late) == Gone()


def test_an_attempt_that_vanishes_under_a_daemon_is_lost(world: World) -> None:
    world.policy('retry.base = "0s"\n')
    world.scripts["a"] = Script(seconds=50.0)
    world.add("a")
    world.clock.after(10.0, lambda: world.host.kill(world.home / "runs" / "a" / "1"))
    world.run()
    assert [attempt.outcome for attempt in world.attempts("a")] == ["lost", "succeeded"]


def test_shutdown_stops_the_agents_and_gives_their_tasks_back(world: World) -> None:
    world.scripts["a"] = Script(seconds=None, stop_seconds=3.0)
    world.add("a")
    world.up(5.0, "stop")
    assert world.statuses() == {"a": "queued"}
    (attempt,) = world.attempts("a")
    assert (attempt.outcome, attempt.detail) == ("environment", "the worker was shut down")
    assert world.clock.monotonic() >= 8.0


def test_a_canceled_attempt_is_stopped(world: World) -> None:
    world.scripts["a"] = Script(seconds=None)
    world.add("a")
    world.clock.after(10.0, lambda: tasks.cancel(world.context, ["a"]))
    world.run()
    assert world.statuses() == {"a": "canceled"}
    assert world.clock.monotonic() < 12.0


def test_a_timeout_is_the_executors_and_counts_as_a_failure(world: World) -> None:
    world.policy("retry.max_attempts = 1\n")
    world.scripts["a"] = Script(seconds=None)
    world.add("a", timeout="60s")
    world.run()
    (attempt,) = world.attempts("a")
    assert (attempt.outcome, attempt.detail) == ("failed", "timeout")


def test_leases_are_renewed_as_long_as_attempts_run(world: World) -> None:
    world.policy('lease.ttl = "90s"\n')
    world.scripts["a"] = Script(seconds=200.0)
    world.add("a")
    world.run()
    assert [attempt.outcome for attempt in world.attempts("a")] == ["succeeded"]


def test_what_another_process_adds_starts_at_once(world: World) -> None:
    world.clock.after(50.0, lambda: world.add("a"))
    world.up(60.0)
    assert world.events("started") == [50]


def test_a_time_alone_wakes_the_loop(world: World) -> None:
    world.add("a", not_before="2026-01-30T12:01:00Z")
    world.run()
    assert world.events("started") == [60]


def test_half_open_fires_in_an_idle_daemon(world: World) -> None:
    world.policy('breaker.launch_failures = 1\nbreaker.half_open_after = "60s"\nretry.base="0s"\n')
    world.scripts["a"] = Script(refused=FairlaneError("no such program"))
    world.add("a")
    world.clock.after(30.0, world.scripts.clear)
    world.up(90.0)
    assert world.statuses() == {"a": "done"}
    assert [attempt.outcome for attempt in world.attempts("a")] == ["launch_failed", "succeeded"]


def test_an_artifact_that_appears_is_noticed(world: World) -> None:
    world.add("p")
    world.add("a", parent="p", artifacts=["made"])
    world.clock.after(50.0, (world.home / "artifacts" / "p" / "made").touch)
    world.up(60.0)
    assert world.statuses() == {"p": "done", "a": "done"}
    assert world.events("started") == [0, 50]


def test_launches_are_apart_and_a_pause_between_two_of_them_is_respected(world: World) -> None:
    world.policy('capacity.spawn_delay = "20s"\n')
    for name in "abc":
        world.scripts[name] = Script(seconds=300.0)
    world.add("a", "b", "c")
    world.clock.after(30.0, lambda: queue.pause(world.context, "task:c", "wait"))
    world.up(100.0)
    assert world.events("started") == [0, 20]
    assert world.statuses() == {"a": "running", "b": "running", "c": "queued"}


def test_a_daemon_that_ends_starts_nothing_more_and_gives_the_rest_back(world: World) -> None:
    world.policy('capacity.spawn_delay = "20s"\n')
    world.scripts["a"] = Script(seconds=300.0)
    world.add("a", "b")
    world.up(5.0)
    assert world.statuses() == {"a": "running", "b": "queued"}
    assert world.launched() == ["a"]


def test_a_policy_that_is_broken_leaves_the_old_one_in_force(world: World) -> None:
    world.policy("caps.all = 1\n")
    world.clock.after(5.0, lambda: world.policy("caps.all = [\n"))
    world.add("a", not_before="2026-01-30T12:00:10Z")
    world.up(20.0)
    assert world.statuses() == {"a": "done"}
    assert sum("the old policy stays in force" in line for line in world.said) == 1


def test_a_larger_cap_is_noticed(world: World) -> None:
    world.policy("caps.all = 1\n")
    for name in "ab":
        world.scripts[name] = Script(seconds=1000.0)
    world.add("a", "b")
    world.clock.after(100.0, lambda: world.policy("caps.all = 2\n"))
    world.up(200.0)
    assert world.events("started") == [0, 100]


def test_the_end_of_the_work_is_logged_once(world: World) -> None:
    world.add("a")
    world.clock.after(50.0, lambda: world.add("b"))
    world.up(100.0)
    assert len(world.events("queue_empty")) == 2


def test_it_is_up_after_the_first_whole_turn(world: World) -> None:
    begun: list[bool] = []

    def tick(daemon: object) -> None:
        begun.append(bool((lock := holder(world.home)) and lock["begun"]))

    daemon = world.daemon("up", tick)
    world.clock.after(1.0, daemon.stop)
    daemon.run()
    assert begun[0] is False
    assert all(begun[1:])
    assert begun[1:]
    assert holder(world.home) is None


def test_a_bug_in_the_first_turn_ends_it_with_its_message(world: World) -> None:
    def tick(daemon: object) -> None:
        raise ValueError("bug")

    daemon = world.daemon("up", tick)
    with pytest.raises(ValueError, match="bug"):
        daemon.run()
    assert holder(world.home) is None


def test_a_busy_store_at_the_start_is_waited_for_and_then_the_reason(world: World) -> None:
    def tick(daemon: object) -> None:
        if world.clock.monotonic() < until:
            raise TryLater("the store is busy")

    until = 5.0
    daemon = world.daemon("up", tick)
    world.clock.after(20.0, daemon.stop)
    daemon.run()
    assert any("the store is busy" in line for line in world.said)
    until = float("inf")
    with pytest.raises(TryLater, match="busy"):
        world.daemon("up", tick).run()


def test_a_bug_in_a_later_turn_is_said_once_and_the_loop_goes_on(world: World) -> None:
    def tick(daemon: object) -> None:
        if 5.0 <= world.clock.monotonic() < 20.0:
            raise ValueError("odd")

    daemon = world.daemon("up", tick)
    world.clock.after(30.0, lambda: world.add("a"))
    world.clock.after(60.0, daemon.stop)
    daemon.run()
    assert world.statuses() == {"a": "done"}
    assert sum("ValueError: odd" in line for line in world.said) == 1
    assert "the loop goes on" in world.said


def test_an_end_that_cannot_be_read_is_parked_and_the_rest_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ending.ending_of

    def broken(host: Host, running: RunningAttempt) -> Ending:
        if running.task == "a":
            raise ValueError("odd")
        return real(host, running)

    monkeypatch.setattr(settle, "ending_of", broken)
    world.add("a", "b")
    world.run()
    assert world.statuses() == {"a": "parked", "b": "done"}
    assert world.attempts("a")[0].detail == "ValueError: odd"


def test_no_room_at_launch_is_the_environments(world: World) -> None:
    world.scripts["a"] = Script(refused=OSError(28, "No space left on device"))
    world.add("a")
    world.clock.after(60.0, world.scripts.clear)
    world.run()
    outcomes = [attempt.outcome for attempt in world.attempts("a")]
    assert outcomes[-1] == "succeeded"
    assert set(outcomes[:-1]) == {"environment"}


def test_a_runner_told_to_stop_by_somebody_else_is_no_failure(world: World) -> None:
    world.scripts["a"] = Script(exit=Exit(signal=15, stopped="stop"))
    world.add("a")
    world.clock.after(0.5, world.scripts.clear)
    world.run()
    assert [attempt.outcome for attempt in world.attempts("a")] == ["environment", "succeeded"]


def test_once_is_one_cycle_and_waits_for_what_it_started(world: World) -> None:
    world.add("a")
    world.add("b", needs=["a"])
    daemon = world.daemon()
    daemon.run(RunOptions(once=True))
    assert world.statuses() == {"a": "done", "b": "queued"}


def test_waiting_for_time_alone_ends_with_its_limit(world: World) -> None:
    world.add("a", not_before="2026-01-30T13:00:00Z")
    world.run(max_wait=60.0)
    assert world.statuses() == {"a": "queued"}
    assert 60.0 <= world.clock.monotonic() < 62.0


def test_events_are_sent_once_in_order_and_a_refusal_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[object, object]] = []

    def send(rule: object, document: dict[str, object], now: int, seconds: float) -> Sent:
        sent.append((document["event"], document["task"]))
        return Sent("it answered 404") if document["task"] == "b" else Sent()

    monkeypatch.setattr(notices, "send", send)
    world = World(tmp_path, {"notify": [{"command": ["true"], "on": ["parked", "queue_empty"]}]})
    world.policy("retry.max_attempts = 1\n")
    world.scripts |= {"a": FAILS, "b": FAILS}
    world.add("a", "b")
    world.up(20.0)
    world.up(10.0)  # the next daemon goes on where this one was
    assert sent == [("parked", "a"), ("parked", "b"), ("queue_empty", None)]
    refusals = [line for line in world.said if line.endswith("was not sent: it answered 404")]
    assert len(refusals) == 1
    assert refusals[0].startswith("warning: notify[0] (true): parked (event ")


def test_a_target_that_is_down_is_retried_for_a_day_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[str, list[object]] = {"up": [], "down": []}
    tries: list[float] = []
    back_at = 2 * 86_400.0
    rules = [{"command": [name], "on": ["parked"]} for name in ("down", "up")]
    world = World(tmp_path, {"notify": rules})

    def send(rule: NotifyRule, document: dict[str, object], now: int, seconds: float) -> Sent:
        assert rule.command
        if rule.command[0] == "down" and world.clock.monotonic() < back_at:
            tries.append(world.clock.monotonic())
            return Sent("it answered 503", again=True)
        sent[rule.command[0]].append(document["task"])
        return Sent()

    monkeypatch.setattr(notices, "send", send)
    world.policy('retry.max_attempts = 1\ncycle.interval = "1h"\n')
    world.scripts |= {"a": FAILS, "b": FAILS}
    world.add("a")
    world.add("b", not_before="2026-02-01T11:55:00Z")  # in two days less five minutes
    world.up(100.0)
    assert sent == {"up": ["a"], "down": []}
    waits = [round(later - tries[0]) for later in tries[1:5]]
    assert waits == [1, 3, 7, 15]  # twice as long each time
    assert world.said[-1] == "warning: notify[0] (down): the next daemon sends what was not sent"
    while (left := back_at - 600 - world.clock.monotonic()) > 0:
        world.clock.wait(left)
    world.up(1200.0)
    assert sent == {"up": ["a", "b"], "down": ["b"]}
    assert [line for line in world.said if "is too old and was not sent" in line]


def test_a_new_target_is_not_sent_what_was_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []

    def send(rule: object, document: dict[str, object], now: int, seconds: float) -> Sent:
        sent.append(document["task"])
        return Sent()

    monkeypatch.setattr(notices, "send", send)
    world = World(tmp_path)
    world.policy("retry.max_attempts = 1\n")
    world.scripts |= {"a": FAILS, "b": FAILS}
    world.add("a")
    world.run()
    world.settings = Settings.parse(
        {"worker": {"name": "box"}, "notify": [{"command": ["true"], "on": ["parked"]}]}
    )
    world.add("b")
    world.run()
    assert sent == ["b"]


def test_a_source_is_read_at_the_start_and_when_its_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    line = '{"id": "%s", "command": ["true"]}\n'
    file.write_text(line % "a")
    world = World(tmp_path, {"source": [{"type": "jsonl", "path": "tasks.jsonl"}]})
    world.clock.after(30.0, lambda: file.write_text(line % "a" + line % "b"))
    world.up(60.0)
    assert set(world.statuses().values()) == {"done"}
    assert world.events("started") == [0, 30]


def test_a_probe_that_has_used_tokens_lets_the_rest_start(world: World) -> None:
    throttled = '{"type":"result","outcome":"throttled","retry_after":5}\n'
    used = '{"type":"progress","text":"step 1","tokens":{"input":7,"output":3}}\n'
    done = '{"type":"result","outcome":"succeeded"}\n'
    world.scripts["a/1"] = Script(exit=Exit(exit_code=1), prints=((0.5, throttled),))
    works = Script(seconds=40.0, prints=((1.0, used), (39.0, done)))
    world.scripts |= dict.fromkeys(("a/2", "b", "c"), works)
    tasks.add(world.context, [{"id": "a", "agent": "demo", "prompt": "x"}])
    rest = [{"id": name, "agent": "demo", "prompt": "x"} for name in "bc"]
    world.clock.after(2.0, lambda: tasks.add(world.context, rest))
    world.run()
    assert world.statuses() == dict.fromkeys("abc", "done")
    throttled_at = world.events("cooldown")[0]
    starts = [at for at in world.events("leased") if at > throttled_at]
    assert len(starts) == 3
    assert starts[2] - starts[0] < 5  # neither the end of the probe nor its minute was waited for
