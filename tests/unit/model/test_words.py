"""Instants, lengths and names, as they are read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.errors import Invalid
from fairlane.model.instant import parse_duration, parse_instant, show_duration, show_instant
from fairlane.model.values import is_name


@given(st.integers(0, 4_000_000_000_000_000))
def test_an_instant_survives_being_written(when):
    assert parse_instant(show_instant(when)) == when


@given(st.integers(0, 10**10).map(lambda n: n * 1000))
def test_a_length_survives_being_written(length):
    assert parse_duration(show_duration(length)) == length


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.001Z", 1_000),
    ],
)
def test_times(text, instant):
    assert parse_instant(text) == instant


@pytest.mark.parametrize("text", ["", "now", "2026-01-30", "2026-01-30T12:00:00"])
def test_a_time_without_a_zone_is_refused(text):
    with pytest.raises(Invalid):
        parse_instant(text)


@pytest.mark.parametrize("text", ["", "5", "5 m", "-5m", "1.5h", "h"])
def test_a_length_without_unit_is_refused(text):
    with pytest.raises(Invalid):
        parse_duration(text)


@pytest.mark.parametrize("text", ["a", "T-42", "a.b", "0", "x" * 128])
def test_names(text):
    assert is_name(text)


@pytest.mark.parametrize(
    "text", ["", "-a", ".a", "a..b", "a.", "a.lock", "a/b", "a b", "é", "x" * 129, None, 5]
)
def test_no_names(text):
    assert not is_name(text)
