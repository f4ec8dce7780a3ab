"""Whatever an agent prints or writes: nothing raises, nothing grows, and one verdict follows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.agents.parsers import SHIPPED, parser_named
from fairlane.executors.base import Ended, Gone, Handle, Running
from fairlane.executors.process import ProcessExecutor
from fairlane.executors.runfiles import Damaged, make_run, put
from fairlane.model.amounts import MICRO_DOLLARS_MAX, TOKENS_MAX
from fairlane.model.instant import SECOND

pytestmark = pytest.mark.slow

NOW = 1_790_000_000 * SECOND
#: Words of the records of all programs, so that draws reach deep into the parsers.
WORDS = (
    "type", "result", "subtype", "success", "is_error", "usage", "modelUsage", "tokens", "input",
    "output", "input_tokens", "output_tokens", "inputTokens", "total_cost_usd", "usd", "session_id",
    "session", "text", "detail", "outcome", "throttled", "retry_after", "resets_at", "message",
    "content", "assistant", "system", "init", "api_retry", "retry_delay_ms", "rate_limit_event",
    "rate_limit_info", "resetsAt", "status", "rejected", "turn.completed", "turn.failed", "error",
    "id", "item.completed", "item", "agent_message", "thread.started", "thread_id", "part",
    "cost", "cached_input_tokens", "stats", "models", "progress", "errors", "permission_denials",
    "usage limit reached|9999999999", "try again in 9999999999999999 days", "resets 99:99pm",
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=20),
    st.sampled_from(WORDS),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=20,
)
RECORDS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=8).flatmap(
    lambda record: st.sampled_from(WORDS).map(lambda kind: {**record, "type": kind})
)
LINES = st.lists(
    st.one_of(
        RECORDS.map(json.dumps), st.text(max_size=200), st.just("{" * 3_000),
        st.just('{"a":' * 3_000), st.just('{"type": "result", "usd": ' + "9" * 5_000 + "}"),
    ),
    max_size=8,
)  # fmt: skip
CODES = st.one_of(st.none(), st.integers(0, 255))


def verdict_on(parser: str, lines: list[str], code: int | None, stderr: str) -> Any:
    reader = parser_named(parser)()
    outputs = [output for line in lines for output in reader.line(line)]
    for output in outputs:
        assert len(output.text) <= 1_000
        assert output.tokens is None or all(each >= 0 for each in output.tokens)
    return reader.verdict(code, None if code is not None else 9, stderr, NOW)


@pytest.mark.parametrize("parser", sorted(SHIPPED))
@settings(max_examples=60, deadline=None)
@given(lines=LINES, code=CODES, stderr=st.text(max_size=200))
def test_no_record_makes_a_parser_raise_or_count_too_much(
    parser: str, lines: list[str], code: int | None, stderr: str
) -> None:
    verdict = verdict_on(parser, lines, code, stderr)
    assert verdict == verdict_on(parser, lines, code, stderr)
    assert len(verdict.detail) <= 300
    assert len(verdict.summary) <= 4_000
    assert verdict.usd is None or 0 <= verdict.usd <= MICRO_DOLLARS_MAX * 10
    many = 10 * TOKENS_MAX  # several models or answers of one attempt
    assert verdict.tokens is None or all(0 <= each <= many for each in verdict.tokens)
    assert verdict.retry_after is None or 0 <= verdict.retry_after <= 10**9 * SECOND


@settings(max_examples=80, deadline=None)
@given(
    ended=st.one_of(
        st.none(), st.binary(max_size=300), VALUES.map(lambda v: json.dumps(v).encode())
    ),
    owner=st.one_of(
        st.none(), st.binary(max_size=300), VALUES.map(lambda v: json.dumps(v).encode())
    ),
    extra=st.sampled_from(
        ("exit_code", "signal", "record", "stopped", "errno", "pid", "agent_pid")
    ),
    value=SCALARS,
)
def test_records_of_a_run_folder_are_believed_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory,
    ended: bytes | None, owner: bytes | None, extra: str, value: object,
) -> None:  # fmt: skip
    run = make_run(tmp_path_factory.mktemp("fuzz") / "runs" / "t" / "1")
    for name, data in (("exit.json", ended), ("runner.json", owner)):
        if data is not None:
            (run / name).write_bytes(data)
    executor = ProcessExecutor()
    states = [executor.poll(Handle(run)) for _ in range(2)]
    assert states[0] == states[1]
    assert isinstance(states[0], Running | Ended | Gone)
    (run / "exit.json").write_text(json.dumps({extra: value}))
    assert isinstance(executor.poll(Handle(run)), Ended)
    assert executor.adopt(run) is None
    executor.clean_up(run)


def test_a_link_in_the_place_of_a_run_folder_is_not_entered(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "linked").symlink_to(away)
    (runs / "t").mkdir()
    (runs / "t" / "2").symlink_to(away)
    for run in (runs / "linked" / "1", runs / "t" / "2"):
        with pytest.raises(Damaged, match="symbolic link"):
            make_run(run)
    assert list(away.iterdir()) == []
    put(make_run(runs / "good" / "1") / "prompt.md", "words")
    assert (runs / "good" / "1").stat().st_mode & 0o777 == 0o700
