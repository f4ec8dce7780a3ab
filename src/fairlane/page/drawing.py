"""Drawings: charts as SVG that stretches; every one has words and a table beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlane.model.instant import SECOND, Instant, parse_instant, to_datetime
from fairlane.page.html import Html, tag
from fairlane.page.words import length
from fairlane.service.reports.timeline import RowBarDocument

ROW, GAP, BAR = 26, 4, 18
#: Height of the axis under a timeline, and how far apart its times may be.
AXIS = 22
TICKS_MAX = 8
STEPS = [SECOND * size for size in (10, 20, 60, 120, 300, 600, 1800, 3600, 7200, 14400)]
#: The class of a project's colour.
Tone = Callable[[str], str]


def meter(part: float, label: str, mark: float | None = None, tone: str = "") -> Html:
    """A bar that is filled in part, with a mark where it should be."""
    filled = tag("rect", class_="fill", width=_percent(part), height="100%", rx=3)
    ground = tag("rect", class_="ground", width="100%", height="100%", rx=3)
    shapes = [ground, filled]
    if mark is not None:
        shapes.append(tag("rect", class_="mark", x=_percent(mark), width=2, height="100%"))
    return tag("svg", shapes, class_=f"meter {tone}".strip(), role="img", aria_label=label)


def timeline(
    bars: Sequence[RowBarDocument], start: Instant, end: Instant, label: str, tone: Tone
) -> Html:
    """One row for each attempt that ran beside others; what runs reaches to the right edge."""
    rows = max((bar["row"] for bar in bars), default=0) + 1
    height = rows * ROW
    shapes = _ticks(start, end, height)
    shapes += [shape for bar in bars if (shape := _bar(bar, start, end, tone))]
    return tag(
        "svg", shapes, class_="timeline", role="img", aria_label=label,
        width="100%", height=height + AXIS,
    )  # fmt: skip


def _bar(bar: RowBarDocument, start: Instant, end: Instant, tone: Tone) -> Html | None:
    begin = parse_instant(bar["from"])
    stop = end if bar["to"] is None else parse_instant(bar["to"])
    if stop < start:
        return None
    left = max(0.0, (begin - start) / (end - start))
    width = max(0.002, (min(stop, end) - max(begin, start)) / (end - start))
    took = "running" if bar["to"] is None else f"{bar['outcome']} after {length(stop - begin)}"
    tip = f"{bar['task']} · {bar['title'][:80]}\n{bar['project']} · {took}"
    ended = bar["outcome"] or "running"
    kind = "bar open" if bar["to"] is None else f"bar {'good' if ended == 'succeeded' else 'bad'}"
    top = bar["row"] * ROW + GAP
    shape = tag("rect", width="100%", height=BAR, rx=4)
    name = tag("text", bar["task"], x=6, y=13) if width > 0.045 else None
    return tag(
        "svg", shape, name, class_=f"{kind} {tone(bar['project'])}", x=_percent(left), y=top,
        width=_percent(width), height=BAR, data_tip=tip, data_go=f"/task/{bar['task']}",
        data_key=f"{bar['task']}.{bar['attempt']}",
    )  # fmt: skip


def _ticks(start: Instant, end: Instant, height: int) -> list[Html]:
    """Times along the axis, each a round one."""
    step = next((size for size in STEPS if (end - start) // size <= TICKS_MAX), STEPS[-1])
    shapes = []
    for number, at in enumerate(range(-(-start // step) * step, end, step)):
        x = _percent((at - start) / (end - start))
        shown = to_datetime(at).astimezone()
        words = f"{shown:%H:%M:%S}" if step < 60 * SECOND else f"{shown:%H:%M}"
        shapes.append(tag("line", class_="grid", x1=x, x2=x, y1=0, y2=height))
        if 0.02 < (at - start) / (end - start) < 0.98:
            odd = "tick odd" if number % 2 else "tick"
            at_x = tag("text", words, class_=odd, x=x, y=height + 16, text_anchor="middle")
            shapes.append(at_x)
    return shapes


def columns(values: Sequence[float], tips: Sequence[str], label: str) -> Html:
    """One column a value."""
    top, count = max([*values, 1]), len(values)
    shapes = []
    for place, (value, tip) in enumerate(zip(values, tips, strict=True)):
        part = value / top
        tall = max(part * 100, 1.5)
        shape = tag(
            "rect", class_="column" if value else "column none", x=_percent((place + 0.14) / count),
            width=_percent(0.72 / count), y=f"{100 - tall:.1f}%", height=f"{tall:.1f}%", rx=2,
            data_tip=tip,
        )  # fmt: skip
        shapes.append(shape)
    return tag("svg", shapes, class_="chart", role="img", aria_label=label)


def lines(series: Sequence[tuple[str, Sequence[float | None]]], label: str) -> Html:
    """One line a series, the last one filled; where nothing is known a line is interrupted."""
    top = max([value for _, values in series for value in values if value is not None] + [1.0])
    shapes = [tag("path", class_="area", d=_area(series[-1][1], top))]
    shapes += [
        tag("path", class_=f"line {name}", d=_path(values, top), vector_effect="non-scaling-stroke")
        for name, values in series
    ]
    return tag(
        "svg", shapes, class_="chart", role="img", aria_label=label, viewBox="0 0 100 100",
        preserveAspectRatio="none",
    )  # fmt: skip


def _area(values: Sequence[float | None], top: float) -> str:
    """What is under a line: one shape for each stretch of it."""
    shapes = []
    for stretch in _path(values, top).split("M")[1:]:
        points = stretch.split("L")
        first, last = points[0].split()[0], points[-1].split()[0]
        shapes.append(f"M{first} 100L{'L'.join(points)}L{last} 100Z")
    return "".join(shapes)


def _path(values: Sequence[float | None], top: float) -> str:
    words, pen, count = [], "M", max(1, len(values) - 1)
    for place, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        x, y = place * 100 / count, 97 - value / top * 92
        words.append(f"{pen}{x:.2f} {y:.2f}")
        alone = pen == "M" and (place + 1 == len(values) or values[place + 1] is None)
        if alone:  # a single point is drawn as a short stroke
            words.append(f"L{min(100, x + 0.8):.2f} {y:.2f}")
        pen = "L"
    return "".join(words)


def _percent(part: float) -> str:
    return f"{min(1.0, max(0.0, part)) * 100:.2f}%"
