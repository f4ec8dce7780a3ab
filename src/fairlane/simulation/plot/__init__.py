"""`--plot`: who waits, who runs and who used what over time, one panel a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING

from fairlane.simulation.plot import shapes
from fairlane.simulation.plot.series import Series, drawn, series_of, shown_projects
from fairlane.simulation.plot.shapes import Strip, text
from fairlane.simulation.words import head, summary

if TYPE_CHECKING:
    from fairlane.model.documents.simulation import PolicyFlowDocument, SimulateAnswer
    from fairlane.model.instant import Instant
    from fairlane.simulation.run import Run

WIDTH, EDGE, LEFT, GAP = 1000, 20, 38, 26
#: Heights: of a panel's words, of its three charts, between charts, of the axis.
WORDS, WAITING, RUNNING, SHARES, BETWEEN, AXIS = 30, 84, 62, 84, 26, 44
PANEL = WORDS + WAITING + RUNNING + SHARES + 3 * BETWEEN + AXIS
#: Longest title.
TITLE_MAX = 60
#: How wide a column of a curve is.
COLUMN = 2.5


def svg(answer: SimulateAnswer, runs: Sequence[Run]) -> str:
    """The whole picture; all panels have the same scales and times."""
    across = _across(len(runs))
    wide = (WIDTH - 2 * EDGE - GAP * (across - 1)) / across
    columns = int((wide - LEFT) / COLUMN)
    shown = shown_projects(runs)
    legend, top = _legend(drawn(shown), 62)
    until = max(run.end for run in runs)
    curves = [series_of(run, shown, columns, until) for run in runs]
    scales = _scales(curves)
    parts = []
    for at, (run, row, series) in enumerate(zip(runs, answer["policies"], curves, strict=True)):
        x, y = EDGE + (wide + GAP) * (at % across), top + PANEL * (at // across)
        parts += _panel((run.begin, until), row, series, scales, (x, y, wide))
    height = int(top) + PANEL * -(-len(runs) // across)
    return "\n".join([*_head(answer, height), *legend, *filter(None, parts), "</svg>", ""])


def _across(panels: int) -> int:
    """How many panels are side by side."""
    return {1: 1, 2: 2, 4: 2}.get(panels, 3)


def _scales(curves: Sequence[Series]) -> tuple[int, int]:
    """The tops of the charts of what waits and what runs."""
    waiting = [sum(column) for one in curves for column in zip(*one.waiting.values(), strict=True)]
    running = [sum(column) for one in curves for column in zip(*one.running.values(), strict=True)]
    slots = [value for one in curves for value in one.slots]
    return shapes.round_up(max(waiting, default=0)), shapes.round_up(max([*running, *slots, 0]))


def _head(answer: SimulateAnswer, height: int) -> list[str]:
    begin = answer["begin"].partition("T")[0]
    title = shapes.cut(answer["workload"], TITLE_MAX)
    about = f"{head(answer)}, from {begin} (UTC)"
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui,-apple-system,Segoe UI,Roboto,sans-serif" font-size="11">'
    )
    return [
        svg,
        f"<title>{shapes.safe(answer['workload'])}: {shapes.safe(about)}</title>",
        shapes.style(),
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        f'<g font-size="16">{text(EDGE, 28, title, "ink head")}</g>',
        text(WIDTH - EDGE, 28, about, "dim", "end"),
    ]


def _legend(names: Sequence[str], y: float) -> tuple[list[str], float]:
    """The colours of projects and what the lines mean; and where the panels begin."""
    marks = [f'<rect class="c{at}" {{place}} width="10" height="10"/>' for at in range(len(names))]
    lines = [f'<path class="{look}" d="M{{x}} {{y}}h14"/>' for look in ("slots", "target")]
    entries = [*zip(marks, map(shapes.cut, names), strict=True)]
    entries += zip(lines, ("slots", "target share"), strict=True)
    parts, x = [], float(EDGE)
    for mark, words in entries:
        wide = 18 + 6.4 * len(words) + 16
        if x + wide > WIDTH - EDGE:
            x, y = float(EDGE), y + 18
        at = f'x="{x:g}" y="{y - 9:g}"'
        parts.append(mark.format(place=at, x=f"{x - 2:g}", y=f"{y - 4:g}"))
        parts.append(text(x + 15, y, words))
        x += wide
    return parts, y + 16


def _panel(
    span: tuple[Instant, Instant],
    row: PolicyFlowDocument,
    series: Series,
    scales: tuple[int, int],
    place: tuple[float, float, float],
) -> list[str]:
    """One policy: its name and figures, then the three charts under each other."""
    x, y, wide = place
    most_waiting, most_running = scales
    left, size = x + LEFT, wide - LEFT
    waiting = Strip(left, y + WORDS + BETWEEN, size, WAITING, most_waiting)
    running = Strip(left, waiting.top + WAITING + BETWEEN, size, RUNNING, most_running)
    shares = Strip(left, running.top + RUNNING + BETWEEN, size, SHARES, 1)
    lines = [line for line in _targets(series) if line < 1]
    return [
        f'<g font-size="13">{text(x, y + 12, shapes.cut(row["name"]), "ink head")}</g>',
        text(x, y + 28, summary(row), "dim"),
        *_chart(waiting, "waiting", series.waiting, _halves(most_waiting)),
        *_chart(running, "running", series.running, _halves(most_running)),
        running.line(series.slots, "slots"),
        *_chart(shares, "share of tokens", series.shares, ((0, "0"), (0.5, "50 %"), (1, "100 %"))),
        *(shares.line((line, line), "target") for line in lines),
        *shares.times(*span),
    ]


def _halves(most: int) -> tuple[tuple[float, str], ...]:
    return (0, "0"), (most // 2, f"{most // 2:,}"), (most, f"{most:,}")


def _chart(
    strip: Strip,
    title: str,
    curves: Mapping[str, Sequence[float]],
    marks: Sequence[tuple[float, str]],
) -> list[str]:
    """Curves on top of each other, the first at the bottom."""
    sums = list(accumulate(curves.values(), lambda below, own: [*map(add, below, own)]))
    areas = [strip.area(values, f"c{at}") for at, values in enumerate(sums)]
    return [text(strip.left, strip.top - 8, title, "dim"), *strip.grid(marks), *reversed(areas)]


def _targets(series: Series) -> list[float]:
    """Where the borders between projects should be in the chart of shares."""
    return [round(line, 6) for line in accumulate(series.targets.values())]
