"""agent-queue: its YAML becomes fair-share rules, its database becomes projects and tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import gcd, lcm
from pathlib import Path
from typing import TypeVar

from fairlane.model.errors import Invalid
from fairlane.model.values import check_name, take
from fairlane.service.conversion import base
from fairlane.service.conversion.base import (
    HOURS,
    UNCHANGED,
    Converted,
    Keys,
    count,
    number,
)
from fairlane.service.conversion.formats.agent_queue.database import (
    Database,
    Row,
    is_database,
)
from fairlane.service.conversion.formats.agent_queue.folders import Folders, folders_of
from fairlane.service.conversion.formats.agent_queue.work import Work

T = TypeVar("T")
_PROJECT = {"ACTIVE": "active", "PAUSED": "paused", "ARCHIVED": "archived"}
_RETIRED = "RETIRED"
_PROJECT_COLUMNS = (
    "id", "credit_weight", "max_concurrent_agents", "status", "budget_limit", "workspace_path",
    "total_tokens_used", "created_at", "retry_count", "max_retries", "repo_default_branch",
)  # fmt: skip


def convert(path: Path) -> Converted:
    """A configuration, a database, or the folder that holds both."""
    converted = Converted()
    names = ("config.yaml", "config.yml", "agent-queue.yaml", "agent-queue.db")
    for file in base.inside(path, *names):
        if is_database(file):
            _database(file, converted)
        else:
            _rules(base.read_yaml(file), converted)
    if converted.preset is None:
        converted.note(
            "There is no config.yaml, so the rules in force stay. agent-queue's defaults: "
            "`fairlane policy use fair-share`, then `fairlane policy set readiness.parent=none`."
        )
    return converted


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
    """Projects are all or nothing, as rules are; tasks come in one by one."""
    database = Database(file)
    database.give_names(converted)
    try:
        _projects(database, converted)
    except Invalid as error:
        hint = f"{error.hint} {UNCHANGED}".lstrip()
        raise Invalid(f"{file}: {error.message}", hint) from error
    folders = folders_of(database, list(converted.projects))
    _place(database, folders, converted)
    _agents(database, converted)
    odd = database.odd_columns("projects", _PROJECT_COLUMNS)
    converted.unknown += [f"projects.{name}" for name in odd]
    Work(database, folders, converted).read()
    converted.unknown += [f"table {name}" for name in database.others]


def _projects(database: Database, converted: Converted) -> None:
    rows = [row for _, row in database.rows("projects")]
    credits = [_of(row, "credit_weight", number) for row in rows]
    weights = _whole_weights(credits)
    window = converted.policy.get("share.window")
    for row, weight in zip(rows, weights, strict=True):
        values: dict[str, object] = {
            "weight": weight,
            "max_in_flight": _of(row, "max_concurrent_agents", count),
            "status": _PROJECT.get(str(row.get("status")).upper(), "paused"),
        }
        if row.get("budget_limit") is not None:
            budget: dict[str, object] = {"tokens": _of(row, "budget_limit", count)}
            values["budgets"] = [budget | ({"window": window} if window else {})]
        converted.projects[check_name("project", row.get("id"))] = values
    if weights != credits:
        converted.note("Weights are whole numbers here: all are scaled, their ratio is kept.")


def _of(row: Row, column: str, read: Callable[[object], T]) -> T:
    """A value of a project; one that is refused is named with its project."""
    try:
        return take(row, column, read)
    except Invalid as error:
        raise error.within(str(row.get("id"))) from None


def _whole_weights(weights: Iterable[float]) -> list[int]:
    """The smallest whole numbers in the same ratio; whole ones stay as they are."""
    exact = [Fraction(weight).limit_denominator(1000) for weight in weights]
    scale = lcm(*(weight.denominator for weight in exact))
    whole = [int(weight * scale) for weight in exact]
    common = gcd(*whole) if scale > 1 else 1
    return [weight // (common or 1) for weight in whole]


def _place(database: Database, folders: Mapping[str, Folders], converted: Converted) -> None:
    """Where the tasks of each project work: as many at once as it has workspaces."""
    if not any(mine.names or mine.repo for mine in folders.values()):
        return
    scarce = any(mine.names for mine in folders.values())
    branches = {
        str(row["id"]): row.get("repo_default_branch") for _, row in database.rows("projects")
    }
    for name, mine in folders.items():
        values = converted.projects[name]
        if mine.repo is not None:
            values["repo"] = str(mine.repo)
            if mine.has_branch(branches[name]):
                values["base"] = branches[name]
        elif mine.names:
            converted.note(
                f"None of the workspaces of {name} is a repository on this machine: its tasks "
                f"work in empty folders until `fairlane project set {name} --repo PATH`."
            )
        if scarce:
            values["workspaces"] = list(mine.names.values())
        if scarce and not mine.names:
            converted.note(
                f"{name} has no workspace, so nothing of it starts, as in agent-queue: "
                f"`fairlane project set {name} --workspace NAME` gives it one."
            )
    if scarce:
        converted.note(
            "Each workspace takes one task at a time, as there. Its folder is a worktree of the "
            "project's repository; the folders of agent-queue stay as they are."
        )


def _agents(database: Database, converted: Converted) -> None:
    """As many at once as there were agents."""
    states = [str(row.get("state", "IDLE")).upper() for _, row in database.rows("agents")]
    agents = sum(state != _RETIRED for state in states)
    if not agents:
        return
    command = "`fairlane policy set caps.all=N` changes that"
    if converted.preset is None:  # the rules that are in force stay
        command = f"`fairlane policy set caps.all={agents}` says so here"
    else:
        converted.rule("caps.all", agents, "how many agents there are")
    converted.note(f"There are {agents} agents, so at most {agents} tasks run at once; {command}.")
