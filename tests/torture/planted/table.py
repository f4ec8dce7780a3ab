"""The table of planted bugs, as the page about torture shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.torture.planted.finding import Found, known
from tests.torture.planted.listed import BUGS

PAGE = Path(__file__).parents[3] / "docs" / "torture.md"
#: Between these lines of the page the table stands.
BEGIN, END = "<!-- planted bugs -->", "<!-- end of planted bugs -->"


def lines(rows: dict[str, Found]) -> Iterator[str]:
    """The table."""
    yield "| bug | what is wrong | broken promise | seeds, seconds | seed | events | shrunk |"
    yield "|---|---|---|---|---|---|---|"
    for name, each in BUGS.items():
        row = rows.get(name)
        if row is None:
            continue
        yield (
            f"| {name} | {each.wrong} | {row.promise} | {row.cold_seeds}, {row.cold_seconds}"
            f" | {row.seed} | {row.events} | {row.choices} to {len(row.shortest)} |"
        )


def write() -> None:
    """Put the table into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(lines(known()))
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
