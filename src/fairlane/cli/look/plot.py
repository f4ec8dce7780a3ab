"""Statistics drawn: shares against what is due, usage over time, who ran when. SVG by hand."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fairlane.model.errors import Invalid
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from fairlane.model.documents.reports import ShareDocument, StatsAnswer

#: Colours of projects, distinct for colour-blind readers too, in turn.
COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#994f00",
)  # fmt: skip
#: Programs that convert SVG to PNG, with the option before the target.
CONVERTERS = (("rsvg-convert", "-o"), ("magick", ""), ("inkscape", "-o"))
WIDTH, LEFT, RIGHT, ROW, PANEL = 900, 150, 30, 22, 190
_LANES_MAX = 40


def check_target(target: Path) -> Path:
    """A file that `draw` can write, by its name and the programs that are here."""
    if target.suffix not in (".svg", ".png"):
        raise Invalid(f"--plot: {target} is neither .svg nor .png", "Name it FILE.svg.")
    if target.suffix == ".png" and not any(shutil.which(program) for program, _ in CONVERTERS):
        raise _no_converter()
    return target


def _no_converter() -> Invalid:
    hint = "Write .svg, or install rsvg-convert."
    return Invalid("--plot: there is no program here that makes PNG out of SVG", hint)


def draw(text: str, target: Path) -> None:
    """Write a picture; the ending of the name says as what."""
    check_target(target)
    try:
        if target.suffix == ".svg":
            target.write_text(text, encoding="utf-8")
        else:
            _png(text, target)
    except OSError as error:
        raise Invalid(f"--plot: {target}: {error.strerror}", "Choose another file.") from error


def _png(text: str, target: Path) -> None:
    with TemporaryDirectory(prefix="fairlane-plot-") as folder:
        source = Path(folder) / "picture.svg"
        source.write_text(text, encoding="utf-8")
        for program, between in CONVERTERS:
            path = shutil.which(program)
            if path:
                words = [path, str(source), *([between] if between else []), str(target.absolute())]
                with suppress(subprocess.TimeoutExpired):
                    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
                    if done.returncode == 0:
                        return
    raise _no_converter()


def svg(document: StatsAnswer) -> str:
    """The picture: three panels under each other."""
    names = [row["project"] for row in document["projects"]]
    names += [name for name in document["series"]["projects"] if name not in names]
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(names)}
    parts, top = _shares(document["projects"], colours, 40)
    more, top = _usage(document, colours, top + 50)
    parts += more
    more, top = _timeline(document, colours, top + 50)
    parts += more
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + 20}" '
        f'viewBox="0 0 {WIDTH} {top + 20}" font-family="sans-serif" font-size="12">'
    )
    ground = f'<rect width="{WIDTH}" height="{top + 20}" fill="white"/>'
    return "\n".join([head, ground, *parts, "</svg>"]) + "\n"


def _shares(
    projects: list[ShareDocument], colours: dict[str, str], top: int
) -> tuple[list[str], int]:
    """A bar a project, and a mark where it should end."""
    parts = [_title("Share of tokens, and what is due (mark)", top)]
    wide = WIDTH - LEFT - RIGHT
    for project in projects:
        top += ROW
        name, share, due = project["project"], project["share"], project["target"]
        parts.append(_text(LEFT - 8, top + 12, name, "end"))
        parts.append(_box(LEFT, top, wide * share, ROW - 6, colours[name], f"{share:.1%}"))
        at = LEFT + wide * due
        parts.append(f'<path d="M{at:.1f} {top - 2}v{ROW - 2}" stroke="black" stroke-width="2"/>')
        parts.append(
            _text(LEFT + wide * max(share, due) + 6, top + 12, f"{share:.1%} of {due:.1%}")
        )
    return parts, top + ROW


def _usage(document: StatsAnswer, colours: dict[str, str], top: int) -> tuple[list[str], int]:
    """Tokens over time, one on top of the other."""
    series = document["series"]
    count = len(series["at"])
    sums = [0] * count
    stacks: list[tuple[str, list[int], list[int]]] = []
    for name, points in series["projects"].items():
        lower, sums = sums, [low + point["tokens"] for low, point in zip(sums, points, strict=True)]
        stacks.append((name, lower, sums))
    most = max([1, *sums])
    parts = [_title(f"Tokens over time (most in one step: {max(sums, default=0):,})", top)]
    base, wide = top + 14 + PANEL, (WIDTH - LEFT - RIGHT) / max(1, count)
    for name, lower, upper in stacks:
        for at, (low, high) in enumerate(zip(lower, upper, strict=True)):
            if high > low:
                y, tall = base - PANEL * high / most, PANEL * (high - low) / most
                left = LEFT + at * wide
                parts.append(_box(left, y, max(1.0, wide - 1), tall, colours[name], name))
    parts.append(f'<path d="M{LEFT} {base}H{WIDTH - RIGHT}" stroke="#888"/>')
    parts.append(_text(LEFT, base + 16, series["at"][0] if count else ""))
    parts.append(_text(WIDTH - RIGHT, base + 16, series["at"][-1] if count else "", "end"))
    return parts, base + 20


def _timeline(document: StatsAnswer, colours: dict[str, str], top: int) -> tuple[list[str], int]:
    """Who ran when: as many rows as ran at once."""
    start, end = parse_instant(document["since"]), parse_instant(document["now"])
    scale = (WIDTH - LEFT - RIGHT) / max(1, end - start)
    parts = [_title("Who ran when", top)]
    free: list[int] = []  # until when each row is taken
    for bar in document["timeline"]:
        began, ended = max(start, parse_instant(bar["from"])), parse_instant(bar["to"])
        row = next((at for at, until in enumerate(free) if until <= began), len(free))
        if row >= _LANES_MAX:
            continue
        free[row : row + 1] = [ended]
        left, y = LEFT + (began - start) * scale, top + 12 + row * 14
        wide = max(1.5, (ended - began) * scale)
        colour = colours.get(bar["project"], COLOURS[-1])
        parts.append(_box(left, y, wide, 11, colour, f"{bar['task']}: {bar['outcome']}"))
    return parts, top + 16 + len(free) * 14


def _title(text: str, top: int) -> str:
    return f'<text x="{LEFT}" y="{top}" font-weight="bold">{escape(text)}</text>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _box(x: float, y: float, wide: float, tall: float, colour: str, title: str) -> str:
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" fill="{colour}"'
    return f"<rect {shape}><title>{escape(title)}</title></rect>"
