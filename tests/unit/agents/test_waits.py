"""When the texts of programs say that work is taken again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.agents.verdicts import epoch_instant, reset_in, wait_in
from fairlane.lifecycle.backoff import WAIT_MAX
from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND, parse_instant, show_instant

NOW = parse_instant("2026-01-30T12:00:00Z")  # a Friday


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("limit reached|1769781600", "2026-01-30T14:00:00Z"),
        ("resets 7pm (Asia/Tokyo)", "2026-01-31T10:00:00Z"),
        ("will reset at 5pm (Europe/Vilnius).", "2026-01-30T15:00:00Z"),
        ("resets 3:45pm", "2026-01-30T15:45:00Z"),
        ("resets 2:30am", "2026-01-31T02:30:00Z"),
        ("resets 12am", "2026-01-31T00:00:00Z"),
        ("resets 12:30 PM", "2026-01-30T12:30:00Z"),
        ("resets Mon 12:00am", "2026-02-02T00:00:00Z"),
        ("resets Fri 11:00am", "2026-02-06T11:00:00Z"),
        ("try again at 3:42 PM.", "2026-01-30T15:42:00Z"),
        ("try again at Feb 2nd, 2026 10:03 PM.", "2026-02-02T22:03:00Z"),
        ("try again at Feb 2nd, 10:03\u202fPM.", "2026-02-02T22:03:00Z"),
        ("try again at 21:15", "2026-01-30T21:15:00Z"),
        ("(daily; resets 2026-01-31 00:00 UTC)", "2026-01-31T00:00:00Z"),
        ("resets 11:50am", "2026-01-30T11:50:00Z"),  # ten minutes ago: that is the one meant
        ("resets Dec 31st, 2026 10:00 PM", "2026-02-07T12:00:00Z"),  # no window is that long
    ],
)
def test_times(text, when, utc):
    assert show_instant(reset_in(f"You've hit your limit · {text}", NOW) or 0) == when


@pytest.mark.parametrize(
    "text", ["", "try again later", "resets 7", "resets 99:99pm", "resets Feb 31st, 2026 1:00 PM"]
)
def test_texts_without_a_time(text, utc):
    assert reset_in(text, NOW) is None


def test_without_a_zone_the_local_one_counts(zone):
    zone("America/New_York")
    assert reset_in("resets 3pm", NOW) == parse_instant("2026-01-30T20:00:00Z")
    zone("Asia/Kolkata")
    assert reset_in("resets 3pm", NOW) == parse_instant("2026-01-31T09:30:00Z")


def test_the_clock_is_that_of_the_day_which_is_meant(zone):
    zone("America/New_York")  # clocks go forward on 8 March 2026
    before = parse_instant("2026-03-08T04:00:00Z")  # 23:00 on the 7th
    assert reset_in("resets 8am", before) == parse_instant("2026-03-08T12:00:00Z")


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("Please try again in 1.898s.", 1_898_000),
        ("Please retry in 34.07s", 34_070_000),
        ("Suggested retry after 60s.", 60 * SECOND),
        ("try again in 250ms", 250_000),
        ("Try again in 3 days 4 hours 5 minutes.", 3 * DAY + 4 * HOUR + 5 * MINUTE),
        ("try again in 99 days", WAIT_MAX),
        ("try again later", None),
        ("nothing", None),
    ],
)
def test_lengths(text, wait):
    assert wait_in(text) == wait


@pytest.mark.parametrize(
    ("value", "seconds"), [(1769781600, 1769781600), (1769781600123, 1769781600), (1.5e9, 1.5e9)]
)
def test_epochs_are_seconds_or_milliseconds(value, seconds):
    assert epoch_instant(value, seconds * SECOND) == seconds * SECOND


@pytest.mark.parametrize("value", [None, 0, -1, "1769781600", True, float("nan"), 10**30])
def test_no_epochs(value):
    assert epoch_instant(value, NOW) is None


@given(st.text(max_size=200), st.sampled_from(["resets ", "try again at ", "try again in ", ""]))
def test_any_text_gives_a_bounded_wait_or_none(text, start):
    when, wait = reset_in(start + text, NOW), wait_in(start + text)
    assert when is None or when <= NOW + WAIT_MAX
    assert wait is None or 0 <= wait <= WAIT_MAX
