"""What the ends of processes mean for their tasks, and what limits do."""

from __future__ import annotations

import sys
from itertools import pairwise
from shlex import quote

import pytest

from fairlane.engine.end_attempt import Report
from fairlane.model.instant import SECOND, parse_instant
from fairlane.service import explain, queue
from tests import holder
from tests.daemon.world import World, until

pytestmark = pytest.mark.slow


def test_a_command_that_does_not_exist_is_parked_after_three_launches(world: World) -> None:
    rules = 'retry.base = "0s"\nretry.max_attempts = 9\nbreaker.half_open_after = "none"\n'
    world.policy(rules + 'cooldown.base = "100ms"\n')
    world.add({"id": "a", "command": ["no-such-program"]}, world.marking("b", 0.1))
    world.run()
    assert world.statuses() == {"a": "parked", "b": "done"}
    assert [each.outcome for each in world.attempts("a")] == ["launch_failed"] * 3
    with world.context() as context, context.store.read() as reading:
        task = reading.task("a")
    assert task is not None
    assert "no-such-program is not on the PATH" in task.reason


def test_a_missing_program_is_not_tried_again_at_once(world: World) -> None:
    world.policy('preset = "depth-first"\n')
    world.add({"id": "a", "command": ["no-such-program"]})
    world.run("--max-wait", "0s")
    assert [each.outcome for each in world.attempts("a")] == ["launch_failed"]
    assert [hold["code"] for hold in world.fairlane("why", "a")["holds"]] == ["backoff"]


def test_failures_wait_and_are_parked_and_retried_by_a_person(world: World) -> None:
    world.policy('retry.base = "0s"\nretry.max_attempts = 2\n')
    world.add({"id": "a", "command": ["sh", "-c", f'test -f "{world.marks}/now"']})
    world.run()
    assert world.statuses()["a"] == "parked"
    (world.marks / "now").write_text("")
    world.fairlane("retry", "a")
    world.run()
    assert world.statuses()["a"] == "done"


def test_a_timeout_counts_as_failed(world: World) -> None:
    world.policy('attempt.timeout = "300ms"\nretry.max_attempts = 1\n')
    world.add(world.marking("a", 3600))
    world.run()
    assert world.attempts("a")[0].detail == "timeout"
    assert world.statuses()["a"] == "parked"
    assert world.processes() == []


def test_a_throttle_cools_the_pool_and_costs_no_attempt(world: World) -> None:
    world.policy('cooldown.base = "1s"\n')
    env = {"FAIRLANE_DEMO_SECONDS": "0.1", "FAIRLANE_DEMO_FAIL": "0"}
    throttled = env | {"FAIRLANE_DEMO_THROTTLE": "first", "FAIRLANE_DEMO_RETRY_AFTER": "4"}
    world.add({"id": "a", "agent": "demo", "prompt": "x", "env": throttled})
    world.up()
    until(lambda: [each.outcome for each in world.attempts("a")] == ["throttled"])
    with world.context() as context:
        told = explain.why(context, "a")
    assert [hold["code"] for hold in told["holds"]] == ["cooldown"]
    assert told["holds"][0]["until"]
    until(lambda: world.statuses()["a"] == "done")
    with world.context() as context, context.store.read() as reading:
        events = [event.kind for event in reading.events(task="a")]
    assert "failed" not in events


def test_a_throttle_of_an_agent_without_a_pool_is_waited_for(world: World) -> None:
    said = '{"type": "result", "outcome": "throttled", "detail": "429", "retry_after": 60}'
    world.settings(f"[agents.own]\nparser = 'demo'\nargv = ['echo', '{said}']\n")
    world.add({"id": "a", "agent": "own", "prompt": "x"})
    world.run("--max-wait", "0s")
    assert [each.outcome for each in world.attempts("a")] == ["throttled"]
    (hold,) = world.fairlane("why", "a")["holds"]
    assert hold["code"] == "backoff"
    until_then = parse_instant(hold["until"]) - world.attempts("a")[0].ended_at
    assert until_then == 60 * SECOND


def test_demo_tokens_and_cost_are_booked(world: World) -> None:
    env = {"FAIRLANE_DEMO_SECONDS": "0.1", "FAIRLANE_DEMO_FAIL": "0", "FAIRLANE_DEMO_THROTTLE": "0"}
    world.add({"id": "a", "agent": "demo", "prompt": "x", "env": env})
    world.run()
    attempt = world.attempts("a")[0]
    assert sum(attempt.tokens) > 0
    assert attempt.usd > 0
    assert world.fairlane("stats")["projects"][0]["tokens"] > 0


def test_a_budget_that_stops_gives_the_work_back(world: World) -> None:
    world.policy(
        '[[budget]]\nscope = "all"\ntokens = 500\nwindow = "total"\non_exceeded = "stop"\n'
    )
    env = {"FAIRLANE_DEMO_FAIL": "0", "FAIRLANE_DEMO_THROTTLE": "0"}
    env |= {"FAIRLANE_DEMO_SECONDS": "36000"}
    world.add({"id": "a", "agent": "demo", "prompt": "x", "estimate_tokens": 1, "env": env})
    world.up()
    with world.context() as context:
        lease = until(lambda: world.attempts("a"))[0].lease
        world.runner("a")
        holder.report(context, lease, Report(tokens=(600, 0, 0, 0)))
        until(lambda: world.attempts("a")[0].outcome == "released")
    assert world.statuses()["a"] == "queued"
    assert world.fairlane("why", "a")["holds"][0]["code"] == "budget"


def test_direct_mode_starts_over_the_caps_and_holds_the_rest(world: World) -> None:
    world.policy('capacity.mode = "direct"\ncaps.all = 1\n')
    for name in ("a", "b"):
        script = world.waiting(name)["command"]
        world.fairlane("add", "--id", name, "--agent", "shell", "--", *script)
    assert world.statuses() == {"a": "running", "b": "running"}
    world.policy('capacity.mode = "deferred"\ncaps.all = 1\n')
    world.add(world.marking("c", 0.1))
    assert world.fairlane("plan")["picks"] == []
    world.let_go("a", "b")
    world.run()
    assert set(world.statuses().values()) == {"done"}
    assert world.attempts("a")[0].direct
    assert not world.attempts("c")[0].direct


def test_a_pause_between_two_starts_of_one_cycle_is_respected(world: World) -> None:
    world.policy('capacity.spawn_delay = "1500ms"\n')
    world.add(*(world.marking(name, 0.1) for name in "abc"))
    world.up()
    world.started("a")
    with world.context() as context:  # in good time: `c` starts twice the delay after `a`
        queue.pause(context)
    until(lambda: "leased" not in world.statuses().values())
    assert world.statuses()["c"] == "queued"
    assert world.attempts("c")[0].outcome == "released"
    assert not (world.marks / "c").exists()


def test_children_and_artifacts_from_plan_to_code(world: World) -> None:
    world.policy("attempt.may_add.command = true\n")
    add = f"{sys.executable} -m fairlane add --agent shell --parent $FAIRLANE_TASK"
    steps = ["plan", "spec", "phase", "code"]
    script = "true"
    for before, kind in reversed(list(pairwise(steps))):
        file = f"{before}.md"
        made = f"echo x > $FAIRLANE_ARTIFACTS/{file}; {add} --id {kind}1 --kind {kind}"
        script = f"{made} --artifact {file} -- sh -c {quote(script)}"
    world.add({"id": "plan1", "kind": "plan", "command": ["sh", "-c", script]})
    world.run()
    assert world.statuses() == {f"{kind}1": "done" for kind in steps}
    with world.context() as context, context.store.read() as reading:
        code = reading.task("code1")
    assert code is not None
    assert (code.parent, code.depth, code.artifacts) == ("phase1", 3, ("phase.md",))


def test_an_idle_daemon_wakes_for_the_half_open_try(world: World) -> None:
    world.policy('breaker.launch_failures = 1\nbreaker.half_open_after = "4s"\n')
    program = world.home / "program"
    world.add({"id": "a", "command": [str(program)]})
    world.up()
    until(lambda: world.statuses()["a"] == "parked")
    program.symlink_to("/bin/true")
    until(lambda: world.statuses()["a"] == "done")
    assert [each.outcome for each in world.attempts("a")] == ["launch_failed", "succeeded"]


def test_a_run_does_not_wait_for_a_half_open_try(world: World) -> None:
    world.policy('breaker.launch_failures = 1\nbreaker.half_open_after = "1h"\n')
    world.add({"id": "a", "command": [str(world.home / "program")]})
    assert world.run()["parked_now"] == 1
