"""Draws and quantiles: independent, the same everywhere, and as accurate as they must be."""

from __future__ import annotations

import math
import subprocess
import sys
from statistics import NormalDist

import pytest

from fairlane.simulation import quantiles
from fairlane.simulation.draws import MILLION, ONE, below, draw, draws, happens, which
from fairlane.simulation.quantiles import Constant, Exponential, Listed, Lognormal

NORMAL = NormalDist()
LEVELS = [0.0001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.99999]


def test_draws_are_fixed_for_ever():
    """Who changes these numbers changes every recorded result."""
    assert draw(1, "a", 1, "gap") == 0x49239C6935E5669
    assert draws(1, "t1", 1)[0] == 472323480258553768


def test_each_key_has_a_draw_of_its_own():
    keys = [(seed, task, attempt) for seed in (1, 2) for task in ("a", "a1") for attempt in (1, 11)]
    seen = {number for key in keys for number in draws(*key)}
    seen |= {draw(*key, "gap") for key in keys}
    assert len(seen) == 9 * len(keys)
    assert draw(1, "a", "bc") != draw(1, "ab", "c")


def test_draws_do_not_depend_on_hash_seeds():
    program = "from fairlane.simulation.draws import draws; print(draws(7, 'task', 3))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed}, capture_output=True, check=True,
        ).stdout
        for seed in ("0", "12345")
    }  # fmt: skip
    assert printed == {f"{draws(7, 'task', 3)}\n".encode()}


def test_draws_are_uniform_and_independent():
    count = 20_000
    rows = [draws(3, f"t{number}", 1) for number in range(count)]
    for place in range(8):
        column = [row[place] / ONE for row in rows]
        assert sum(column) / count == pytest.approx(0.5, abs=0.01)
        tenths = [sum(int(10 * value) == tenth for value in column) for tenth in range(10)]
        expected = count / 10
        assert sum((seen - expected) ** 2 / expected for seen in tenths) < 27.9  # p = 0.001
    products = [(row[0] / ONE - 0.5) * (row[1] / ONE - 0.5) for row in rows]
    assert abs(sum(products) / count) < 0.002


def test_rates():
    assert [below(3, drawn) for drawn in (0, ONE // 3, ONE - 1)] == [0, 0, 2]
    assert not happens(0, 0)
    assert happens(MILLION, ONE - 1)
    assert happens(250_000, ONE // 4 - 1)
    assert not happens(250_000, ONE // 4)
    rates = (100_000, 0, 200_000)
    cases = {0: 0, 1: 2, 2: 2, 3: None, 9: None}
    assert {tenth: which(rates, ONE * tenth // 10 + 1) for tenth in cases} == cases


@pytest.mark.parametrize("level", LEVELS)
def test_exponential_quantiles(level):
    exact = -math.log1p(-level)
    assert Exponential(10**9).at(int(level * ONE)) / 10**9 == pytest.approx(
        exact, rel=1e-4, abs=5e-5
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("median", "p90"), [(600, 601), (600, 3_600), (1, 1_000)])
def test_lognormal_quantiles(level, median, p90):
    spread = math.log(p90 / median) / NORMAL.inv_cdf(0.9)
    exact = median * 10**6 * math.exp(spread * NORMAL.inv_cdf(level))
    found = Lognormal(median * 10**6, p90 * 10**6).at(int(level * ONE))
    assert found == pytest.approx(exact, rel=2e-3 if p90 == 1_000 else 4e-4, abs=2)


def test_means_are_exact_enough():
    """The mean of an exponential is within 0.3 %, its second moment (of queues) within 1 %."""
    levels, values = quantiles.exponential_table()
    cells = list(zip(levels, values, [*levels[1:], ONE], [*values[1:], values[-1]], strict=True))
    mean = sum((end - at) * (low + high) / 2 for at, low, end, high in cells)
    square = sum(
        (end - at) * (low * low + low * high + high * high) / 3 for at, low, end, high in cells
    )
    unit = 1 << 40
    assert mean / ONE / unit == pytest.approx(1, rel=1e-4)
    assert square / ONE / unit**2 == pytest.approx(2, rel=1e-3)
    spread = math.log(6) / NORMAL.inv_cdf(0.9)
    assert Lognormal(10**9, 6 * 10**9).mean / 10**9 == pytest.approx(
        math.exp(spread**2 / 2), rel=3e-3
    )


def test_tails_reach_far_and_end():
    assert Exponential(10**6).at(ONE - 1) > 38 * 10**6
    assert Exponential(10**6).at(0) == 0
    assert 0 <= Lognormal(10**6, 10**7).at(0) < 10
    heavy = [Lognormal(10**6, 10**7).at(ONE - 1 - number) for number in (0, 1000, ONE // 10)]
    assert heavy == sorted(heavy, reverse=True)


def test_quantiles_grow_with_the_draw():
    for one in (Exponential(10**9), Lognormal(5, 50), Lognormal(10**9, 10**12), Listed((1, 5, 9))):
        found = [one.at(ONE * part // 5000) for part in range(5000)]
        assert found == sorted(found)


def test_constants_and_lists():
    assert Constant(7).at(draw(1, "x")) == 7
    listed = Listed((1, 2, 30))
    assert [listed.at(ONE * third // 3 + 1) for third in range(3)] == [1, 2, 30]
    assert (Constant(7).mean, listed.mean, Exponential(9).mean) == (7, 11, 9)


@pytest.mark.parametrize("x", [0.0001, 0.5, 1.0, 7.25, 30.0])
def test_logarithm_and_power(x):
    unit = 1 << 96
    fixed = int(x * 2**52) * (unit >> 52)
    assert quantiles.exp(fixed) / unit == pytest.approx(math.exp(x), rel=1e-12)
    assert quantiles.exp(-fixed) / unit == pytest.approx(math.exp(-x), rel=1e-12)
    assert quantiles.ln(quantiles.exp(fixed)) / unit == pytest.approx(x, rel=1e-12)
