"""Runs every bench_*.py beside this file, prints one table, writes results.md.

`python -m bench` runs all; `python -m bench planner why` runs bench_planner and bench_why,
and leaves results.md as it is.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.measure import Row

HERE = Path(__file__).parent
HEADINGS = ("what", "ours", "against", "ratio", "asked", "pass")
DISTRIBUTIONS = ("fairlane", "huey", "litequeue", "persist-queue")


def main(names: list[str]) -> int:
    found = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = sorted(set(names) - set(found))
    if unknown:
        print(f"No bench {unknown[0]!r}. Known: {', '.join(found)}.", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names or found:
        print(f"bench {name} …", file=sys.stderr, flush=True)
        rows += import_module(f"bench.bench_{name}").rows()
    print(table(rows))
    if not names:
        (HERE / "results.md").write_text(document(rows), encoding="utf-8")
    return 0 if all(row.passed for row in rows) else 1


def table(rows: list[Row]) -> str:
    """A Markdown table whose columns also line up on a terminal."""
    lines = [HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )


def cells(row: Row) -> tuple[str, ...]:
    ratio = (
        "–"
        if row.ratio is None
        else f"{row.ratio:,.3g}"
        if row.ratio < 100
        else f"{row.ratio:,.0f}"
    )
    verdict = ("yes" if row.passed else "NO") if row.asked else "–"
    return (row.what, row.ours, row.against, ratio, row.asked or "–", verdict)


def document(rows: list[Row]) -> str:
    return (
        "# Results of `make bench`\n\n"
        "Both figures of a row come from the same run on one machine, as medians of repeats.\n"
        "Only the ratios are asked for; the rest is for orientation.\n\n"
        f"{table(rows)}\n\n{versions()}\n"
    )


def versions() -> str:
    parts = [
        f"Python {platform.python_version()}",
        f"SQLite {sqlite3.sqlite_version}",
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    ]
    for name in DISTRIBUTIONS:
        try:
            parts.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            parts.append(f"{name} not installed")
    return " · ".join(parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
