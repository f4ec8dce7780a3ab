"""agent-queue: its YAML becomes fair-share rules, its database becomes projects and tasks."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from fractions import Fraction
from math import gcd, lcm
from pathlib import Path
from typing import TypeVar

from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND
from fairlane.model.task import SHIPPED, Status
from fairlane.service.conversion import base
from fairlane.service.conversion.base import (
    HOURS,
    UNCHANGED,
    Brought,
    Converted,
    Keys,
    count,
    number,
)

MAGIC = b"SQLite format 3\0"
_TABLES = ("projects", "tasks", "task_dependencies", "token_ledger")
_PROJECT = {"ACTIVE": "active", "PAUSED": "paused", "ARCHIVED": "archived"}
#: What it would start by itself, and what is over; everything else needs a look.
_STATUS = {"DEFINED": Status.QUEUED, "READY": Status.QUEUED, "COMPLETED": Status.DONE}
T = TypeVar("T")
_Row = dict[str, object]
#: What a column is that a database of another age does not have, or that is empty.
_UNSAID = {
    "credit_weight": 1.0, "max_concurrent_agents": 2, "budget_limit": None, "parent_task_id": None,
    "description": None, "priority": None, "retry_count": 0, "max_retries": 3,
}  # fmt: skip


def convert(path: Path) -> Converted:
    """A configuration, a database, or the folder that holds both."""
    converted = Converted()
    names = ("config.yaml", "config.yml", "agent-queue.yaml", "agent-queue.db")
    for file in base.inside(path, *names):
        if _is_database(file):
            _database(file, converted)
        else:
            _rules(base.read_yaml(file), converted)
    return converted


def _is_database(file: Path) -> bool:
    try:
        with file.open("rb") as handle:
            return handle.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise Invalid(f"{file}: cannot be read: {error.strerror}", UNCHANGED) from error


def _rules(keys: Keys, converted: Converted) -> None:
    converted.preset = "fair-share"
    window = keys.take("scheduling.rolling_window_hours", HOURS)
    converted.rule("share.window", window, "scheduling.rolling_window_hours")
    guarantee = keys.take("scheduling.min_task_guarantee", _guarantee)
    converted.rule("share.guarantee", guarantee, "scheduling.min_task_guarantee")
    converted.rule("readiness.parent", "none", "a subtask does not wait for its parent")
    daily = keys.take("global_token_budget_daily", count)
    if daily is not None:
        converted.budgets.append({"scope": "all", "tokens": daily, "window": "24h"})
        converted.note(
            "global_token_budget_daily is a budget over the last 24 hours, whatever the window "
            "of shares is."
        )
    converted.settings["agent"] = "claude"
    converted.called["agent"] = "agent-queue starts Claude Code"
    converted.unknown += keys.unknown()


def _guarantee(value: object) -> int:
    return int(value) if isinstance(value, bool) else count(value)


def _database(file: Path, converted: Converted) -> None:
    """Open it read-only, without files of our own next to it."""
    try:
        with closing(sqlite3.connect(_address(file), uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            tables = {name: _rows(connection, name) for name in _TABLES}
    except sqlite3.Error as error:
        raise Invalid(f"{file}: not agent-queue's database: {error}", UNCHANGED) from error
    try:
        _projects(tables["projects"], converted)
        _tasks(tables, converted)
    except KeyError as error:
        raise Invalid(f"{file}: a table without column {error}", UNCHANGED) from error
    except Invalid as error:
        raise Invalid(f"{file}: {error.message}", f"{error.hint} {UNCHANGED}") from error


def _address(file: Path) -> str:
    """The URL: immutable if no write-ahead log exists, because then nobody writes to it."""
    target = file.resolve()
    log = target.with_name(f"{target.name}-wal")
    used = log.exists() and log.stat().st_size
    return f"{target.as_uri()}?{'mode=ro' if used else 'immutable=1'}"


def _rows(connection: sqlite3.Connection, table: str) -> list[_Row]:
    rows = map(dict, connection.execute(f"SELECT * FROM {table}"))
    return [_UNSAID | {key: said for key, said in row.items() if said is not None} for row in rows]


def _projects(rows: list[_Row], converted: Converted) -> None:
    credits = [_take(row, "credit_weight", number) for row in rows]
    weights = _whole_weights(credits)
    window = converted.policy.get("share.window")
    for row, weight in zip(rows, weights, strict=True):
        values: dict[str, object] = {
            "weight": weight,
            "max_in_flight": _take(row, "max_concurrent_agents", count),
            "status": _PROJECT.get(str(row["status"]), "paused"),
        }
        if row["budget_limit"] is not None:
            budget: dict[str, object] = {"tokens": _take(row, "budget_limit", count)}
            values["budgets"] = [budget | ({"window": window} if window else {})]
        converted.projects[str(row["id"])] = values
    if weights != credits:
        converted.note("Weights are whole numbers here: all are scaled, their ratio is kept.")


def _whole_weights(weights: Iterable[float]) -> list[int]:
    """The smallest whole numbers in the same ratio; whole ones stay as they are."""
    exact = [Fraction(weight).limit_denominator(1000) for weight in weights]
    scale = lcm(*(weight.denominator for weight in exact))
    whole = [int(weight * scale) for weight in exact]
    common = gcd(*whole) if scale > 1 else 1
    return [weight // (common or 1) for weight in whole]


def _tasks(tables: dict[str, list[_Row]], converted: Converted) -> None:
    needs: dict[object, list[object]] = {}
    for row in tables["task_dependencies"]:
        needs.setdefault(row["task_id"], []).append(row["depends_on_task_id"])
    used: dict[object, list[tuple[int, int]]] = {}
    for row in tables["token_ledger"]:
        entry = (_take(row, "timestamp", _instant), _take(row, "tokens_used", count))
        used.setdefault(row.get("task_id"), []).append(entry)
    for row in tables["tasks"]:
        ledger = tuple(sorted(used.get(row["id"], ())))
        converted.tasks.append(_task(row, needs.get(row["id"], []), ledger))
    lost = sum(
        tokens
        for task in used.keys() - {row["id"] for row in tables["tasks"]}
        for _, tokens in used[task]
    )
    if lost:
        converted.note(f"{lost:,} tokens of the ledger belong to no task that is there: left out.")
    if used:
        converted.note(
            "The ledger's tokens are booked to their projects at their time, so shares go on "
            "where they were; it holds one number an entry, which counts as output."
        )
    if any(task.status is Status.PARKED for task in converted.tasks):
        converted.note(
            "Tasks that are neither defined, ready nor completed come in parked: nothing starts "
            "twice. `fairlane retry ID` puts one back."
        )


def _task(row: _Row, needs: list[object], used: tuple[tuple[int, int], ...]) -> Brought:
    status = _STATUS.get(str(row["status"]), Status.PARKED)
    agent = row.get("agent_type")
    left = ["preferred_workspace_id", "branch_name", "pr_url"]
    left += [] if agent in SHIPPED else ["agent_type"]
    record = {
        "id": row["id"],
        "project": row["project_id"],
        "title": row["title"],
        "prompt": row["description"],
        "priority": row["priority"],
        "parent": row["parent_task_id"],
        "needs": needs or None,
        "max_attempts": max(1, _take(row, "max_retries", count)),
        "agent": agent if agent in SHIPPED else None,
        "meta": {key: row[key] for key in left if row.get(key) is not None} or None,
    }
    return Brought(
        {key: value for key, value in record.items() if value is not None},
        status,
        created_at=_take(row, "created_at", _instant) if "created_at" in row else None,
        ended_at=_ended(row) if status is Status.DONE else None,
        failures=_take(row, "retry_count", count),
        reason=f"{row['status']} in agent-queue" if status is Status.PARKED else "",
        used=used,
    )


def _ended(row: _Row) -> int | None:
    last = next((name for name in ("updated_at", "created_at") if name in row), None)
    return None if last is None else _take(row, last, _instant)


def _take(row: _Row, column: str, read: Callable[[object], T]) -> T:
    """A typed value; one that is refused is named with its row."""
    try:
        return read(row[column])
    except Invalid as error:
        raise error.within(f"{row['id']}: {column}") from None


def _instant(seconds: object) -> int:
    return round(number(seconds) * SECOND)
