"""Over thousands of starts: shares stay within their bound, and who returns catches up little."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.drive import Drive

SCALE = 10**6
WEIGHTS = st.lists(st.integers(1, 20), min_size=2, max_size=5).map(
    lambda weights: {f"p{n}": weight for n, weight in enumerate(weights)}
)


def within_the_bound(drive: Drive, starts: int) -> None:
    for _ in drive.run(starts):
        for one, other in drive.pairs():
            first, second = (
                Fraction(drive.received(name), drive.projects[name].weight) for name in (one, other)
            )
            assert abs(first - second) <= drive.bound(one, other)


@given(st.integers(0, 2**32), WEIGHTS, st.integers(1, 8))
def test_shares_stay_within_the_published_bound(seed, weights, slots):
    within_the_bound(Drive(seed, weights, slots), 40)


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", [0, 1, 5])
def test_shares_stay_within_the_published_bound_for_thousands_of_starts(guarantee):
    weights = {"a": 1, "b": 2, "c": 7, "d": 20}
    drive = Drive(guarantee, weights, 6, share__guarantee=guarantee)
    within_the_bound(drive, 3_000)
    parts = {name: Fraction(drive.received(name), weight) for name, weight in weights.items()}
    assert max(parts.values()) < min(parts.values()) * Fraction(3, 2)


@given(st.integers(0, 2**32), WEIGHTS, st.integers(1, 8), st.sampled_from([0, 50_000, 10**6]))
def test_who_returns_catches_up_no_more_than_the_idle_credit(seed, weights, slots, credit):
    """Clocks of those present differ by the bound and the credit, whoever comes and goes."""
    drive = Drive(seed, weights, slots, share__idle_credit=credit, share__guarantee=0)
    for _ in drive.run(40):
        for one, other in drive.pairs():
            weight = min(drive.projects[one].weight, drive.projects[other].weight)
            gap = (drive.projects[one].clock or 0) - (drive.projects[other].clock or 0)
            allowed = drive.bound(one, other) + Fraction(credit, weight)
            assert abs(Fraction(gap, SCALE)) <= allowed
        if drive.random.random() < 0.3:
            drive.paused ^= {drive.random.choice(sorted(weights))}


@given(st.integers(0, 2**32), WEIGHTS, st.integers(2, 8))
def test_caps_of_projects_do_not_break_the_shares_of_the_others(seed, weights, slots):
    drive = Drive(seed, weights, slots, share__guarantee=0, **{"caps__project:p0": 1})
    for _ in drive.run(40):
        for one, other in drive.pairs():
            if "p0" in (one, other):
                continue
            first, second = (
                Fraction(drive.received(name), drive.projects[name].weight) for name in (one, other)
            )
            assert abs(first - second) <= drive.bound(one, other)


def test_weight_0_runs_only_when_nobody_else_wants_the_slot():
    drive = Drive(3, {"a": 1, "b": 4, "idle": 0}, 4)
    rounds = drive.run(300)
    assert not any("idle" in picked for picked in rounds)
    drive.paused = {"a", "b"}
    assert any("idle" in picked for picked in drive.run(drive.starts + 8))
