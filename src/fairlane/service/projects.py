"""Projects as operations: list, show, add, set, remove."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlane.intake import fields
from fairlane.intake.routing import DEFAULT_PROJECT
from fairlane.lifecycle.usage import Tokens, counted, minute_of
from fairlane.model.errors import Invalid, NotFound, Refused, did_you_mean
from fairlane.model.instant import show_duration
from fairlane.model.names import check_name
from fairlane.model.project import Budget, Project
from fairlane.model.task import Status
from fairlane.policy import schema
from fairlane.policy.policy import Policy
from fairlane.policy.values import NotAccepted
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.grouping.keeping import add_group, set_group
from fairlane.service.journal import Journal
from fairlane.service.reports.groups import list_groups, show_group
from fairlane.service.reports.resources import list_pools, list_workers, show_pool, show_worker
from fairlane.store.base import Booking, Reading, Tally, Writing

__all__ = [
    "add_group", "add_project", "find_project", "known_projects", "list_groups", "list_pools",
    "list_projects", "list_workers", "place_project", "remove_project", "set_group",
    "set_project", "show_group", "show_pool", "show_project", "show_worker",
]  # fmt: skip

ARCHIVED = "archived"
STATUSES = ("active", "paused", ARCHIVED)
WEIGHT_MAX = 10**6
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_OVER = (Status.DONE, Status.CANCELED)


def list_projects(desk: Desk) -> dict[str, Any]:
    """Every project with its weight, what it has queued and what it used."""
    with desk.store.read() as reading:
        policy = desk.policy_for_reading(reading)
        view = _View(reading, policy, desk)
        rows = [view.document(each) for each in known_projects(reading).values()]
    return {"schema": SCHEMA, "projects": rows}


def show_project(desk: Desk, name: str) -> dict[str, Any]:
    """One project."""
    with desk.store.read() as reading:
        project = find_project(reading, name)
        policy = desk.policy_for_reading(reading)
        return {"schema": SCHEMA, "project": _View(reading, policy, desk).document(project)}


def add_project(desk: Desk, name: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A new project, or one that was archived; one that is there is returned as it is."""
    check_name("project", name)
    with desk.store.write() as tx:
        known = known_projects(tx)
        if name in known and known[name].status != ARCHIVED:
            made = _changed(desk, tx, known[name], values or {})
            if made != known[name]:
                hint = f"To change it: fairlane project set {name} …"
                raise Refused(f"project {name} is there already", hint, code="exists")
            created = False
        else:
            before = known.get(name) or Project(name, clock=_clock(tx), present=False)
            made = _changed(desk, tx, replace(before, status="active"), values or {})
            created = True
            _put(desk, tx, made, "project_added", sorted(values or {}))
        view = _View(tx, desk.policy_for_reading(tx), desk)
        return {"schema": SCHEMA, "created": created, "project": view.document(made)}


def set_project(desk: Desk, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Change a project; null takes a value away."""
    if not values:
        raise Invalid("there is nothing to change", "Give a key, such as --weight 3.")
    with desk.store.write() as tx:
        made = _changed(desk, tx, find_project(tx, name), values)
        _put(desk, tx, made, "project_set", sorted(values))
        view = _View(tx, desk.policy_for_reading(tx), desk)
        return {"schema": SCHEMA, "project": view.document(made)}


def place_project(desk: Desk, tx: Writing, name: str, values: Mapping[str, Any]) -> bool:
    """A project with these values within a transaction; whether it was made or changed."""
    before = tx.projects().get(name)
    made = _changed(desk, tx, before or Project(name, clock=_clock(tx), present=False), values)
    if made != before:
        _put(desk, tx, made, "project_set" if before else "project_added", sorted(values))
    return made != before


def remove_project(desk: Desk, name: str) -> dict[str, Any]:
    """Take a project away; never `default`, and none that has unfinished tasks.

    One whose finished tasks are still told of is archived.
    """
    with desk.store.write() as tx:
        project = find_project(tx, name)
        if name == DEFAULT_PROJECT:
            raise Refused("project default always exists", "Archive or pause it instead.")
        tallies = [each for each in tx.tallies() if each.project == name and each.count]
        _refuse_unfinished(name, tallies)
        tx.drop_pause(f"project:{name}")
        if tallies:
            _put(desk, tx, replace(project, status=ARCHIVED), "project_set", ["status"])
        else:
            tx.drop_project(name)
            journal = Journal(tx, desk.policy_for_reading(tx), desk.now(), desk.actor)
            journal.note("project_removed", None, project=name)
            journal.close()
    return {"schema": SCHEMA, "removed": name, "archived": bool(tallies)}


def _refuse_unfinished(name: str, tallies: Iterable[Tally]) -> None:
    left: Counter[str] = Counter()
    for tally in tallies:
        if tally.status not in _OVER:
            left[str(tally.status)] += tally.count
    if left:
        told = ", ".join(f"{count} {status}" for status, count in sorted(left.items()))
        hint = f"Let them finish, or: fairlane clear project:{name}."
        raise Refused(f"project {name} has unfinished tasks: {told}", hint, code="in_use")


def known_projects(reading: Reading) -> dict[str, Project]:
    """Every project by name; `default` always exists."""
    return dict(sorted(reading.projects().items()))


def find_project(reading: Reading, name: str) -> Project:
    """A known project."""
    known = known_projects(reading)
    if name not in known:
        hint = f"{did_you_mean(name, known)} To add it: fairlane project add {name}."
        raise NotFound(f"there is no project {name!r}", hint, code="unknown_project")
    return known[name]


class _View:
    """What is told of projects, read once."""

    def __init__(self, reading: Reading, policy: Policy, desk: Desk) -> None:
        self._count = policy.usage.count
        since = minute_of(desk.now() - policy.share.window)
        self._sums = reading.usage_sums("project:", since)
        self._paused = {each.scope for each in reading.pauses()}
        self._tallies: dict[str, list[Tally]] = {}
        for tally in reading.tallies():
            self._tallies.setdefault(tally.project, []).append(tally)

    def document(self, project: Project) -> dict[str, Any]:
        tasks: Counter[str] = Counter()
        for tally in self._tallies.get(project.name, ()):
            tasks[str(tally.status)] += tally.count
        booked = self._sums.get(f"project:{project.name}") or Booking("", 0)
        return {
            "name": project.name,
            "weight": project.weight,
            "max_in_flight": project.max_in_flight,
            "status": project.status,
            "paused": f"project:{project.name}" in self._paused or project.status != "active",
            "repo": project.repo,
            "base": project.base,
            "prefix": project.prefix,
            "agent": project.agent,
            "template": project.template,
            "workspaces": None if project.workspaces is None else list(project.workspaces),
            "budgets": Policy.budget_rows(project.budgets),
            "tasks": {str(status): tasks[str(status)] for status in Status},
            "tokens": counted(Tokens(*booked.tokens), self._count),
            "usd": booked.usd / 1_000_000,
            "starts": booked.starts,
            "completions": booked.completions,
        }


def _changed(desk: Desk, tx: Writing, project: Project, values: Mapping[str, Any]) -> Project:
    """The project with its changes, validated."""
    held: dict[str, Any] = {}
    for key, value in values.items():
        if key not in _READERS:
            raise Invalid(f"project {project.name}: unknown key {key!r}", _near(key))
        try:
            held[key] = _EMPTY[key] if value is None else _READERS[key](value)
        except Invalid as error:
            where = f"project {project.name}: {key}"
            raise Invalid(f"{where}: {error.message}", error.hint) from None
    if held.get("budgets"):
        window = desk.policy_for_reading(tx).share.window
        held["budgets"] = tuple(_owned(each, project.name, window) for each in held["budgets"])
    made = replace(project, **held)
    for other in known_projects(tx).values():
        if made.prefix and other.name != made.name and other.prefix == made.prefix:
            hint = "Give each project its own."
            raise Refused(f"prefix {made.prefix!r} belongs to project {other.name}", hint)
    return made


def _near(key: str) -> str:
    return did_you_mean(key, _READERS)


def _put(desk: Desk, tx: Writing, project: Project, kind: str, keys: list[str]) -> None:
    tx.put_project(project)
    journal = Journal(tx, desk.policy_for_reading(tx), desk.now(), desk.actor)
    journal.note(kind, None, project=project.name, keys=keys)
    journal.close()


def _clock(tx: Writing) -> int:
    """A new project begins where everybody is."""
    return int(tx.value("clock") or 0)


def _repo(value: object) -> str:
    path = Path(fields.word(value)).expanduser().absolute()
    if not path.is_dir():
        raise Invalid(f"{path} is no folder", "Give the folder of a repository.")
    return str(path)


def _prefix(value: object) -> str:
    if not isinstance(value, str) or not _PREFIX.fullmatch(value):
        raise Invalid(f"not a prefix: {value!r}", "Write it as web- or web.")
    return value


def _budgets(value: object) -> tuple[Budget, ...]:
    """Tables as in the policy, without a scope: it is the project's."""
    if not isinstance(value, list | tuple):
        raise Invalid("not a list of tables", 'Write it as [{"tokens": 50000, "window": "24h"}].')
    return tuple(_budget(each) for each in value)


def _budget(table: object) -> Budget:
    rows = schema.BUDGET_ROWS
    if not isinstance(table, Mapping):
        raise Invalid(f"not a budget: {table!r}", 'Write it as {"tokens": 50000}.')
    held: dict[str, Any] = {}
    for key, value in table.items():
        if key not in rows:
            raise Invalid(f"unknown key {key!r}", did_you_mean(str(key), rows))
        try:
            held[key] = rows[key].read(value)
        except NotAccepted:
            accepts = rows[key].accepts
            raise Invalid(f"{key} = {value!r} is refused: accepted is {accepts}") from None
    if ("tokens" in held) == ("usd" in held):
        raise Invalid("a budget has tokens or usd, one of them", "Set tokens or usd.")
    return Budget(**({"scope": "", "window": ""} | held))


def _owned(budget: Budget, project: str, window: int) -> Budget:
    return replace(
        budget, scope=f"project:{project}", window=budget.window or show_duration(window)
    )


_READERS: dict[str, Callable[[Any], Any]] = {
    "weight": fields.whole(0, WEIGHT_MAX),
    "max_in_flight": fields.whole(0, fields.NUMBER_MAX),
    "status": fields.choice(STATUSES),
    "repo": _repo,
    "base": fields.word,
    "prefix": _prefix,
    "agent": fields.name,
    "template": fields.name,
    "workspaces": fields.several(fields.name),
    "budgets": _budgets,
}
_EMPTY = {key: getattr(Project(""), key) for key in _READERS}
