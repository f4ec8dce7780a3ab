"""Amounts that are drawn: distributions, prices, rates; and the work that is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from fairlane.model.amounts import DOLLARS_MAX, TOKENS_MAX
from fairlane.model.errors import Invalid
from fairlane.model.values import (
    Reader,
    dollars,
    duration,
    entries,
    positive_duration,
    ratio,
    read_all,
    whole,
)
from fairlane.policy.schema import COUNTERS
from fairlane.simulation.draws import MILLION
from fairlane.simulation.quantiles import Constant, Distribution, Exponential, Listed, Lognormal
from fairlane.simulation.worlds.profile import RATED, Profile

#: Longest list of a distribution.
SAMPLES_MAX = 10_000
#: How many times larger than the median the 90th percentile may be.
SPREAD_MAX = 1000


def distribution(read_one: Reader[int]) -> Reader[Distribution]:
    """One value, a list of which each is as likely, `{median, p90}`, or `{mean}`."""

    def read(value: object) -> Distribution:
        if isinstance(value, Mapping):
            return _shaped(read_one, value)
        if isinstance(value, list | tuple):
            listed = sorted(read_one(one) for one in entries(value, SAMPLES_MAX))
            if not listed:
                raise Invalid("an empty list", "Give at least one value.")
            return Listed(tuple(listed))
        return Constant(read_one(value))

    return read


def _shaped(read_one: Reader[int], table: Mapping[str, object]) -> Distribution:
    given = read_all(dict.fromkeys(("median", "p90", "mean"), read_one), table)
    if set(given) == {"mean"}:
        return Exponential(given["mean"])
    if set(given) != {"median", "p90"}:
        hint = "Write { median = …, p90 = … }, or { mean = … }."
        raise Invalid("neither median and p90 nor mean alone", hint)
    median, p90 = given["median"], given["p90"]
    if not 0 < median <= p90 <= SPREAD_MAX * median:
        hint = f"Give a median above 0, and a p90 from it to {SPREAD_MAX} times as much."
        raise Invalid("p90 does not fit the median", hint)
    return Lognormal(median, p90)


lengths = distribution(positive_duration)
tokens_of_one = distribution(whole(0, TOKENS_MAX))
counts = distribution(whole(0, 10_000))


def tokens(value: object) -> tuple[Distribution, ...]:
    """A distribution by counter; one alone is of output."""
    if isinstance(value, Mapping) and not {"median", "p90", "mean"} & set(value):
        by_counter = read_all(dict.fromkeys(COUNTERS, tokens_of_one), value)
    else:
        by_counter = {"output": tokens_of_one(value)}
    return tuple(by_counter.get(counter, Constant(0)) for counter in COUNTERS)


def prices(value: object) -> tuple[int, ...]:
    """Micro-dollars for a million tokens of each counter; one alone is that of all."""
    read = dollars(DOLLARS_MAX)
    if not isinstance(value, Mapping):
        return (read(value),) * len(COUNTERS)
    by_counter = read_all(dict.fromkeys(COUNTERS, read), value)
    return tuple(by_counter.get(counter, 0) for counter in COUNTERS)


def rate(value: object) -> int:
    """A part of all cases, from 0 to 1, in millionths."""
    part: Fraction = ratio(0, 1)(value)
    return (part * MILLION).numerator


PROFILE: Mapping[str, Reader[object]] = {
    "duration": lengths,
    "tokens": tokens,
    "usd_per_million": prices,
    "retry_after": duration,
    "reports": whole(0, 1000),
    **{str(outcome): rate for outcome in RATED},
}


def profile(table: object, where: str) -> Profile:
    """One kind of work."""
    given = read_all(PROFILE, table, where)
    if "duration" not in given:
        raise Invalid(f"{where} has no duration", 'Add duration = "10m".')
    rates = tuple(given.pop(outcome, 0) for outcome in RATED)
    if sum(rates) > MILLION:
        raise Invalid(f"{where}: its rates are more than 1 together", "Lower one of them.")
    if "usd_per_million" in given:
        given["usd"] = given.pop("usd_per_million")
    return Profile(rates=rates, **given)
