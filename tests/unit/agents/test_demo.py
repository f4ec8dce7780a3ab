"""The stand-in: same seed, same run; every ending can be had."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from fairlane.agents.contract import shipped
from fairlane.agents.parsers import parser_for
from fairlane.model.task import Outcome, Task
from tests.launching import launch_of
from tests.unit.agents.transcripts import NOW
from tests.waiting import LIMIT_SECONDS

QUICK = {"FAIRLANE_DEMO_SECONDS": "0.02", "FAIRLANE_DEMO_FAIL": "0", "FAIRLANE_DEMO_THROTTLE": "0"}


def run(folder, task="t1", attempt="1", **knobs):
    """The verdict on a run of the stand-in, and what it printed."""
    agent = shipped()["demo"]
    launch = launch_of(agent, Task(task), "go")
    env = {"FAIRLANE_TASK": task, "FAIRLANE_ATTEMPT": attempt, **QUICK}
    env |= {f"FAIRLANE_DEMO_{name}": value for name, value in knobs.items()}
    ended = subprocess.run(
        launch.argv,
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    parser = parser_for(agent)
    for line in ended.stdout.splitlines():
        list(parser.line(line))
    code = ended.returncode
    return parser.verdict(
        code if code >= 0 else None, -code if code < 0 else None, ended.stderr, NOW
    ), ended


def test_the_same_seed_gives_the_same_run(tmp_path):
    first, told = run(tmp_path)
    again, told_again = run(tmp_path)
    assert told.stdout == told_again.stdout
    assert first == again
    assert first.outcome is Outcome.SUCCEEDED
    assert first.tokens is not None
    assert first.tokens.input > 0
    assert first.usd is not None
    assert run(tmp_path, SEED="1")[1].stdout != told.stdout
    assert run(tmp_path, attempt="2")[1].stdout != told.stdout


def test_progress_grows_to_the_result(tmp_path):
    _, told = run(tmp_path)
    inputs = [json.loads(line)["tokens"]["input"] for line in told.stdout.splitlines()[1:]]
    assert inputs == sorted(inputs)
    assert len(inputs) == 5


@pytest.mark.parametrize(
    ("knob", "outcome"),
    [("FAIL", Outcome.FAILED), ("THROTTLE", Outcome.THROTTLED), ("LOST", Outcome.FAILED)],
)
def test_every_ending_can_be_had(tmp_path, knob, outcome):
    verdict, _ = run(tmp_path, **{knob: "1"}, RETRY_AFTER="7")
    assert verdict.outcome is outcome
    assert verdict.retry_after == (7_000_000 if knob == "THROTTLE" else None)
    assert (verdict.detail == f"signal {signal.SIGKILL.value}") is (knob == "LOST")


def test_it_can_fail_at_the_first_attempt_alone(tmp_path):
    assert run(tmp_path, FAIL="first")[0].outcome is Outcome.FAILED
    assert run(tmp_path, attempt="2", FAIL="first")[0].outcome is Outcome.SUCCEEDED


def test_it_writes_a_file_where_it_succeeds(tmp_path):
    run(tmp_path, FILE="{task}.txt")
    assert (tmp_path / "t1.txt").read_text() == "t1, attempt 1\n"


def test_knobs_that_are_no_numbers_are_as_usual(tmp_path):
    assert run(tmp_path, TOKENS="many", FAIL="")[0].tokens == run(tmp_path)[0].tokens


def test_it_stops_when_interrupted(tmp_path):
    launch = launch_of(shipped()["demo"], Task("t1"), "go")
    env = {"FAIRLANE_TASK": "t1", "FAIRLANE_DEMO_SECONDS": "3600"}
    process = subprocess.Popen(
        launch.argv, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 130
    assert json.loads(told)["detail"] == "interrupted"
