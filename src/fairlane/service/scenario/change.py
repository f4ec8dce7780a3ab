"""A change that `why` proposes, made in the tables of a scenario."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from fairlane.model.errors import Invalid
from fairlane.model.instant import (
    Instant,
    Micros,
    instant,
    parse_duration,
    parse_instant,
    show_duration,
    show_instant,
)
from fairlane.service.scenario.read import build, scopes_of, to_mapping
from fairlane.service.scenario.tasks import IN_FLIGHT_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def apply_change(scenario: str | Mapping[str, Any], apply: Mapping[str, Any]) -> dict[str, Any]:
    """The tables after all that `apply` asks for: `at`, `end`, `resume`, `policy`."""
    tables = to_mapping(scenario) if isinstance(scenario, str) else deepcopy(dict(scenario))
    changes: dict[str, Callable[[dict[str, Any], Any], None]] = {
        "end": _end,
        "resume": _resume,
        "policy": _set_policy,
        "at": _move,
    }
    for key in apply:
        if key not in changes:
            raise Invalid(f"unknown change {key!r}", f"Known: {', '.join(changes)}.")
    for key, change in changes.items():
        for value in _each(apply.get(key)):
            change(tables, value)
    return tables


def _each(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _end(tables: dict[str, Any], task_id: str) -> None:
    """A task is done; what it used stays booked."""
    task = next(each for each in build(tables, "scenario").tasks if each.id == task_id)
    used = task.lease.used if task.lease else 0
    row = next(each for each in tables["task"] if each["id"] == task_id)
    for key in (*IN_FLIGHT_KEYS, "backoff_until"):
        row.pop(key, None)
    row["status"] = "done"
    if used:
        parents = {each["name"]: each.get("parent") for each in tables.get("group", [])}
        _book(tables, "project", "name", task.project, used)
        for scope in scopes_of(task, parents):
            given = any(each["scope"] == scope for each in tables.get("usage", []))
            if given or scope.startswith(("pool:", "group:")):
                _book(tables, "usage", "scope", scope, used)


def _book(tables: dict[str, Any], table: str, label: str, name: str, tokens: int) -> None:
    """Tokens that one project or scope has used."""
    rows = tables.setdefault(table, [])
    named = [each for each in rows if each[label] == name]
    if not named:
        named = [{label: name}]
        rows += named
    for row in named:
        row["tokens"] = row.get("tokens", 0) + tokens


def _resume(tables: dict[str, Any], scope: str) -> None:
    """A pause is lifted; a paused project is active again."""
    paused = tables.get("paused", [])
    tables["paused"] = [each for each in paused if _scope(each) != scope]
    for project in tables.get("project", []):
        if scope == f"project:{project['name']}":
            project.pop("status", None)


def _scope(pause: Any) -> Any:
    return pause["scope"] if isinstance(pause, dict) else pause


def _set_policy(tables: dict[str, Any], keys: Mapping[str, Any]) -> None:
    """Some keys of the policy have other values; keys are written as `policy set` takes them."""
    from fairlane.policy import schema

    policy = tables.setdefault("policy", {})
    for key, value in keys.items():
        *path, leaf = schema.key_parts(schema.split_key(key))
        table = policy
        for name in path:
            table = table.setdefault(name, {})
        table[leaf] = value


def _move(tables: dict[str, Any], at: str) -> None:
    """It is later; whatever is told as an age is that much older."""
    now, later = _moment(tables["now"]), parse_instant(at)
    for task in tables.get("task", []):
        if "created" not in task or "age" in task:
            task["age"] = _older(task.get("age", "0s"), later - now)
        created = task.get("created")
        if isinstance(created, str) and "-" not in created[1:]:
            task["created"] = _older(created, later - now)
    tables["now"] = show_instant(later)


def _older(age: str, by: Micros) -> str:
    total = parse_duration(age) + by
    return show_duration(total - total % 1000)


def _moment(value: Any) -> Instant:
    return parse_instant(value) if isinstance(value, str) else instant(value)
