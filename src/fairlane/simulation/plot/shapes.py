"""Shapes of a picture: escaped text, curves in steps, axes. Plain SVG without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from fairlane.model.instant import DAY, HOUR, MINUTE, Instant, Micros, to_datetime
from fairlane.model.record import dataclass
from fairlane.model.visible import visible

#: Colours of projects, distinct for colour-blind readers and on both grounds; the last: others.
COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#994f00", "#999999",
)  # fmt: skip
#: Class -> how it looks, and how where the reader prefers dark.
_LOOKS = {
    "ground": ("fill:#fff", "fill:#16191d"),
    "ink": ("fill:#1f2328", "fill:#e6e8ea"),
    "dim": ("fill:#646b73", "fill:#9aa2ab"),
    "grid": ("stroke:#d9dde1", "stroke:#30363d"),
    "slots": ("stroke:#1f2328", "stroke:#f0f2f4"),
    "target": ("stroke:#1f2328", "stroke:#f0f2f4"),
}
_TICKS = [
    size * unit
    for unit, sizes in ((MINUTE, (5, 10, 30)), (HOUR, (1, 2, 3, 6, 12)), (DAY, (1, 2, 7, 14, 28)))
    for size in sizes
]
#: Longest name in a legend.
NAME_MAX = 28


def style() -> str:
    """The looks of all shapes, in light and in dark."""
    rules = [".grid,.slots,.target{fill:none}", ".slots,.target{stroke-width:1.3}"]
    rules += [".target{stroke-dasharray:4 3;opacity:.8}", ".head{font-weight:600}"]
    rules += [f".c{at}{{fill:{colour}}}" for at, colour in enumerate(COLOURS)]
    rules += [f".{name}{{{light}}}" for name, (light, _) in _LOOKS.items()]
    night = "".join(f".{name}{{{dark}}}" for name, (_, dark) in _LOOKS.items())
    return f"<style>{''.join(rules)}@media(prefers-color-scheme:dark){{{night}}}</style>"


def text(x: float, y: float, words: str, look: str = "ink", anchor: str = "start") -> str:
    """Words at a place."""
    place = f'x="{_at(x)}" y="{_at(y)}"'
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{look}" {place}{side}>{safe(words)}</text>'


def safe(words: str) -> str:
    """Words as a picture can hold them: nothing invisible, nothing that is markup."""
    return escape(visible(words))


def cut(words: str, most: int = NAME_MAX) -> str:
    """A name that is not too long for its place."""
    return words if len(words) <= most else words[: most - 1] + "…"


@dataclass(frozen=True, slots=True)
class Strip:
    """One chart: where it is, and which value is at its top."""

    left: float
    top: float
    wide: float
    tall: float
    most: float

    def y(self, value: float) -> float:
        """How far down a value is."""
        return self.top + self.tall * (1 - value / self.most)

    def area(self, values: Sequence[float], look: str) -> str:
        """What is under a curve of steps; nothing where all of it is zero."""
        if not any(values):
            return ""
        base = _at(self.top + self.tall)
        path = f"M{_at(self.left)} {base}{self._steps(values, 'V')}V{base}Z"
        return f'<path class="{look}" d="{path}"/>'

    def line(self, values: Sequence[float], look: str) -> str:
        """A curve of steps."""
        return f'<path class="{look}" d="M{_at(self.left)} {self._steps(values, "")}"/>'

    def _steps(self, values: Sequence[float], first: str) -> str:
        words, before = [], ""
        for column, value in enumerate(values):
            y = _at(self.y(value))
            if y != before:
                x = _at(self.left + self.wide * column / len(values))
                words.append(f"H{x}V{y}" if before else f"{first}{y}")
            before = y
        return "".join(words) + f"H{_at(self.left + self.wide)}"

    def grid(self, marks: Sequence[tuple[float, str]]) -> list[str]:
        """Lines across, each with its value before it."""
        shapes = []
        for value, words in marks:
            y = _at(self.y(value))
            shapes.append(f'<path class="grid" d="M{_at(self.left)} {y}h{_at(self.wide)}"/>')
            shapes.append(text(self.left - 5, self.y(value) + 3.5, words, "dim", "end"))
        return shapes

    def times(self, begin: Instant, end: Instant) -> list[str]:
        """Round times below; a midnight is named by its day."""
        fits = (size for size in _TICKS if (end - begin) // size <= self.wide // _widest(size))
        step = next(fits, _TICKS[-1])
        shapes = []
        for at in range(-(-begin // step) * step, end + 1, step):
            x = self.left + self.wide * (at - begin) / max(1, end - begin)
            foot = _at(self.top + self.tall)
            shapes.append(f'<path class="grid" d="M{_at(x)} {foot}v4"/>')
            shapes.append(text(x, self.top + self.tall + 15, _time(at, step), "dim", "middle"))
        return shapes


def _widest(step: Micros) -> int:
    """How much room a time needs: `Mon` the least."""
    return 34 if DAY <= step < 7 * DAY else 58


def _time(at: Instant, step: int) -> str:
    shown = to_datetime(at)
    if step >= 7 * DAY:
        return f"{shown:%d %b}"
    return f"{shown:%a}" if at % DAY == 0 else f"{shown:%H:%M}"


def round_up(value: float) -> int:
    """The next of 2, 4, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 200 …: half of it is whole too."""
    size = 1
    while True:
        for step in (2, 4, 6, 8) if size == 1 else (1, 2, 3, 4, 5, 6, 8):
            if step * size >= value:
                return step * size
        size *= 10


def _at(number: float) -> str:
    shown = f"{number:.1f}"
    return shown.removesuffix(".0")
