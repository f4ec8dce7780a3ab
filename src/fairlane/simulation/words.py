"""Words: what a simulation found, as people read it: lengths, a table, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from fairlane.model.documents.simulation import PolicyFlowDocument, SimulateAnswer

#: What a figure that does not exist looks like.
NONE = "–"
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
#: A length is shown in the largest unit of which it has at least this many.
_LEAST = 1.5


def length(seconds: float | None) -> str:
    """A length in one unit, with two digits: `34 s`, `12 min`, `2.1 h`."""
    if seconds is None:
        return NONE
    for micros, unit in _UNITS:
        size = micros // SECOND
        if seconds >= _LEAST * size or unit == "s":
            break
    return f"{_two_digits(seconds / size)} {unit}"


def _two_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 9.95 else f"{number:.1f}".removesuffix(".0")


def percent(part: float | None) -> str:
    """`73 %`."""
    return NONE if part is None else f"{part * 100:.0f} %"


def dollars(usd: float) -> str:
    """`$4.20`; empty where nothing was paid."""
    return f"${usd:,.2f}" if usd else ""


class Column(NamedTuple):
    """One column of the table of policies."""

    head: str
    cell: Callable[[PolicyFlowDocument], str]
    #: Whether it is there; a column in which every cell is empty is left out.
    always: bool = True


COLUMNS = (
    Column("policy", lambda row: row["name"]),
    Column("done", lambda row: f"{row['done']:,}"),
    Column("wait p50", lambda row: length(row["waits"]["p50"])),
    Column("p90", lambda row: length(row["waits"]["p90"])),
    Column("longest", lambda row: length(row["waits"]["max"])),
    Column("busy", lambda row: percent(row["utilisation"])),
    Column("M tokens", lambda row: f"{row['tokens'] / 1_000_000:,.1f}"),
    Column("cost", lambda row: dollars(row["usd"]), always=False),
    Column("parked", lambda row: _some(row["statuses"].get("parked", 0)), always=False),
    Column("waiting", lambda row: _some(row["statuses"].get("queued", 0)), always=False),
)


def _some(number: int) -> str:
    return f"{number:,}" if number else ""


def table(rows: Sequence[PolicyFlowDocument]) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and a row a policy; all but the first are numbers."""
    shown = [column for column in COLUMNS if column.always or any(column.cell(row) for row in rows)]
    return [column.head for column in shown], [[each.cell(row) for each in shown] for row in rows]


def head(answer: SimulateAnswer) -> str:
    """What was simulated, in one line."""
    most = max(row["tasks"] for row in answer["policies"])
    return f"{most:,} tasks in {length(answer['days'] * DAY / SECOND)}, seed {answer['seed']}"


def summary(row: PolicyFlowDocument) -> str:
    """One policy in one line."""
    median, p90 = length(row["waits"]["p50"]), length(row["waits"]["p90"])
    busy = percent(row["utilisation"])
    return f"{row['done']:,} done; wait {median}, p90 {p90}; slots {busy} busy"
