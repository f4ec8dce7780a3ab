"""The real Codex against a model API on loopback."""

from __future__ import annotations

import json

import pytest

from fairlane.model.project import Tokens
from fairlane.model.task import Outcome
from tests.agents.model_api import CACHE_READ, HANG, INPUT, OUTPUT, ModelApi, refuse, say, use
from tests.agents.running import gives_namespaces, left_over, processes_with, stop
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]
#: The command line of what the tool runs.
SLEEP = "sleep\0" + "72.25"
ONE = Tokens(INPUT, OUTPUT, CACHE_READ, 0)


def test_a_success_has_its_tokens(runner_of, repository):
    with ModelApi(say("Hello")) as api:
        runner = runner_of("codex", api)
        verdict = runner.run(repository, "--help me, and $(say) `hello`")
    assert verdict.outcome is Outcome.SUCCEEDED, (verdict, runner.stderr)
    assert (verdict.tokens, verdict.summary, verdict.usd) == (ONE, "Hello", None)
    assert "--help me, and $(say) `hello`" in json.dumps(api.requests[-1]["input"])


def test_it_changes_a_file_of_its_worktree(runner_of, repository):
    command = "echo made by a tool > made.txt"
    with ModelApi(use("exec_command", cmd=command, yield_time_ms=5000), say("Done")) as api:
        runner = runner_of("codex", api)
        verdict = runner.run(repository)
    assert verdict.outcome is Outcome.SUCCEEDED
    assert verdict.tokens == Tokens(2 * INPUT, 2 * OUTPUT, 2 * CACHE_READ, 0)
    made = repository / "made.txt"
    if not made.exists() and not gives_namespaces():
        pytest.skip("this kernel gives codex no sandbox")
    assert made.exists(), api.requests[-1]["input"]
    assert made.read_text() == "made by a tool\n"


def test_after_a_resume_only_what_is_new_counts(runner_of, repository):
    with ModelApi(say("Hello")) as api:
        runner = runner_of("codex", api)
        first = runner.run(repository, "the first words")
        second = runner.run(repository, "the second words", first.session, first.tokens)
    assert (second.outcome, second.session) == (Outcome.SUCCEEDED, first.session)
    assert second.tokens == ONE
    asked = json.dumps(api.requests[-1]["input"])
    assert "the first words" in asked
    assert "the second words" in asked


def test_a_throttled_session_can_go_on(runner_of, repository):
    with ModelApi(refuse(429, retry_after="1"), say("Hello")) as api:
        runner = runner_of("codex", api)
        verdict = runner.run(repository, "the first words")
        again = runner.run(repository, "the second words", verdict.session, verdict.tokens)
    assert (verdict.outcome, verdict.retry_after) == (Outcome.THROTTLED, None)
    assert (again.outcome, again.session) == (Outcome.SUCCEEDED, verdict.session), again


@pytest.mark.parametrize(
    ("answer", "outcome", "pause"),
    [
        (refuse(500, "server_error"), Outcome.FAILED, ""),
        (refuse(400, "invalid_request_error"), Outcome.FAILED, ""),
        (refuse(401, "authentication_error"), Outcome.ENVIRONMENT, "not logged in"),
    ],
)
def test_errors_of_the_provider(runner_of, repository, answer, outcome, pause):
    with ModelApi(answer) as api:
        verdict = runner_of("codex", api).run(repository)
    assert (verdict.outcome, verdict.pause) == (outcome, pause), verdict


def test_a_session_that_is_gone_is_told_and_not_kept(runner_of, repository):
    with ModelApi(say("Hello")) as api:
        gone = "01a1e1e1-9fe6-7581-afa5-5d3616e9560d"
        verdict = runner_of("codex", api).run(repository, session=gone)
    assert (verdict.outcome, verdict.session) == (Outcome.LAUNCH_FAILED, None)
    assert "no rollout found" in verdict.detail


@pytest.mark.parametrize(
    "script",
    [(HANG,), (use("exec_command", cmd="sleep 72.25", yield_time_ms=30000), say("Done"))],
    ids=["model", "tool"],
)
def test_a_stop_leaves_nothing_behind(runner_of, repository, script):
    def soon(process, launch):
        until(lambda: runner.lines and api.asked.is_set() and (hangs or processes_with(SLEEP)))
        stop(process, launch)

    hangs = script == (HANG,)

    with ModelApi(*script) as api:
        runner = runner_of("codex", api)
        runner.env = {"FAIRLANE_TEST_MARK": str(repository)}
        verdict = runner.run(repository, meanwhile=soon)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.session is not None
    assert not left_over(str(repository), SLEEP)
