"""Tokens, windows, reservations, clocks, estimates."""

from __future__ import annotations

import pytest

from fairlane.lifecycle.usage import leaves, percentile70, reserved, spent, window_end, window_start
from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND, parse_instant, show_instant
from fairlane.model.project import Tokens, clock_correction, counted
from fairlane.policy.policy import Policy

NOW = parse_instant("2026-01-29T13:45:30Z")  # a Thursday


def test_cache_reads_count_only_if_they_are_named():
    tokens = Tokens(1, 20, 300, 4000)
    assert counted(tokens, Policy.preset("balanced").usage.count) == 4021
    assert counted(tokens, ("cache_read",)) == 300
    assert counted(tokens, ("input", "input")) == 1
    assert counted(tokens, ()) == 0


@pytest.mark.parametrize(
    ("window", "start", "end"),
    [
        ("day", "2026-01-29T00:00:00Z", "2026-01-30T00:00:00Z"),
        ("week", "2026-01-26T00:00:00Z", "2026-02-02T00:00:00Z"),
        ("month", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("5h", "2026-01-29T08:45:00Z", None),
        ("total", None, None),
    ],
)
def test_windows(window, start, end):
    found = (window_start(window, NOW), window_end(window, NOW))
    assert tuple(when if when is None else show_instant(when) for when in found) == (start, end)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z"),
        ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"),
        ("2026-12-31T12:00:00Z", "2027-01-01T00:00:00Z"),
    ],
)
def test_months_differ_in_length(now, end):
    assert window_end("month", parse_instant(now)) == parse_instant(end)


def test_a_minute_leaves_a_rolling_window_as_a_whole():
    minute = parse_instant("2026-01-29T10:00:00Z")
    buckets = [(minute, 100, 7), (minute + MINUTE, 10, 1)]
    last = minute + MINUTE + 5 * HOUR
    assert spent(buckets, "5h", last - 1) == (110, 8)
    assert spent(buckets, "5h", last) == (10, 1)
    assert leaves(buckets, "5h", last - 1) == ((last, 100, 7), (last + MINUTE, 10, 1))


@pytest.mark.parametrize("window", ["5h", "24h", "90s", "day", "week", "month", "total"])
def test_what_has_left_is_what_is_no_longer_spent(window):
    buckets = [(NOW - NOW % MINUTE - n * 7 * HOUR, n + 1, n) for n in range(200)]
    parts = leaves(buckets, window, NOW)
    assert parts == tuple(sorted(parts))
    tokens, usd = spent(buckets, window, NOW)
    if window == "total":
        assert parts == ()
        assert tokens == sum(range(1, 201))
        return
    assert (tokens, usd) == (sum(part[1] for part in parts), sum(part[2] for part in parts))
    for at, gone, _ in parts[:5]:
        before, after = spent(buckets, window, at - 1), spent(buckets, window, at)
        assert before[0] - after[0] == gone


def test_a_calendar_window_empties_at_once():
    buckets = [(NOW - HOUR, 5, 1), (NOW - 2 * HOUR, 6, 2), (NOW - DAY, 100, 100)]
    assert leaves(buckets, "day", NOW) == ((window_end("day", NOW), 11, 3),)
    assert leaves([], "day", NOW) == ()


def test_reserved_is_what_is_still_expected():
    assert [reserved(100, used) for used in (0, 40, 100, 170)] == [100, 60, 0, 0]


def test_the_clock_follows_what_was_received():
    million = 1_000_000
    assert clock_correction(100, 40, 2, ended=False) == 0
    assert clock_correction(100, 160, 2, ended=False) == 30 * million
    assert clock_correction(100, 40, 2, ended=True) == -30 * million
    assert clock_correction(100, 160, 2, ended=True) == 30 * million
    assert clock_correction(100, 100, 3, ended=True) == 0
    assert clock_correction(100, 160, 0, ended=True) == 0  # weight 0 moves no clock


def test_the_charge_and_its_correction_are_what_was_used():
    charged = 100_000 * 1_000_000 // 7
    assert charged + clock_correction(100_000, 31, 7, ended=True) == 31 * 1_000_000 // 7


def test_estimates_take_the_nearest_rank():
    assert percentile70([5]) == 5
    assert percentile70([10, 1]) == 10
    assert percentile70(range(1, 11)) == 7
    assert percentile70([3, 1, 2]) == 3
    with pytest.raises(ValueError, match="nothing"):
        percentile70([])


def test_seconds_inside_a_minute_belong_to_it():
    assert spent([(NOW - NOW % MINUTE + 59 * SECOND, 1, 0)], "60s", NOW + MINUTE) == (1, 0)
