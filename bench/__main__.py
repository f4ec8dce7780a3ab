"""Runs every bench_*.py beside this file, prints one table, writes results.md and results.json.

`python -m bench` runs all; `python -m bench planner store` runs bench_planner and bench_store, and
leaves the results as they are, as does `--small`, which measures little of everything in seconds.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import asdict
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING

from bench.sizes import FULL, SMALL

if TYPE_CHECKING:
    from bench.measure import Row

HERE = Path(__file__).parent
HEADINGS = ("what", "ours", "against", "ratio", "asked", "reached")
DISTRIBUTIONS = ("fairlane", "huey", "litequeue", "persist-queue")
SMALL_OPTION = "--small"


def main(words: list[str]) -> int:
    known = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    small = SMALL_OPTION in words
    asked = (word for word in words if word != SMALL_OPTION)
    names = [name for word in asked for name in word.split(",") if name]
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"No bench {unknown[0]!r}. Known: {', '.join(known)}.", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names or known:
        print(f"bench {name} …", file=sys.stderr, flush=True)
        rows += import_module(f"bench.bench_{name}").rows(SMALL if small else FULL)
    print(table(rows))
    if not names and not small:
        (HERE / "results.md").write_text(document(rows), encoding="utf-8")
        found = {"versions": versions(), "rows": [asdict(row) for row in rows]}
        text = json.dumps(found, indent=1, ensure_ascii=False)
        (HERE / "results.json").write_text(f"{text}\n", encoding="utf-8")
    return 0 if small or all(row.passed for row in rows) else 1


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
    return (row.what, row.ours, row.against, ratio, row.asked or "–", row.verdict)


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
    return " · ".join([*parts, parallel()])


def parallel() -> str:
    """Which GNU parallel is installed."""
    if shutil.which("parallel") is None:
        return "GNU parallel not installed"
    words = ["parallel", "--will-cite", "--version"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return text.partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
