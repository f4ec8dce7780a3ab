"""Words: what a simulation found, as people read it: lengths, tables, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND
from fairlane.model.task import Status
from fairlane.planner.readiness import SENTENCES

if TYPE_CHECKING:
    from fairlane.model.documents.simulation import (
        PolicyFlowDocument,
        ProjectFlowDocument,
        SimulateAnswer,
    )

#: So many refused acts are named.
UNDONE_MAX = 3
#: What keeps tasks waiting that are not ready; a pause of everything holds ready ones.
_NOT_READY = SENTENCES.keys() - {"paused"}
#: What a figure that does not exist looks like.
NONE = "–"
#: More projects than these have no column of their own.
PROJECTS_MAX = 6
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
#: A length is shown in the largest unit of which it has at least this many.
_LEAST = 1.5
#: Figures nearer to each other than this (a tenth) do not differ in words.
_NEAR = 1.1
#: So many tokens are shown as millions.
_MILLION = 999_500
#: Whole dollars are enough from here on.
_DOLLARS = 100


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
    """`$4.20`, `$1,204`."""
    return f"${usd:,.0f}" if usd >= _DOLLARS else f"${usd:.2f}"


def token_count(tokens: int) -> str:
    """`51.2M`, `12k`, `850`."""
    if tokens >= _MILLION:
        return f"{tokens / 1_000_000:,.1f}M"
    return f"{_two_digits(tokens / 1000)}k" if tokens >= 1000 else str(tokens)


class Column(NamedTuple):
    """One column of the table of policies."""

    head: str
    cell: Callable[[PolicyFlowDocument], str]


#: What people read on a terminal; `held by` is the code that held ready tasks for longest.
COLUMNS = (
    Column("policy", lambda row: row["name"]),
    Column("done", lambda row: f"{row['done']:,}"),
    Column("wait p50", lambda row: length(row["waits"]["p50"])),
    Column("p90", lambda row: length(row["waits"]["p90"])),
    Column("longest", lambda row: length(row["waits"]["max"])),
    Column("busy", lambda row: percent(row["utilisation"])),
    Column("cost", lambda row: dollars(row["usd"]) if row["usd"] else token_count(row["tokens"])),
    Column("held by", lambda row: _mostly(row["held"])),
)


def _mostly(held: dict[str, float]) -> str:
    ready = {code: held[code] for code in sorted(held) if code not in _NOT_READY and held[code]}
    return max(ready, key=lambda code: ready[code], default="")


def table(
    rows: Sequence[PolicyFlowDocument], columns: Sequence[Column] = COLUMNS
) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and a row a policy; all but the first and last are numbers."""
    return [each.head for each in columns], [[each.cell(row) for each in columns] for row in rows]


def by_project(answer: SimulateAnswer) -> tuple[list[str], list[list[str]]]:
    """For several policies: how long the tasks of each project wait (p90), a row a policy."""
    policies = answer["policies"]
    names = list(dict.fromkeys(row["project"] for each in policies for row in each["by_project"]))
    if not 1 < len(names) <= PROJECTS_MAX:
        return [], []
    cells = []
    for policy in policies:
        waits = {row["project"]: length(row["waits"]["p90"]) for row in policy["by_project"]}
        cells.append([policy["name"], *(waits.get(name, NONE) for name in names), ""])
    return ["policy", *names, ""], cells


def projects(rows: Sequence[ProjectFlowDocument]) -> tuple[list[str], list[list[str]]]:
    """For one policy: a row a project."""
    heads = ["project", "weight", "done", "wait p50", "p90", "tokens", "share", "due", "behind"]
    cells = [
        [
            row["project"],
            f"{row['weight']:,}",
            f"{row['done']:,}",
            length(row["waits"]["p50"]),
            length(row["waits"]["p90"]),
            token_count(row["tokens"]),
            percent(row["share"]),
            percent(row["target"]),
            NONE if row["lag"] is None else f"{row['lag']:,}",
        ]
        for row in rows
    ]
    return heads, cells


def head(answer: SimulateAnswer) -> str:
    """What was simulated, in one line."""
    most = max(row["tasks"] + row["refused"] for row in answer["policies"])
    tasks = "1 task" if most == 1 else f"{most:,} tasks"
    return f"{tasks} in {length(answer['days'] * DAY / SECOND)}, seed {answer['seed']}"


def summary(row: PolicyFlowDocument) -> str:
    """One policy in one line."""
    median, p90 = length(row["waits"]["p50"]), length(row["waits"]["p90"])
    busy = percent(row["utilisation"])
    return f"{row['done']:,} done; wait {median}, p90 {p90}; slots {busy} busy"


def held(row: PolicyFlowDocument) -> str:
    """What kept the tasks of one policy waiting, the longest first; empty: nothing did."""
    codes = sorted(row["held"], key=lambda code: (-row["held"][code], code))
    return ", ".join(f"{code} {length(row['held'][code])}" for code in codes if row["held"][code])


def alone(row: PolicyFlowDocument) -> list[str]:
    """What else there is to say of one policy, a sentence a line."""
    waited, late, lines = held(row), row["late"], []
    lines += [f"Held, over all tasks: {waited}."] if waited else []
    if late["task"] is not None:
        never = late["never_started"]
        rest = f" {never:,} never started." if never else ""
        lines.append(f"Longest wait: {late['task']}, {length(late['seconds'])}.{rest}")
    left = {key: count for key, count in row["statuses"].items() if key != Status.DONE}
    left |= {"refused by the full queue": row["refused"]} if row["refused"] else {}
    if left:
        counts = ", ".join(f"{count:,} {status}" for status, count in left.items())
        lines.append(f"Not done at the end: {counts}.")
    lines += [
        f"Refused: {act['do']} at {act['at']}: {act['why']}." for act in row["undone"][:UNDONE_MAX]
    ]
    if more := row["undone"][UNDONE_MAX:]:
        lines.append(f"Refused: {len(more):,} more acts.")
    if row["lag"] is not None:
        furthest = f"{row['lag']:,} tokens/weight (bound {row['bound']:,})"
        lines.append(f"Furthest behind its share: {furthest}.")
    return lines


class Measure(NamedTuple):
    """Something by which policies differ: less of it is better, or more."""

    what: str
    of: Callable[[PolicyFlowDocument], float | None]
    show: Callable[[float], str]


def _number(number: float) -> str:
    return f"{number:,.0f}"


MEASURES = (
    Measure("Wait p90", lambda row: row["waits"]["p90"], length),
    Measure("Longest wait", lambda row: row["waits"]["max"], length),
    Measure("Last attempt ended after", lambda row: row["took"], length),
    Measure("Tasks done", lambda row: row["done"], _number),
    Measure("Tasks that the full queue refused", lambda row: row["refused"], _number),
    Measure("Throttled attempts", lambda row: row["attempts"].get("throttled", 0), _number),
    Measure("Parked tasks", lambda row: row["statuses"].get("parked", 0), _number),
    Measure("Cost", lambda row: row["usd"], dollars),
)


def differences(answer: SimulateAnswer) -> list[str]:
    """What differs between the policies, one line a measure, the least first."""
    lines = []
    for measure in MEASURES:
        found = [
            (value, row["name"])
            for row in answer["policies"]
            if (value := measure.of(row)) is not None
        ]
        least = min((value for value, _ in found), default=0)
        most = max((value for value, _ in found), default=0)
        if most > least * _NEAR and measure.show(most) != measure.show(least):
            low = ", ".join(name for value, name in found if value == least)
            high = ", ".join(name for value, name in found if value == most)
            lines.append(
                f"{measure.what}: {measure.show(least)} ({low}) to {measure.show(most)} ({high})"
            )
    return lines
