"""Medians of repeats, and one row of the table."""

from __future__ import annotations

import operator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
Name = TypeVar("Name", str, int)
#: How the rows begin whose ratios are the parts of a task's life.
LIFE = "share of a task's life: "


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: two figures from the same run, and what their ratio should be."""

    what: str
    ours: str  # with its unit: "1.2 ms"
    against: str  # who, and their figure; what they do not promise is said here
    ratio: float | None = None  # None: nothing to compare with, or the peer is not installed
    asked: str = ""  # ">= 1000", "<= 1.5"; "" is a figure to look at, and never fails

    @property
    def passed(self) -> bool:
        if not self.asked:
            return True
        if self.ratio is None:
            return False
        sign, _, bound = self.asked.partition(" ")
        return _COMPARE[sign](self.ratio, float(bound.replace(",", "")))

    @property
    def verdict(self) -> str:
        """Whether what is asked is reached."""
        if not self.asked:
            return "–"
        if self.ratio is None:
            return "not measured"
        return "yes" if self.passed else "NO"


def growth(what: str, unit: str, taken: Mapping[int, float]) -> list[Row]:
    """A table: what each size takes beside the first one."""
    first = next(iter(taken))
    return [
        Row(
            f"{what}, {size:,} {unit}",
            show_seconds(length),
            f"{first:,} {unit} {show_seconds(taken[first])}",
            length / taken[first],
        )
        for size, length in taken.items()
    ]


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def processor_seconds(work: Callable[[], object]) -> float:
    """How long one call keeps the processor busy."""
    start = process_time()
    work()
    return process_time() - start


def median_pair(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int = 5
) -> tuple[float, float]:
    """Both medians, taken by turns."""
    taken = by_turns({"ours": ours, "theirs": theirs}, repeats)
    return taken["ours"], taken["theirs"]


def by_turns(
    works: Mapping[Name, Callable[[], object]],
    turns: int,
    after: Callable[[], object] = lambda: None,
    timer: Callable[[Callable[[], object]], float] = seconds,
) -> dict[Name, float]:
    """The median of each; all are measured in every turn, the first of which is not counted.

    So a busy machine is unfair to none. `after` follows each call, untimed.
    """
    taken: dict[Name, list[float]] = {name: [] for name in works}
    for _ in range(turns + 1):
        for name, work in works.items():
            taken[name].append(timer(work))
            after()
    return {name: median(lengths[1:]) for name, lengths in taken.items()}


class Spent:
    """How long the calls of a function took together."""

    def __init__(self) -> None:
        self.seconds = 0.0


@contextmanager
def spent_in(owner: Any, name: str) -> Iterator[Spent]:
    """What the calls of one function of a module take, wherever they come from."""
    spent, real = Spent(), getattr(owner, name)

    def timed(*arguments: Any, **named: Any) -> Any:
        start = perf_counter()
        try:
            return real(*arguments, **named)
        finally:
            spent.seconds += perf_counter() - start

    setattr(owner, name, timed)
    try:
        yield spent
    finally:
        setattr(owner, name, real)


def percentile99(lengths: list[float]) -> float:
    """The smallest that 99 of 100 do not exceed."""
    return sorted(lengths)[-(-99 * len(lengths) // 100) - 1]


def show_seconds(length: float) -> str:
    """A length of time with three digits and the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if length >= size:
            return f"{length / size:.3g} {unit}"
    return f"{length * 1e9:.3g} ns"
