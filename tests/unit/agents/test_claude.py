"""What Claude Code's records mean."""

from __future__ import annotations

import json

import pytest

from fairlane.model.instant import DAY, SECOND
from fairlane.model.project import Tokens
from fairlane.model.task import Outcome
from tests.unit.agents.transcripts import (
    NOW,
    SESSION,
    answer,
    init,
    lines,
    read,
    refused,
    result,
    window,
)

USED = Tokens(1000, 50, 300, 200)


def test_a_result_without_error_is_success_with_usage_of_all_models():
    verdict, seen = read("claude", lines(init(), answer(), result()))
    assert verdict.outcome is Outcome.SUCCEEDED
    assert (verdict.tokens, verdict.usd) == (USED, 7650)
    assert (verdict.session, verdict.model, verdict.summary) == (SESSION, "claude-x", "Hello")
    assert [each.kind for each in seen] == ["session", "text", "usage", "final"]
    assert seen[2].tokens == Tokens(1000, 1, 300, 200)


def test_a_success_says_what_was_not_permitted():
    denied = [{"tool_name": "Bash"}, {"tool_name": "Write"}, {"tool_name": "Bash"}, None]
    verdict, _ = read("claude", lines(init(), result(permission_denials=denied)))
    assert verdict.detail == "refused by permissions (4): ?, Bash, Write"


def test_the_result_wins_over_the_exit_code():
    assert read("claude", lines(init(), result()), None, 15)[0].outcome is Outcome.SUCCEEDED


def test_usage_without_models_is_taken_and_answers_are_counted_once():
    plain = {"input_tokens": 5, "output_tokens": 6, "cache_read_input_tokens": 7}
    told = lines(init(), result(modelUsage={}, usage=plain))
    assert read("claude", told)[0].tokens == Tokens(5, 6, 7, 0)
    told = lines(init(), answer(), answer(), answer(name="msg_2"), refused("API Error: 500", 500))
    assert read("claude", told, 1)[0].tokens == Tokens(2000, 2, 600, 400)


def test_models_are_added_up():
    models = {"a": {"inputTokens": 1}, "b": {"inputTokens": 2, "outputTokens": 3}}
    assert read("claude", lines(result(modelUsage=models)))[0].tokens == Tokens(3, 3, 0, 0)


@pytest.mark.parametrize(
    "subtype", ["error_max_turns", "error_during_execution", "error_max_budget_usd"]
)
def test_other_subtypes_fail(subtype):
    verdict, _ = read("claude", lines(init(), result("", subtype=subtype, is_error=True)), 1)
    assert (verdict.outcome, verdict.detail) == (Outcome.FAILED, subtype)


def test_a_short_throttle_says_how_long():
    retry = {"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"}
    told = lines(
        init(),
        retry | {"attempt": 1, "retry_delay_ms": 7000},
        answer("API Error", error="rate_limit"),
        refused("API Error: Request rejected (429) · slow down", 429),
    )
    verdict, seen = read("claude", told, 1)
    assert verdict.outcome is Outcome.THROTTLED
    assert verdict.retry_after == 7 * SECOND
    assert verdict.resets_at is None
    assert verdict.detail == "API Error: Request rejected (429) · slow down"
    assert seen[1].kind == "retry"
    assert seen[1].text == "rate_limit, again in 7 s"


def test_an_overloaded_provider_throttles():
    told = lines(init(), answer("x", error="overloaded"), refused("API Error: Repeated 529", 529))
    assert read("claude", told, 1)[0].outcome is Outcome.THROTTLED


def test_a_used_up_window_says_when_it_opens():
    at = NOW // SECOND + 3600
    told = lines(init(), window("rejected", at), refused("You've hit your session limit", 429))
    verdict, seen = read("claude", told, 1)
    assert (verdict.outcome, verdict.resets_at) == (Outcome.THROTTLED, at * SECOND)
    assert verdict.retry_after is None
    assert seen[1].text == "five_hour rejected"


def test_no_wait_is_longer_than_eight_days():
    told = lines(window("rejected", NOW // SECOND + 10**8), refused("limit", 429))
    assert read("claude", told, 1)[0].resets_at == NOW + 8 * DAY


def test_an_account_without_overage_is_no_limit():
    told = lines(init(), window("allowed", 1, overageStatus="rejected"), result())
    assert read("claude", told)[0].outcome is Outcome.SUCCEEDED
    told = lines(init(), window("allowed_warning", 1), refused("API Error: 500 oops", 500))
    assert read("claude", told, 1)[0].outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("said", "resets_at"),
    [
        ("Claude AI usage limit reached|1769781600", 1769781600 * SECOND),
        ("You’ve hit your limit · resets 3pm (UTC)", NOW + 3 * 3600 * SECOND),
        ("You've hit your weekly limit · resets Mon 12:00am (UTC)", NOW + 60 * 3600 * SECOND),
    ],
)
def test_limits_of_older_versions_are_told_in_the_result(said, resets_at):
    verdict, _ = read("claude", lines(init(), refused(said)), 1)
    assert (verdict.outcome, verdict.resets_at) == (Outcome.THROTTLED, resets_at)


def test_the_words_of_an_agent_are_no_limit():
    said = "You've hit your usage limit, says the page; 429 too many requests; not logged in"
    assert read("claude", lines(init(), answer(said), result(said)))[0].outcome is Outcome.SUCCEEDED
    told = lines(init(), answer(said), result(said, subtype="error_max_turns", is_error=True))
    assert read("claude", told, 1)[0].outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("record", "error", "pause"),
    [
        (refused("Not logged in · Please run /login"), "authentication_failed", "not logged in"),
        (refused("Not logged in · Please run /login"), "", "not logged in"),
        (refused("Failed to authenticate. API Error: 401", 401), "", "not logged in"),
        (refused("Credit balance is too low", 400), "billing_error", "out of credits"),
        (refused("Credit balance is too low", 400), "", "out of credits"),
    ],
)
def test_what_only_a_person_can_mend_pauses_the_pool(record, error, pause):
    verdict, _ = read("claude", lines(init(), answer("x", error=error), record), 1)
    assert (verdict.outcome, verdict.pause) == (Outcome.ENVIRONMENT, pause)


def test_credits_that_must_be_bought_are_no_wait():
    told = lines(window("rejected", 9, errorCode="credits_required"), refused("limit", 429))
    assert read("claude", told, 1)[0].pause == "out of credits"


def test_of_several_results_the_one_that_answers_counts():
    later = result("background", is_error=True, origin={"kind": "task-notification"})
    verdict, _ = read("claude", lines(init(), result("the answer"), later))
    assert (verdict.outcome, verdict.summary) == (Outcome.SUCCEEDED, "the answer")
    verdict, _ = read("claude", lines(init(), result("one"), result("two")))
    assert verdict.summary == "two"


def test_an_interrupted_run_is_no_success_whatever_its_exit_code():
    verdict, _ = read("claude", lines(init()), 0)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.detail == "exit 0: it ended without a final record"
    assert read("claude", lines(init(), answer()), 143)[0].detail == "exit 143"
    assert read("claude", lines(init(), answer()), None, 9)[0].detail == "signal 9"


def test_a_program_that_says_nothing_never_started():
    verdict, _ = read("claude", [], 1, stderr="error: unknown option '--bogus'\n\n")
    assert verdict.outcome is Outcome.LAUNCH_FAILED
    assert verdict.detail == "exit 1: error: unknown option '--bogus'"
    assert read("claude", ["plain text"], 0)[0].outcome is Outcome.SUCCEEDED


def test_a_session_that_is_not_there_is_not_kept():
    why = ["No conversation found"]
    told = lines(refused("", subtype="error_during_execution", errors=why))
    verdict, seen = read("claude", told, 1)
    assert verdict.session is None
    assert not any(each.session for each in seen)
    assert verdict.detail == "error_during_execution: No conversation found"


def test_subagents_do_not_decide():
    inner = answer("x", "msg_2", error="rate_limit", parent_tool_use_id="toolu_1")
    told = lines(init(), answer(), inner, refused("API Error: 500 oops", 500))
    assert read("claude", told, 1)[0].outcome is Outcome.FAILED


def test_a_garbled_stream_is_read_as_far_as_it_goes():
    whole = lines(init(), answer(), result())
    told = ["", "not json", '{"type":', "[1]", "\ufeff" + whole[0], whole[1][:-20]]
    told += ['{"type": 3}', '{"type": "new_thing"}', '{"type": "assistant"}', "\0", whole[2]]
    verdict, _ = read("claude", told)
    assert (verdict.outcome, verdict.tokens) == (Outcome.SUCCEEDED, USED)


def test_texts_are_bounded_and_clean():
    said = "\x1b[31mred\x1b[0m \ud800\x07" + "x" * 100_000
    verdict, seen = read("claude", lines(init(), answer(said), result(said, is_error=True)), 1)
    assert len(verdict.detail) <= 300
    assert len(verdict.summary) <= 4000
    assert verdict.summary.startswith("red ?x")
    json.dumps([each.text for each in seen]).encode()
    verdict.detail.encode()


def test_a_huge_line_is_not_read():
    told = [json.dumps(result("x" * (9 * 1024 * 1024))), *lines(init(), result())]
    assert read("claude", told)[0].summary == "Hello"
