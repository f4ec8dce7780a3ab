"""A change that `why` proposes, made in the tables of a scenario."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, TypeAlias

from fairlane.model.instant import Micros, show_duration, show_instant
from fairlane.model.project import usage_scopes
from fairlane.model.values import duration, moment, section, unknown
from fairlane.service.scenario.read import build, to_mapping
from fairlane.service.scenario.tasks import IN_FLIGHT_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Table: TypeAlias = "dict[str, object]"


def apply_change(
    scenario: str | Mapping[str, object], apply: Mapping[str, object]
) -> dict[str, object]:
    """The tables after all that `apply` asks for: `at`, `end`, `exist`, `resume`, `policy`."""
    tables = to_mapping(scenario) if isinstance(scenario, str) else deepcopy(dict(scenario))
    changes: dict[str, Callable[[_Table, object], None]] = {
        "end": _end,
        "exist": _appear,
        "resume": _resume,
        "policy": _set_policy,
        "at": _move,
    }
    for key in apply:
        if key not in changes:
            raise unknown("change", key, changes)
    for key, change in changes.items():
        wanted = apply.get(key)
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if value is not None:
                change(tables, value)
    return tables


def _rows(tables: _Table, key: str) -> list[_Table]:
    """The tables of one kind, in place."""
    rows = tables.setdefault(key, [])
    return rows if isinstance(rows, list) else []


def _end(tables: _Table, task_id: object) -> None:
    """A task is done; its usage stays booked."""
    scenario = build(tables, "scenario")
    task = next(task for task in scenario.tasks if task.id == task_id)
    row = next(row for row in _rows(tables, "task") if row["id"] == task_id)
    for key in (*IN_FLIGHT_KEYS, "backoff_until"):
        row.pop(key, None)
    row["status"] = "done"
    if task.lease and task.lease.used:
        _book(tables, "project", "name", task.project, task.lease.used)
        listed = [row["scope"] for row in _rows(tables, "usage")]
        parents = scenario.snapshot.groups
        for scope in usage_scopes(task.project, task.pool, task.group, parents.get):
            if scope in listed or scope.startswith(("pool:", "group:")):
                _book(tables, "usage", "scope", scope, task.lease.used)


def _appear(tables: _Table, artifact: object) -> None:
    """A file is there; nobody waits for it any more."""
    for row in _rows(tables, "task"):
        missing = row.get("artifacts_missing")
        if isinstance(missing, list):
            row["artifacts_missing"] = [name for name in missing if name != artifact]


def _book(tables: _Table, table: str, label: str, name: str, tokens: int) -> None:
    """Tokens that one project or scope has used."""
    rows = _rows(tables, table)
    named = [row for row in rows if row[label] == name]
    if not named:
        named = [{label: name}]
        rows += named
    for row in named:
        before = row.get("tokens", 0)
        row["tokens"] = tokens + (before if isinstance(before, int) else 0)


def _resume(tables: _Table, scope: object) -> None:
    """A pause is lifted; a paused project is active again."""
    paused = tables.get("paused")
    if isinstance(paused, list):
        tables["paused"] = [pause for pause in paused if _scope(pause) != scope]
    for project in _rows(tables, "project"):
        if scope == f"project:{project['name']}":
            project.pop("status", None)


def _scope(pause: object) -> object:
    return pause["scope"] if isinstance(pause, dict) else pause


def _set_policy(tables: _Table, changes: object) -> None:
    """Some keys of the policy have other values; keys are written as `policy set` takes them."""
    from fairlane.policy import schema

    for key, value in section(changes, "policy").items():
        table = tables
        *path, leaf = ["policy", *schema.key_parts(schema.split_key(key))]
        for name in path:
            inner = table.setdefault(name, {})
            table = inner if isinstance(inner, dict) else {}
        table[leaf] = value


def _move(tables: _Table, at: object) -> None:
    """It is later; what a task gives as an age is that much older."""
    later = moment(at)
    passed = later - moment(tables["now"])
    for task in _rows(tables, "task"):
        if "created" not in task or "age" in task:
            task["age"] = _older(task.get("age", "0s"), passed)
        created = task.get("created")
        if isinstance(created, str) and "-" not in created[1:]:
            task["created"] = _older(created, passed)
    tables["now"] = show_instant(later)


def _older(age: object, by: Micros) -> str:
    total = duration(age) + by
    return show_duration(total - total % 1000)
