"""Distributions as tables of quantiles: whole numbers in, whole numbers out, no `exp`, no `log`.

A table has levels (a part of `ONE`) with values, and draws a line between them. The tables are
made with whole numbers too: the same on every machine.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Protocol

from fairlane.model.record import dataclass
from fairlane.simulation.draws import ONE, below

#: Fixed point: this many fractional bits while tables are made.
_BITS = 96
_UNIT = 1 << _BITS
#: Fixed point of the values in a table that is scaled afterwards.
_SCALE = 40
#: Steps of a unit in tables; a line between them is wrong by less than one in ten thousand.
_STEPS = 64
#: How many standard deviations a normal table reaches to either side.
_DEVIATIONS = 8
#: The 90th percentile of the standard normal distribution, in 10**-16.
_Z90, _Z90_UNIT = 12815515655446004, 10**16


class Distribution(Protocol):
    """What a whole number is drawn from."""

    def at(self, drawn: int) -> int:
        """The quantile at a draw: `drawn` of `ONE` of all values are below it."""

    @property
    def mean(self) -> int:
        """The mean, rounded down."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same."""

    value: int

    def at(self, drawn: int) -> int:
        """The value."""
        return self.value

    @property
    def mean(self) -> int:
        """The value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Listed:
    """One of a list of values, each as likely."""

    values: tuple[int, ...]

    def at(self, drawn: int) -> int:
        """The value whose turn the draw is."""
        return self.values[below(len(self.values), drawn)]

    @property
    def mean(self) -> int:
        """The mean of the list."""
        return sum(self.values) // len(self.values)


@dataclass(frozen=True, slots=True)
class Exponential:
    """Waiting for what comes at a steady rate."""

    mean: int

    def at(self, drawn: int) -> int:
        """The quantile."""
        levels, values = exponential_table()
        return self.mean * between(levels, values, drawn) >> _SCALE


@dataclass(frozen=True, slots=True)
class Lognormal:
    """What is often short and sometimes very long: by its median and 90th percentile."""

    median: int
    p90: int  # not below the median

    def at(self, drawn: int) -> int:
        """The quantile."""
        return between(normal_levels(), lognormal_values(self.median, self.p90), drawn) >> _SCALE

    @property
    def mean(self) -> int:
        """The mean of what is drawn."""
        levels = (*normal_levels(), ONE)
        values = lognormal_values(self.median, self.p90)
        values = (*values, values[-1])
        cells = range(len(levels) - 1)
        area = sum((values[at] + values[at + 1]) * (levels[at + 1] - levels[at]) for at in cells)
        return area // (2 * ONE) >> _SCALE


def between(levels: Sequence[int], values: Sequence[int], drawn: int) -> int:
    """The value at a level, on the line between its neighbours; beyond the last: the last."""
    at = bisect_right(levels, drawn)
    if at == len(levels):
        return values[-1]
    if at == 0:
        return values[0]
    low, high = levels[at - 1], levels[at]
    value = values[at - 1]
    return value + (values[at] - value) * (drawn - low) // (high - low)


@cache
def exponential_table() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Levels and values of the exponential distribution with mean 1, as far as draws reach."""
    levels, values = [0], [0]
    decay = exp(-(_UNIT // _STEPS))
    above = _UNIT  # the part that is longer
    for step in range(1, 64 * _STEPS):
        above = above * decay >> _BITS
        level = ONE - (above * ONE >> _BITS)
        if level >= ONE:
            break
        levels.append(level)
        values.append((step << _SCALE) // _STEPS)
    return tuple(levels), tuple(values)


@cache
def normal_levels() -> tuple[int, ...]:
    """The levels of the standard normal distribution in steps of a part of a deviation.

    Simpson's rule over the density, which follows from step to step by two products.
    """
    half = 2 * _STEPS  # steps of half a cell
    density = [_UNIT]  # from the middle on
    ratio, decay = exp(-_UNIT // (2 * half * half)), exp(-_UNIT // (half * half))
    for _ in range(_DEVIATIONS * half):
        density.append(density[-1] * ratio >> _BITS)
        ratio = ratio * decay >> _BITS
    cells = [
        density[at] + 4 * density[at + 1] + density[at + 2]
        for at in range(0, _DEVIATIONS * half, 2)
    ]
    both = [*reversed(cells), *cells]
    whole, levels, area = sum(both), [0], 0
    for cell in both:
        area += cell
        levels.append(area * ONE // whole)
    return tuple(levels[:-1])


@lru_cache(maxsize=4096)
def lognormal_values(median: int, p90: int) -> tuple[int, ...]:
    """The values at `normal_levels`, with `_SCALE` fractional bits."""
    spread = ln(p90 * _UNIT // median) * _Z90_UNIT // _Z90  # of the logarithm
    factor, inverse = exp(spread // _STEPS), exp(-(spread // _STEPS))
    up, down = [median << _BITS], [median << _BITS]
    for _ in range(_DEVIATIONS * _STEPS):
        up.append(up[-1] * factor >> _BITS)
        down.append(down[-1] * inverse >> _BITS)
    values = [*reversed(down), *up[1:-1]]
    return tuple(value >> (_BITS - _SCALE) for value in values)


def exp(x: int) -> int:
    """e**x in fixed point, by its series; x is made small first."""
    halvings = max(0, abs(x).bit_length() - _BITS + 8)
    small, total, term, number = x >> halvings, _UNIT, _UNIT, 1
    while term:
        term = _toward_zero(term * small, number << _BITS)
        total, number = total + term, number + 1
    for _ in range(halvings):
        total = total * total >> _BITS
    return total


def ln(x: int) -> int:
    """The natural logarithm in fixed point of a number from 1 on: 2 artanh((x - 1) / (x + 1))."""
    doublings = max(0, x.bit_length() - _BITS - 1)
    return doublings * _ln2() + _ln_small(x >> doublings)


def _ln_small(x: int) -> int:
    """The logarithm of a number from 1 to 2."""
    ratio = ((x - _UNIT) << _BITS) // (x + _UNIT)
    square, power, total, number = ratio * ratio >> _BITS, ratio, 0, 1
    while power:
        total, power, number = total + power // number, power * square >> _BITS, number + 2
    return 2 * total


@cache
def _ln2() -> int:
    return _ln_small(2 * _UNIT)


def _toward_zero(number: int, by: int) -> int:
    return -(-number // by) if number < 0 else number // by
