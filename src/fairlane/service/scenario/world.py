"""What a scenario says beside its tasks: projects, workers, pools, groups, usage, pauses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.project import Budget, Group, Project
from fairlane.model.resources import Pause, Pool, Usage, Worker
from fairlane.service.scenario.fields import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlane.policy.policy import Policy

PROJECT_KEYS = (
    "name",
    "weight",
    "tokens",
    "starts",
    "completions",
    "max_in_flight",
    "status",
    "workspaces",
    "budgets",
    "prefix",
    "agent",
)
PROJECT_STATUSES = ("active", "paused", "archived")
WORKER_KEYS = ("name", "slots", "labels")
POOL_KEYS = ("name", "cooldown_until", "hits", "cause")
GROUP_KEYS = ("name", "parent")
USAGE_KEYS = ("scope", "tokens", "usd", "window")
PAUSE_KEYS = ("scope", "by", "since", "reason")

PAUSE_SCOPES = ("project", "kind", "pool", "group", "task")
USAGE_SCOPES = ("project", "pool", "group")


class World(NamedTuple):
    """Everything but the tasks."""

    projects: dict[str, Project]
    workers: tuple[Worker, ...]
    pools: tuple[Pool, ...]
    groups: tuple[Group, ...]
    usage: tuple[Usage, ...]
    pauses: tuple[Pause, ...]


def read_world(top: Table, policy: Policy) -> World:
    """All tables but `task`, `policy` and `expect`."""
    projects = [_project(table, policy) for table in tables(top, "project", PROJECT_KEYS)]
    workers = [_worker(table) for table in tables(top, "worker", WORKER_KEYS)]
    pools = [_pool(table) for table in tables(top, "pool", POOL_KEYS)]
    return World(
        projects={project.name: project for project in projects},
        workers=tuple(workers),
        pools=tuple(pools),
        groups=_groups(top),
        usage=tuple(_usage(top)),
        pauses=tuple(_pauses(top)),
    )


def tables(top: Table, key: str, known: Sequence[str], label: str = "name") -> list[Table]:
    """The tables of one sort, each called by its own name; a name is given once."""
    found: list[Table] = []
    seen: set[str] = set()
    for number, values in enumerate(top.list_of(key), 1):
        where = f"{top.where}: {key} {number}"
        named = values.get(label) if isinstance(values, dict) else None
        if isinstance(named, str) and named.isprintable():
            where = f"{top.where}: {key} {named}"
        table = Table(where, values, known)
        table.title, table.number = table.required_name(label), number
        if table.title in seen:
            raise table.error(label, f"{table.title!r} appears twice", "Give each its own.")
        seen.add(table.title)
        found.append(table)
    return found


def scope_of(table: Table, key: str, text: object, sorts: Sequence[str]) -> str:
    """A scope such as `all` or `project:web`."""
    sort, colon, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    if text == "all" or (sort in sorts and name.strip() and name.isprintable()):
        return str(text)
    known = ", ".join(("all", *(f"{each}:NAME" for each in sorts)))
    hint = did_you_mean(sort, ("all", *sorts)) if sort and sort not in sorts else ""
    if sort in sorts or not colon:
        hint = hint if hint.startswith("Did") else "Write it as all or project:web."
    raise table.error(key, f"{text!r} is no scope: accepted is {known}", hint)


def _project(table: Table, policy: Policy) -> Project:
    name = table.title
    weight = table.whole("weight")
    return Project(
        name=name,
        weight=1 if weight is None else weight,
        max_in_flight=table.whole("max_in_flight"),
        budgets=_budgets(table, name, policy),
        status=table.choice("status", PROJECT_STATUSES) or "active",
        workspaces=table.names("workspaces"),
        prefix=table.word("prefix"),
        agent=table.word("agent"),
        tokens=table.whole("tokens") or 0,
        starts=table.whole("starts") or 0,
        completions=table.whole("completions") or 0,
    )


def _budgets(table: Table, project: str, policy: Policy) -> tuple[Budget, ...]:
    """A project's own budgets, read by the rules of the policy; their scope is the project."""
    rows = []
    for row in table.list_of("budgets"):
        if not isinstance(row, dict) or "scope" in row:
            hint = "Write it as budgets = [{ tokens = 50000, window = '24h' }]."
            raise table.error("budgets", f"not a budget of this project: {row!r}", hint)
        rows.append({"scope": f"project:{project}", **row})
    if not rows:
        return ()
    try:
        read = policy.with_overrides({"budget": rows}).budget
    except Invalid as error:
        message = error.message.removeprefix("override: ")
        raise table.error("budgets", message, error.hint) from error
    return tuple(
        Budget(each.scope, each.tokens, each.usd, each.window, each.warn_at, each.on_exceeded)
        for each in read
    )


def _worker(table: Table) -> Worker:
    return Worker(
        name=table.title,
        slots=table.whole("slots"),
        labels=table.words("labels") or (),
    )


def _pool(table: Table) -> Pool:
    return Pool(
        name=table.title,
        until=table.moment("cooldown_until"),
        hits=table.whole("hits") or 0,
        cause=table.text("cause") or "",
    )


def _groups(top: Table) -> tuple[Group, ...]:
    read = tables(top, "group", GROUP_KEYS)
    parents = {table.title: table.name("parent") for table in read}
    for table in read:
        seen: list[str] = []
        name: str | None = table.title
        while name is not None:
            if name in seen:
                raise table.error("parent", f"a cycle: {' -> '.join([*seen, name])}")
            seen.append(name)
            name = parents.get(name)
    return tuple(Group(name, parent) for name, parent in parents.items())


def _usage(top: Table) -> list[Usage]:
    rows: list[Usage] = []
    for number, values in enumerate(top.list_of("usage"), 1):
        table = Table(f"{top.where}: usage {number}", values, USAGE_KEYS)
        if "scope" not in table:
            raise table.error("scope", "missing", "Write it as all or project:web.")
        scope = scope_of(table, "scope", table.values["scope"], USAGE_SCOPES)
        row = Usage(
            scope=scope,
            window=table.word("window"),
            tokens=table.whole("tokens") or 0,
            usd=table.dollars("usd") or 0,
        )
        if any((row.scope, row.window) == (each.scope, each.window) for each in rows):
            raise table.error("scope", f"{scope!r} appears twice", "Keep one of them.")
        rows.append(row)
    return rows


def _pauses(top: Table) -> list[Pause]:
    pauses: list[Pause] = []
    for number, value in enumerate(top.list_of("paused"), 1):
        if not isinstance(value, dict):
            pause = Pause(scope_of(top, "paused", value, PAUSE_SCOPES))
        else:
            table = Table(f"{top.where}: paused {number}", value, PAUSE_KEYS)
            pause = Pause(
                scope=scope_of(table, "scope", table.values.get("scope"), PAUSE_SCOPES),
                by=table.word("by") or "",
                since=table.moment("since"),
                reason=table.text("reason") or "",
            )
        if any(pause.scope == each.scope for each in pauses):
            raise top.error("paused", f"{pause.scope!r} appears twice", "Keep one of them.")
        pauses.append(pause)
    return pauses


def with_spent(usage: tuple[Usage, ...], scope: str, tokens: int) -> tuple[Usage, ...]:
    """The usage with what attempts in flight have used counted in, in one scope."""
    if any(row.scope == scope for row in usage):
        return tuple(
            replace(row, tokens=row.tokens + tokens) if row.scope == scope else row for row in usage
        )
    if scope == "all" or scope.startswith("project:"):
        return usage  # follows from the projects
    return (*usage, Usage(scope, tokens=tokens))
