"""What holds for every parser: no line makes it raise, and what it gives can be kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.agents.contract import OutputLine, Verdict, shipped
from fairlane.agents.parsers import SHIPPED, parser_for, parser_named
from fairlane.model.instant import SECOND
from fairlane.model.project import Tokens
from fairlane.model.task import Outcome
from tests.unit.agents.transcripts import NOW, lines, read

AGENTS = sorted(shipped())
#: What parsers look for, so that random records come close.
_WORDS = (
    "type subtype result system init assistant message content text usage modelUsage id error "
    "errors is_error status rate_limit_event rate_limit_info resetsAt rejected thread.started "
    "turn.failed turn.completed item item.completed part tokens cache cost data statusCode "
    "responseHeaders stats api_retry retry_delay_ms step_finish tool_use session_id thread_id "
    "sessionID outcome throttled retry_after retry-after usd origin kind total_cost_usd "
    "input_tokens cached success "
)
WORDS = _WORDS.split()
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=20),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(WORDS), inner, max_size=6)
    ),
    max_leaves=20,
)
RECORDS = st.dictionaries(st.sampled_from(WORDS), JSON, max_size=8)
LINES = st.one_of(
    st.binary(max_size=200).map(lambda data: data.decode("utf-8", "replace")),
    st.binary(max_size=200).map(lambda data: data.decode("utf-8", "surrogateescape")),
    RECORDS.map(json.dumps),
    st.builds(lambda found, at: json.dumps(found)[:at], RECORDS, st.integers(0, 100)),
)


@given(
    st.sampled_from(AGENTS),
    st.lists(LINES, max_size=8),
    st.one_of(st.none(), st.integers(0, 255)),
    st.one_of(st.none(), st.integers(1, 64)),
    st.text(max_size=100),
)
def test_no_output_makes_a_parser_raise(agent, told, exit_code, signal, stderr):
    verdict, seen = read(agent, told, exit_code, signal, stderr)
    assert isinstance(verdict.outcome, Outcome)
    assert "\n" not in verdict.detail
    told_of: list[Verdict | OutputLine] = [verdict, *seen]
    for each in told_of:
        assert each.tokens is None or all(count >= 0 for count in each.tokens)
        assert each.usd is None or each.usd >= 0
        assert each.session is None or not each.session.startswith("-")
    shown = [verdict.detail, verdict.summary, verdict.pause, *(each.text for each in seen)]
    "".join(shown).encode()


@pytest.mark.parametrize("agent", AGENTS)
def test_deep_nesting_and_huge_numbers_are_skipped(agent):
    deep = '{"type":' + "[" * 100_000
    told = [deep, '{"type": "result", "n": ' + "9" * 10_000 + "}"]
    assert read(agent, told, 1)[0].outcome is not Outcome.SUCCEEDED


@pytest.mark.parametrize("agent", AGENTS)
def test_nothing_but_exit_0_is_success(agent):
    assert read(agent, [])[0].outcome is Outcome.SUCCEEDED
    assert read(agent, [], None, 9)[0].outcome is Outcome.FAILED


def test_final_records_are_told_to_executors():
    assert parser_named("claude").FINAL == (("type", ("result",)),)
    assert parser_named("codex").FINAL == (("type", ("turn.completed", "turn.failed")),)
    assert parser_named("plain").FINAL == ()
    assert {agent.parser for agent in shipped().values()} == set(SHIPPED)


def test_plain_programs_are_judged_by_their_exit_code():
    verdict, seen = read("shell", ["one", "", "two  words"])
    assert (verdict.outcome, verdict.summary) == (Outcome.SUCCEEDED, "two words")
    assert [each.text for each in seen] == ["one", "two words"]
    verdict, _ = read("shell", ["one"], 3, stderr="oh\n no \n")
    assert (verdict.outcome, verdict.detail, verdict.summary) == (Outcome.FAILED, "exit 3", "no")


def test_a_parser_is_made_for_each_attempt():
    agent = shipped()["demo"]
    assert parser_for(agent) is not parser_for(agent, Tokens())


def test_gemini():
    init = {"type": "init", "session_id": "s1", "model": "g"}
    stats = {"total_tokens": 170, "input_tokens": 100, "output_tokens": 50, "cached": 30}
    message = {"type": "message", "role": "assistant", "delta": True}
    told: list[dict[str, Any]] = [init, message | {"content": "Hel"}, message | {"content": "lo"}]
    told.append({"type": "result", "status": "success", "stats": stats})
    verdict, _ = read("gemini", lines(*told))
    assert (verdict.outcome, verdict.tokens) == (Outcome.SUCCEEDED, Tokens(70, 70, 30, 0))
    assert (verdict.session, verdict.model, verdict.summary) == ("s1", "g", "Hello")


@pytest.mark.parametrize(
    ("error", "message", "outcome", "wait", "resets_at", "pause"),
    [
        ("RetryableQuotaError", "Please retry in 34s", "throttled", 34 * SECOND, None, ""),
        ("TerminalQuotaError", "quota, retry in 600s", "throttled", None, NOW + 600 * SECOND, ""),
        ("TerminalQuotaError", "no credits left", "environment", None, None, "out of credits"),
        ("FatalAuthenticationError", "no key", "environment", None, None, "not logged in"),
        ("Error", "it broke", "failed", None, None, ""),
    ],
)
def test_gemini_errors(error, message, outcome, wait, resets_at, pause):
    failed = {"type": "result", "status": "error", "error": {"type": error, "message": message}}
    verdict, _ = read("gemini", lines(failed), 1)
    assert (verdict.outcome, verdict.detail, verdict.pause) == (outcome, message, pause)
    assert (verdict.retry_after, verdict.resets_at) == (wait, resets_at)


def test_gemini_exit_codes():
    assert read("gemini", [], 41)[0].pause == "not logged in"
    told = read("gemini", [], 41, stderr="Warning: no colours\nInvalid auth method selected.\n")[0]
    assert told.detail == "exit 41: Invalid auth method selected."
    verdict, _ = read("gemini", [], 55, stderr="no")
    assert verdict.outcome is Outcome.LAUNCH_FAILED
    assert verdict.detail == "exit 55: no (the folder is not trusted)"


def step(reason: str) -> dict[str, object]:
    tokens = {"input": 10, "output": 5, "reasoning": 1, "cache": {"read": 3, "write": 2}}
    part = {"reason": reason, "cost": 0.01, "tokens": tokens}
    return {"type": "step_finish", "sessionID": "ses_1", "part": part}


def test_opencode_sums_its_steps():
    said = {"type": "text", "sessionID": "ses_1", "part": {"text": "Done"}}
    verdict, _ = read(
        "opencode", ["permission requested", *lines(step("tool-calls"), said, step("stop"))]
    )
    assert (verdict.outcome, verdict.tokens) == (Outcome.SUCCEEDED, Tokens(20, 12, 6, 4))
    assert (verdict.usd, verdict.session, verdict.summary) == (20_000, "ses_1", "Done")
    assert read("opencode", lines(step("tool-calls")))[0].outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("status", "headers", "outcome", "wait", "pause"),
    [
        (429, {"Retry-After": "12"}, "throttled", 12 * SECOND, ""),
        (429, {"retry-after-ms": "1500"}, "throttled", 1_500_000, ""),
        (529, {"retry-after": "Fri, 30 Jan"}, "throttled", None, ""),
        (401, {}, "environment", None, "not logged in"),
        (402, {}, "environment", None, "out of credits"),
        (500, {}, "failed", None, ""),
    ],
)
def test_opencode_errors(status, headers, outcome, wait, pause):
    data = {"message": "no", "statusCode": status, "responseHeaders": headers}
    told = lines({"type": "error", "sessionID": "s", "error": {"name": "APIError", "data": data}})
    verdict, _ = read("opencode", told, 1)
    assert (verdict.outcome, verdict.retry_after, verdict.pause) == (outcome, wait, pause)
