"""Medians of repeats, and one row of the table."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: two figures from the same run, and what their ratio should be."""

    what: str
    ours: str  # with its unit: "1.2 ms"
    against: str  # who, and their figure; what they do not promise is said here
    ratio: float | None = None  # None where there is nothing to compare with
    asked: str = ""  # ">= 1000", "<= 1.5"; "" is a figure to look at, and never fails

    @property
    def passed(self) -> bool:
        if not self.asked:
            return True
        if self.ratio is None:
            raise ValueError(f"{self.what}: asked {self.asked!r}, but there is no ratio")
        sign, _, bound = self.asked.partition(" ")
        return _COMPARE[sign](self.ratio, float(bound.replace(",", "")))


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def median_seconds(work: Callable[[], object], repeats: int = 5, warm_up: int = 1) -> float:
    """The median of several calls, after some that are not counted."""
    for _ in range(warm_up):
        work()
    return median(seconds(work) for _ in range(repeats))


def median_pair(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int = 5
) -> tuple[float, float]:
    """Both medians, taken by turns, so that a busy machine is unfair to neither."""
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(repeats + 1)][1:]
    return median(a for a, _ in pairs), median(b for _, b in pairs)


def show_seconds(length: float) -> str:
    """A length of time with three digits and the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if length >= size:
            return f"{length / size:.3g} {unit}"
    return f"{length * 1e9:.3g} ns"
