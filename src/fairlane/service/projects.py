"""Projects as operations: list, show, add, set, remove."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane import workspaces
from fairlane.engine.context import Context
from fairlane.engine.task_changes import TaskChanges
from fairlane.intake.fields import CARRIES, CONTEXTS, MERGES, checks
from fairlane.intake.routing import DEFAULT_PROJECT, refuse_without_pr
from fairlane.model.errors import Invalid, NotFound, Refused, did_you_mean
from fairlane.model.instant import Micros, minute_of
from fairlane.model.names import SCHEMA
from fairlane.model.project import Pause, Project, Tokens, counted
from fairlane.model.record import replace
from fairlane.model.task import Status
from fairlane.model.values import (
    NUMBER_MAX,
    Reader,
    check_name,
    choice,
    command,
    line,
    lines,
    name,
    names,
    read_all,
    whole,
)
from fairlane.policy.load import project_budgets
from fairlane.policy.policy import Policy
from fairlane.service.reports.documents import counts
from fairlane.service.tasks import note
from fairlane.store.base import Booking, Reading, Tally, Writing
from fairlane.workspaces import look

if TYPE_CHECKING:
    from fairlane.model.documents import admin

ARCHIVED = "archived"
STATUSES = ("active", "paused", ARCHIVED)
#: Whose git hooks run in Fairlane's calls of git: none of the repository's, or its own.
HOOKS = ("ours", "repo")
WEIGHT_MAX = 10**6
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_OVER = (Status.DONE, Status.CANCELED)


def list_projects(context: Context) -> admin.ProjectsAnswer:
    """Every project with its weight, its queue and what it used."""
    with context.store.read() as reading:
        policy = context.policy_for_reading(reading)
        view = _View(reading, policy, context)
        rows = [view.document(project) for project in known_projects(reading).values()]
    return {"schema": SCHEMA, "projects": rows}


def show_project(context: Context, name: str) -> admin.ProjectAnswer:
    """One project."""
    with context.store.read() as reading:
        project = find_project(reading, name)
        policy = context.policy_for_reading(reading)
        return {"schema": SCHEMA, "project": _View(reading, policy, context).document(project)}


def add_project(
    context: Context, name: str, values: Mapping[str, object] | None = None
) -> admin.ProjectAnswer:
    """A new project; an existing one is returned as it is."""
    check_name("project", name)
    with context.store.write() as tx:
        known = known_projects(tx)
        if name in known and known[name].status != ARCHIVED:
            made = _changed(context, tx, known[name], values or {})
            if made != known[name]:
                hint = f"To change it: fairlane project set {name} …"
                raise Refused(f"project {name} is there already", hint, code="exists")
            created = False
        else:
            before = known.get(name) or Project(name, clock=_clock(tx), present=False)
            made = _changed(context, tx, replace(before, status="active"), values or {})
            created = True
            _put(context, tx, made, "project_added", sorted(values or {}))
        view = _View(tx, context.policy_for_reading(tx), context)
        return {"schema": SCHEMA, "created": created, "project": view.document(made)}


def set_project(context: Context, name: str, values: Mapping[str, object]) -> admin.ProjectAnswer:
    """Change a project; null takes a value away."""
    if not values:
        raise Invalid("there is nothing to change", "Give a key, such as --weight 3.")
    with context.store.write() as tx:
        made = _changed(context, tx, find_project(tx, name), values)
        _put(context, tx, made, "project_set", sorted(values))
        view = _View(tx, context.policy_for_reading(tx), context)
        return {"schema": SCHEMA, "project": view.document(made)}


def place_projects(
    context: Context, tx: Writing, wanted: Mapping[str, Mapping[str, object]]
) -> bool:
    """Projects with these values within a transaction; whether any was made or changed."""
    if not wanted:
        return False
    policy, known = context.policy_for_reading(tx), tx.table(Project)
    clock, prefixes = _clock(tx), _prefixes(known.values())
    changes = TaskChanges(tx, policy, context.now(), context.actor)
    placed = False
    for project, values in wanted.items():
        before = known.get(project)
        new = before or Project(project, clock=clock, present=False)
        made = with_values(new, values, policy.share.window)
        _refuse_taken(made, prefixes)
        if before is not None and before.prefix:
            prefixes.pop(before.prefix, None)
        if made.prefix:
            prefixes[made.prefix] = project
        if made != before:
            placed = True
            _store(context, tx, made, values)
            kind = "project_set" if before else "project_added"
            changes.note(kind, None, project=project, keys=sorted(values))
    changes.close()
    return placed


def remove_project(context: Context, name: str) -> admin.RemovedAnswer:
    """Remove a project that has no unfinished task.

    `default` always stays. One whose finished tasks are still told of is archived.
    """
    with context.store.write() as tx:
        project = find_project(tx, name)
        if name == DEFAULT_PROJECT:
            raise Refused("project default always exists", "Archive or pause it instead.")
        tallies = [tally for tally in tx.tallies() if tally.project == name and tally.count]
        _refuse_unfinished(name, tallies)
        tx.drop(Pause, f"project:{name}")
        if tallies:
            _put(context, tx, replace(project, status=ARCHIVED), "project_set", ["status"])
        else:
            tx.drop(Project, name)
            note(context, tx, "project_removed", project=name)
    return {"schema": SCHEMA, "removed": name, "archived": bool(tallies)}


def _refuse_unfinished(name: str, tallies: Iterable[Tally]) -> None:
    left: Counter[str] = Counter()
    for tally in tallies:
        if tally.status not in _OVER:
            left[str(tally.status)] += tally.count
    if left:
        unfinished = ", ".join(f"{count} {status}" for status, count in sorted(left.items()))
        hint = f"Let them finish, or: fairlane clear project:{name}."
        raise Refused(f"project {name} has unfinished tasks: {unfinished}", hint, code="in_use")


def known_projects(reading: Reading) -> dict[str, Project]:
    """Every project by name; `default` always exists."""
    return dict(sorted(reading.table(Project).items()))


def find_project(reading: Reading, name: str) -> Project:
    """A known project."""
    known = known_projects(reading)
    if name not in known:
        hint = f"{did_you_mean(name, known)} To add it: fairlane project add {name}."
        raise NotFound(f"there is no project {name!r}", hint, code="unknown_project")
    return known[name]


class _View:
    """What documents of projects need, read once."""

    def __init__(self, reading: Reading, policy: Policy, context: Context) -> None:
        self._count = policy.usage.count
        since = minute_of(context.now() - policy.share.window)
        self._sums = reading.usage_sums("project:", since)
        self._paused = reading.table(Pause)
        self._tallies: dict[str, list[Tally]] = {}
        for tally in reading.tallies():
            self._tallies.setdefault(tally.project, []).append(tally)

    def document(self, project: Project) -> admin.ProjectDocument:
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
            "hooks": project.hooks,
            "merge": project.merge,
            "carry": project.carry,
            "context": project.context,
            "checks": [check.document() for check in project.checks],
            "pr": list(project.pr),
            "setup": list(project.setup),
            "setup_files": list(project.setup_files),
            "protect": None if project.protect is None else list(project.protect),
            "budgets": Policy.budget_rows(project.budgets),
            "tasks": counts(tasks),
            "tokens": counted(Tokens(*booked.tokens), self._count),
            "usd": booked.usd / 1_000_000,
            "starts": booked.starts,
            "completions": booked.completions,
        }


def _changed(
    context: Context, tx: Writing, project: Project, values: Mapping[str, object]
) -> Project:
    """The project with its changes, validated."""
    made = with_values(project, values, context.policy_for_reading(tx).share.window)
    _refuse_taken(made, _prefixes(known_projects(tx).values()))
    return made


def with_values(project: Project, values: Mapping[str, object], window: Micros) -> Project:
    budgets = {"budgets": lambda rows: project_budgets(rows, project.name, window)}
    try:
        changes = {key: _EMPTY[key] for key in values if key in _EMPTY}
        changes |= read_all(_READERS | budgets, values)
    except Invalid as error:
        raise error.within(f"project {project.name}") from None
    made = replace(project, **changes)
    _refuse_unfit(made, values)
    return made


def _refuse_unfit(project: Project, values: Container[str]) -> None:
    """What no task of the project could do is refused now, not after the work."""
    if "merge" in values or "pr" in values:
        refuse_without_pr(project, project.merge)
    if project.repo is None:
        return
    folder = Path(project.repo)
    if "repo" in values:
        look.refuse_unfit(folder)
    if any(key in values for key in ("repo", "base", "merge")):
        look.refuse_base(folder, project.base, project.merge or "keep", f"project {project.name}")


def _prefixes(projects: Iterable[Project]) -> dict[str, str]:
    """Whose prefix it is."""
    return {project.prefix: project.name for project in projects if project.prefix}


def _refuse_taken(project: Project, prefixes: Mapping[str, str]) -> None:
    owner = prefixes.get(project.prefix or "", project.name)
    if owner != project.name:
        hint = "Give each project its own."
        raise Refused(f"prefix {project.prefix!r} belongs to project {owner}", hint)


def _put(context: Context, tx: Writing, project: Project, kind: str, keys: list[str]) -> None:
    _store(context, tx, project, keys)
    note(context, tx, kind, project=project.name, keys=keys)


def _store(context: Context, tx: Writing, project: Project, keys: Container[str]) -> None:
    tx.put(project)
    if project.repo and "repo" in keys:
        workspaces.forget(context.home, Path(project.repo))


def _clock(tx: Writing) -> int:
    """A new project begins where everybody is."""
    return int(tx.value("clock") or 0)


def _repo(value: object) -> str:
    path = Path(line(value)).expanduser().absolute()
    if not path.is_dir():
        raise Invalid(f"{path} is no folder", "Give the folder of a repository.")
    return str(path)


def _prefix(value: object) -> str:
    if not isinstance(value, str) or not _PREFIX.fullmatch(value):
        raise Invalid(f"not a prefix: {value!r}", "Write it as web- or web.")
    return value


_READERS: dict[str, Reader[object]] = {
    "weight": whole(0, WEIGHT_MAX),
    "max_in_flight": whole(0, NUMBER_MAX),
    "status": choice(STATUSES),
    "repo": _repo,
    "base": line,
    "prefix": _prefix,
    "agent": name,
    "template": name,
    "workspaces": names,
    "hooks": choice(HOOKS),
    "merge": choice(MERGES),
    "carry": choice(CARRIES),
    "context": choice(CONTEXTS),
    "checks": checks,
    "pr": command,
    "setup": command,
    "setup_files": lines,
    "protect": lines,
}
_EMPTY = {key: getattr(Project(""), key) for key in (*_READERS, "budgets")}
