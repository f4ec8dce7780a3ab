"""The text that Prometheus reads: one family after the other, labels escaped."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

#: Upper bounds of waits and durations, in seconds: from a blink to a day.
SECONDS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)
#: Most series of one family; the rest is summed up under `other`.
SERIES_MAX = 1_000
Labels = tuple[tuple[str, str], ...]


class Sums:
    """A counter that only grows, by labels."""

    def __init__(self) -> None:
        self.values: dict[Labels, float] = {}

    def add(self, labels: Mapping[str, str], amount: float = 1) -> None:
        """So much more."""
        key = series(labels, self.values)
        self.values[key] = self.values.get(key, 0) + amount


class Histogram:
    """How often what lasted how long, by labels."""

    def __init__(self) -> None:
        self.counts: dict[Labels, list[int]] = {}
        self.totals: dict[Labels, float] = {}

    def add(self, labels: Mapping[str, str], seconds: float) -> None:
        """One more that lasted so long."""
        key = series(labels, self.counts)
        counts = self.counts.setdefault(key, [0] * (len(SECONDS) + 1))
        counts[bisect_left(SECONDS, seconds)] += 1
        self.totals[key] = self.totals.get(key, 0.0) + seconds


class Page:
    """A page of families."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def family(
        self, name: str, kind: str, about: str, rows: Iterable[tuple[Mapping[str, str], float]]
    ) -> None:
        """Gauges or counters."""
        self._head(name, kind, about)
        self._lines += [f"{name}{_shown(labels)} {_number(value)}" for labels, value in rows]

    def sums(self, name: str, about: str, held: Sums) -> None:
        """A counter."""
        self.family(name, "counter", about, ((dict(key), n) for key, n in held.values.items()))

    def histogram(self, name: str, about: str, held: Histogram) -> None:
        """A histogram; its buckets add up."""
        self._head(name, "histogram", about)
        for key, counts in held.counts.items():
            labels, sofar = dict(key), 0
            for bound, count in zip((*SECONDS, "+Inf"), counts, strict=True):
                sofar += count
                self._lines.append(f"{name}_bucket{_shown(labels | {'le': str(bound)})} {sofar}")
            self._lines.append(f"{name}_sum{_shown(labels)} {_number(held.totals[key])}")
            self._lines.append(f"{name}_count{_shown(labels)} {sofar}")

    def text(self) -> str:
        """The page."""
        return "\n".join(self._lines) + "\n"

    def _head(self, name: str, kind: str, about: str) -> None:
        self._lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def series(labels: Mapping[str, str], known: Mapping[Labels, object]) -> Labels:
    """The labels as a key; where there are too many, every new one is `other`."""
    key = tuple(labels.items())
    if key in known or len(known) < SERIES_MAX:
        return key
    return tuple((name, "other") for name in labels)


def _shown(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return repr(value) if isinstance(value, float) and not value.is_integer() else str(int(value))
