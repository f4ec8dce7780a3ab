"""What Codex's records mean."""

from __future__ import annotations

import pytest

from fairlane.model.instant import HOUR, SECOND
from fairlane.model.project import Tokens
from fairlane.model.task import Outcome
from tests.unit.agents.transcripts import NOW, SESSION, failed_turn, lines, read, turn

USAGE = {"input_tokens": 1300, "cached_input_tokens": 300, "output_tokens": 50}


def test_a_completed_turn_is_success():
    verdict, seen = read("codex", lines(*turn(**USAGE)))
    assert verdict.outcome is Outcome.SUCCEEDED
    assert verdict.tokens == Tokens(1000, 50, 300, 0)
    assert (verdict.session, verdict.summary, verdict.usd) == (SESSION, "Done", None)
    assert [each.kind for each in seen] == ["session", "text", "final"]


def test_four_counters_are_disjoint():
    usage = USAGE | {"cache_write_input_tokens": 100, "reasoning_output_tokens": 20}
    assert read("codex", lines(*turn(**usage)))[0].tokens == Tokens(900, 50, 300, 100)


def test_after_a_resume_only_what_is_new_counts():
    before = Tokens(600, 20, 300, 0)
    verdict, _ = read("codex", lines(*turn(**USAGE)), baseline=before)
    assert verdict.tokens == Tokens(400, 30, 0, 0)
    verdict, _ = read("codex", lines(*turn(**USAGE)), baseline=Tokens(9000, 1, 0, 0))
    assert verdict.tokens == Tokens(1000, 50, 300, 0)  # not that thread's totals


def test_a_warning_is_no_verdict():
    warning = {"type": "item.completed", "item": {"type": "error", "message": "unknown model"}}
    verdict, seen = read("codex", lines(warning, *turn(**USAGE)))
    assert verdict.outcome is Outcome.SUCCEEDED
    assert seen[0].kind == "error"


def test_an_error_that_was_overcome_is_no_verdict():
    error = {"type": "error", "message": "last status: 429 Too Many Requests"}
    assert read("codex", lines(error, *turn(**USAGE)))[0].outcome is Outcome.SUCCEEDED


def test_too_many_requests_throttle():
    said = "exceeded retry limit, last status: 429 Too Many Requests, request id: r1"
    verdict, _ = read("codex", failed_turn(said), 1)
    assert (verdict.outcome, verdict.retry_after) == (Outcome.THROTTLED, None)
    assert (verdict.detail, verdict.tokens) == (said, None)
    said = "Rate limit reached for m1. Please try again in 1m2.5s. Visit the page to learn more."
    assert read("codex", failed_turn(said), 1)[0].retry_after == 62_500_000


@pytest.mark.parametrize(
    ("said", "resets_at"),
    [
        ("You've hit your usage limit. Visit the page or try again at 3:42 PM.", "15:42"),
        ("You’ve hit your usage limit for m1. Switch to another model, try again at 9 PM", "21:00"),
        ("You've hit your usage limit. Try again in 2 hours 30 minutes.", "14:30"),
        ("You've hit your usage limit. Try again later.", None),
    ],
)
def test_a_used_up_window(said, resets_at, utc):
    verdict, _ = read("codex", failed_turn(said), 1)
    assert verdict.outcome is Outcome.THROTTLED
    if resets_at is None:
        assert verdict.resets_at is None
    else:
        hours, minutes = map(int, resets_at.split(":"))
        assert verdict.resets_at == NOW + (hours - 12) * HOUR + minutes * 60 * SECOND


@pytest.mark.parametrize(
    ("said", "pause"),
    [
        ("Your workspace is out of credits. Add credits to continue.", "out of credits"),
        ("You hit your spend cap. Raise it to go on.", "out of credits"),
        ("Quota exceeded. Check your plan and billing details.", "out of credits"),
        ("unexpected status 401 Unauthorized: missing bearer, url: http://x", "not logged in"),
        ("Your access token could not be refreshed. Please log out and in.", "not logged in"),
    ],
)
def test_what_only_a_person_can_mend_pauses_the_pool(said, pause):
    verdict, _ = read("codex", failed_turn(said), 1)
    assert (verdict.outcome, verdict.pause) == (Outcome.ENVIRONMENT, pause)


def test_other_errors_fail():
    said = "unexpected status 500 Internal Server Error: oops"
    verdict, _ = read("codex", failed_turn(said), 1)
    assert (verdict.outcome, verdict.detail) == (Outcome.FAILED, said)
    wrapped = '{"error": {"message": "the context window is too small"}}'
    assert read("codex", failed_turn(wrapped), 1)[0].detail == "the context window is too small"


def test_what_a_command_printed_is_no_error():
    item = {"type": "command_execution", "command": "cat log", "status": "completed"}
    item["aggregated_output"] = "last status: 429 Too Many Requests; You've hit your usage limit"
    told = lines({"type": "item.completed", "item": item}, *turn(**USAGE))
    verdict, seen = read("codex", told)
    assert verdict.outcome is Outcome.SUCCEEDED
    assert seen[0].text == "cat log (completed)"


def test_an_interrupted_turn_is_neither_completed_nor_failed():
    told = lines(*turn()[:2])
    assert read("codex", told, 1)[0].outcome is Outcome.FAILED
    assert read("codex", told, 0)[0].outcome is Outcome.FAILED
    verdict, _ = read("codex", told, None, 15)
    assert (verdict.detail, verdict.session) == ("signal 15", SESSION)


def test_an_error_before_any_turn_says_why():
    told = lines({"type": "error", "message": "unexpected status 401 Unauthorized"})
    assert read("codex", told, 1)[0].pause == "not logged in"


def test_a_wrong_option_or_session_never_started():
    said = "Error: thread/resume failed: no rollout found for thread id 1"
    verdict, _ = read("codex", [], 1, stderr=said)
    assert (verdict.outcome, verdict.session) == (Outcome.LAUNCH_FAILED, None)
    assert verdict.detail == f"exit 1: {said}"
