"""The table of `make bench` says what was asked, and whether it holds."""

from __future__ import annotations

import pytest

from bench.__main__ import table
from bench.measure import Row, median_pair, median_seconds, show_seconds


@pytest.mark.parametrize(
    ("ratio", "asked", "passed"),
    [
        (1200, ">= 1,000", True),
        (999, ">= 1,000", False),
        (1.5, "<= 1.5", True),
        (1.6, "<= 1.5", False),
        (1.0, "> 1", False),
        (0.1, "", True),
    ],
)
def test_a_row_knows_whether_it_passes(ratio, asked, passed):
    assert Row("round", "1 ms", "peer 2 ms", ratio, asked).passed is passed


def test_what_is_asked_needs_a_ratio():
    with pytest.raises(ValueError, match="round: asked '> 1', but there is no ratio"):
        _ = Row("round", "1 ms", "peer 2 ms", asked="> 1").passed


def test_the_table_is_readable():
    rows = [Row("round", "1 ms", "peer 2 s", 2000, ">= 1,000"), Row("memory", "9 MiB", "–")]
    assert table(rows).splitlines() == [
        "| what   | ours  | against  | ratio | asked    | pass |",
        "| ------ | ----- | -------- | ----- | -------- | ---- |",
        "| round  | 1 ms  | peer 2 s | 2,000 | >= 1,000 | yes  |",
        "| memory | 9 MiB | –        | –     | –        | –    |",
    ]


def test_the_first_calls_are_not_counted():
    calls: list[str] = []
    assert median_seconds(lambda: calls.append("a"), repeats=3, warm_up=2) >= 0
    assert calls == ["a"] * 5
    median_pair(lambda: calls.append("b"), lambda: calls.append("c"), repeats=1)
    assert calls[5:] == ["b", "c", "b", "c"]


@pytest.mark.parametrize(
    ("length", "shown"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4e-5, "40 µs"), (7e-9, "7 ns")]
)
def test_lengths_have_a_fitting_unit(length, shown):
    assert show_seconds(length) == shown
