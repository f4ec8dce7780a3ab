"""The real Claude Code against a model API on loopback."""

from __future__ import annotations

import json
from functools import partial

import pytest

from fairlane.model.instant import SECOND
from fairlane.model.project import Tokens
from fairlane.model.task import Outcome
from tests.agents.model_api import (
    CACHE_READ,
    CACHE_WRITE,
    HANG,
    INPUT,
    OUTPUT,
    ModelApi,
    refuse,
    say,
    use,
)
from tests.agents.running import left_over, processes_with, stop
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]
#: The command line of what the tool runs.
SLEEP = "sleep\0" + "71.5"
ONE = Tokens(INPUT, OUTPUT, CACHE_READ, CACHE_WRITE)


def times(count: int) -> Tokens:
    return Tokens(*(each * count for each in ONE))


def test_a_success_has_its_tokens_and_dollars(runner_of, repository):
    with ModelApi(say("Hello")) as api:
        runner = runner_of("claude", api)
        verdict = runner.run(repository, "--help me, and $(say) `hello`")
    assert verdict.outcome is Outcome.SUCCEEDED, (verdict, runner.stderr)
    assert (verdict.tokens, verdict.summary) == (ONE, "Hello")
    assert verdict.usd is not None
    assert verdict.usd > 0
    assert verdict.model is not None
    asked = json.dumps(api.requests[-1]["messages"])
    assert "--help me, and $(say) `hello`" in asked


def test_it_changes_files_of_its_worktree_and_none_beside_it(runner_of, repository):
    inside, beside = repository / "made.txt", repository.parent / "beside.txt"
    write = partial(use, "Write", content="made by a tool\n")
    script = (write(file_path=str(inside)), write(file_path=str(beside)), say("Done"))
    with ModelApi(*script) as api:
        verdict = runner_of("claude", api).run(repository)
    assert (verdict.outcome, verdict.tokens) == (Outcome.SUCCEEDED, times(3))
    assert inside.read_text() == "made by a tool\n"
    assert not beside.exists()
    assert verdict.detail == "refused by permissions (1): Write"


def test_permission_to_read_changes_nothing(runner_of, repository):
    made = repository / "made.txt"
    with ModelApi(use("Write", file_path=str(made), content="x"), say("Done")) as api:
        runner = runner_of("claude", api)
        runner.permissions = "read"
        runner.run(repository)
    assert not made.exists()


def test_a_session_goes_on(runner_of, repository):
    with ModelApi(say("Hello")) as api:
        runner = runner_of("claude", api)
        first = runner.run(repository, "the first words")
        second = runner.run(repository, "the second words", first.session)
    assert (second.outcome, second.session) == (Outcome.SUCCEEDED, first.session)
    assert second.tokens == ONE  # of this attempt alone
    asked = json.dumps(api.requests[-1]["messages"])
    assert "the first words" in asked
    assert "the second words" in asked


def test_a_session_that_is_gone_is_told_and_not_kept(runner_of, repository):
    with ModelApi(say("Hello")) as api:
        gone = "6592793b-a9a6-4e06-9ae7-cd5c405c97c7"
        verdict = runner_of("claude", api).run(repository, session=gone)
    assert (verdict.outcome, verdict.session) == (Outcome.FAILED, None)
    assert "No conversation found" in verdict.detail


def test_a_throttle_says_how_long_to_wait_and_the_session_can_go_on(runner_of, repository):
    with ModelApi(refuse(429, retry_after="3"), refuse(429, retry_after="3"), say("Hello")) as api:
        runner = runner_of("claude", api)
        verdict = runner.run(repository, "the first words")
        again = runner.run(repository, "the second words", verdict.session)
    assert (verdict.outcome, verdict.retry_after) == (Outcome.THROTTLED, 3 * SECOND)
    assert verdict.resets_at is None
    assert again.outcome is Outcome.SUCCEEDED, again
    assert again.session == verdict.session


@pytest.mark.parametrize(
    ("answer", "outcome", "pause"),
    [
        (refuse(500, "api_error"), Outcome.FAILED, ""),
        (refuse(400, "invalid_request_error"), Outcome.FAILED, ""),
        (refuse(529, "overloaded_error"), Outcome.THROTTLED, ""),
        (refuse(401, "authentication_error"), Outcome.ENVIRONMENT, "not logged in"),
    ],
)
def test_errors_of_the_provider(runner_of, repository, answer, outcome, pause):
    with ModelApi(answer) as api:
        verdict = runner_of("claude", api).run(repository)
    assert (verdict.outcome, verdict.pause) == (outcome, pause), verdict


def test_without_an_account_the_pool_is_paused(runner_of, repository):
    with ModelApi(say("Hello")) as api:
        runner = runner_of("claude", api)
        runner.env = {"ANTHROPIC_API_KEY": ""}
        verdict = runner.run(repository)
    assert (verdict.outcome, verdict.pause) == (Outcome.ENVIRONMENT, "not logged in")
    assert not api.requests


@pytest.mark.parametrize(
    "script",
    [(HANG,), (use("Bash", command="sleep 71.5", description="wait"), say("Done"))],
    ids=["model", "tool"],
)
def test_a_stop_leaves_nothing_behind(runner_of, repository, script):
    def soon(process, launch):
        until(lambda: runner.lines and api.asked.is_set() and (hangs or processes_with(SLEEP)))
        stop(process, launch)

    hangs = script == (HANG,)

    with ModelApi(*script) as api:
        runner = runner_of("claude", api)
        runner.env = {"FAIRLANE_TEST_MARK": str(repository)}
        verdict = runner.run(repository, meanwhile=soon)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.session is not None
    assert not left_over(str(repository), SLEEP)


@pytest.mark.parametrize("permissions", ["read", "edit"])
def test_hooks_of_a_repository_run_without_a_question(runner_of, repository, permissions):
    hook = {"type": "command", "command": "echo ran > hook.txt"}
    settings = {"hooks": {"SessionStart": [{"hooks": [hook]}]}}
    (repository / ".claude").mkdir()
    (repository / ".claude" / "settings.json").write_text(json.dumps(settings))
    with ModelApi(say("Hello")) as api:
        runner = runner_of("claude", api)
        runner.permissions = permissions
        runner.run(repository)
    assert (repository / "hook.txt").exists()
