"""Takes results.json of `make bench` into docs/performance.md, with a picture of a task's life.

`python -m bench.performance`
"""

from __future__ import annotations

import json
import sys
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from bench.__main__ import HERE, table
from bench.measure import LIFE, Row
from fairlane.simulation.plot import shapes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULTS = HERE / "results.json"
DOCUMENT = HERE.parent / "docs" / "performance.md"
PICTURE = DOCUMENT.parent / "pictures" / "performance.svg"
BEGIN, END = "<!-- begin: make bench -->", "<!-- end: make bench -->"
WIDTH, HEIGHT, EDGE, BAR = 760, 150, 20, 34


def main(results: Path = RESULTS, page: Path = DOCUMENT, picture: Path = PICTURE) -> int:
    if not results.exists():
        print(f"{results} is not there. Run `make bench` first.", file=sys.stderr)
        return 2
    found = json.loads(results.read_text(encoding="utf-8"))
    rows = [Row(**row) for row in found["rows"]]
    picture.write_text(svg(shares(rows)), encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    parts = ", ".join(f"{name} {share:.0%}" for name, share in shares(rows).items())
    shown = f"![A task's life: {parts}](pictures/{picture.name})"
    said = "These figures come from `make bench`, on one machine, in one run."
    inside = "\n\n".join([said, table(rows), found["versions"], shown])
    page.write_text(filled(text, inside), encoding="utf-8")
    return 0


def filled(text: str, inside: str) -> str:
    """A document with this between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document lacks {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{inside}\n{END}{after}"


def shares(rows: Sequence[Row]) -> dict[str, float]:
    """Part of a task's life -> its share of the whole."""
    return {
        row.what.removeprefix(LIFE): row.ratio
        for row in rows
        if row.what.startswith(LIFE) and row.ratio is not None
    }


def svg(parts: Mapping[str, float]) -> str:
    """One bar, cut into the parts, with a legend below."""
    wide, top = WIDTH - 2 * EDGE, 52
    lefts = [EDGE + wide * share for share in accumulate(parts.values(), initial=0.0)]
    bars, legend, apart = [], [], wide / max(1, len(parts))
    for at, (name, share) in enumerate(parts.items()):
        look = f'class="c{at % len(shapes.COLOURS)}"'
        bars.append(
            f'<rect {look} x="{lefts[at]:.1f}" y="{top}" width="{wide * share:.1f}" '
            f'height="{BAR}"/>'
        )
        x, y = EDGE + apart * at, top + BAR + 34
        legend.append(f'<rect {look} x="{x:.1f}" y="{y - 9}" width="10" height="10"/>')
        legend.append(shapes.text(x + 15, y, f"{name} {share:.0%}"))
    title = "A task's life, from add to a started process"
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{shapes.safe(title)}</title>{shapes.style()}",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
        '<g font-family="system-ui,sans-serif" font-size="12">',
        shapes.text(EDGE, 30, title, "ink head"),
    ]
    return "\n".join([*head, *bars, *legend, "</g></svg>", ""])


if __name__ == "__main__":
    sys.exit(main())
