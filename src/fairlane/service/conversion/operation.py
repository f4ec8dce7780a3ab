"""`convert` as an operation: show what would follow, or write it, all or nothing."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

from fairlane.careful_files import stage, unwritable
from fairlane.engine.context import Context
from fairlane.engine.task_changes import TaskChanges
from fairlane.intake.fields import Records, TaskValues
from fairlane.intake.routing import DEFAULT_PROJECT, Router, artifact_exists
from fairlane.intake.sources.base import LeftOut
from fairlane.intake.submit import submit
from fairlane.model.documents.sources import ConvertAnswer, ConvertedPauseDocument
from fairlane.model.errors import FairlaneError, Invalid, NotFound
from fairlane.model.event import Event
from fairlane.model.instant import show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.project import Group, Pause, Project
from fairlane.model.record import replace
from fairlane.model.task import Status
from fairlane.model.values import check_name
from fairlane.policy.edit import free_backup
from fairlane.policy.policy import Policy
from fairlane.service.conversion import base, convert
from fairlane.service.conversion.base import UNCHANGED, Brought, Converted, Paused
from fairlane.service.conversion.past import book_spent, completions, note_others, with_past
from fairlane.service.conversion.sift import sift
from fairlane.service.projects import place_projects
from fairlane.settings import FILE, Settings
from fairlane.store.base import Placed, Writing

#: Work that comes along starts and is asked as it was there.
AS_THERE = {"carry": "base", "context": "none"}


def show(name: str, file: str) -> ConvertAnswer:
    """What would be written, to an empty home folder; nothing is."""
    converted, document = _read(name, file)

    def check(values: TaskValues) -> None:
        project = values.get("project", DEFAULT_PROJECT)
        if project != DEFAULT_PROJECT and project not in converted.projects:
            raise NotFound(f"there is no project {project!r}")

    _tell(document, *sift(converted, check, lambda _: ()))
    return document


def write(context: Context, name: str, file: str) -> ConvertAnswer:
    """Rules, settings, projects, pauses and tasks of the home folder; twice is as once.

    The policy file is replaced, of the settings only what follows is changed; the files before
    them are kept. Tasks that are known stay as they are.
    """
    converted, document = _read(name, file)
    policy_file, settings_file = context.policy_file, context.home / FILE
    rules, page = document["policy"], _settings(settings_file, converted, document)
    policy = Policy.parse(tomllib.loads(rules)) if rules else context.policy()
    settings = Settings.parse(tomllib.loads(page)) if page else context.settings
    pages = {policy_file: rules, settings_file: page}
    changed = {path: text for path, text in pages.items() if text and text != _text(path)}
    with Replacing(changed) as files, context.store.write() as tx:
        try:
            origin = f"{name}: {Path(file).name}"
            added, changed_any = bring(context, tx, policy, settings, converted, document, origin)
        except FairlaneError as error:
            raise Invalid(f"{file}: {error.message}", error.hint or UNCHANGED) from error
        files.replace()
    backups = [str(path) for path in files.backups.values() if path is not None]
    document["written"], document["backups"] = list(map(str, changed)), backups
    document["added"], document["changed"] = added, bool(changed) or changed_any
    return document


def _read(name: str, file: str) -> tuple[Converted, ConvertAnswer]:
    converted = convert(name, Path(file))
    document: ConvertAnswer = {
        "schema": SCHEMA,
        "format": name,
        "file": file,
        "policy": base.policy_text(converted, name),
        "settings": base.settings_text(converted, name),
        "projects": [{"name": project, **values} for project, values in converted.projects.items()],
        "pauses": [_pause(pause) for pause in converted.pauses],
        "tasks": 0,  # those that can come in
        "skipped": [],
        "notes": converted.notes,
        "unknown": converted.unknown,
        "added": 0,  # of the tasks, those that are new here
        "changed": False,
        "written": [],
        "backups": [],
    }
    _check(converted, document)
    return converted, document


def _pause(paused: Paused) -> ConvertedPauseDocument:
    since = None if paused.at is None else show_instant(paused.at)
    return {"scope": paused.scope, "by": paused.by, "since": since, "reason": paused.reason}


def _check(converted: Converted, document: ConvertAnswer) -> None:
    """Refuse values that would not be accepted, before anything is written."""
    file = document["file"]
    if document["policy"]:
        Policy.parse(tomllib.loads(document["policy"]), f"{file}, as a policy")
    Settings.parse(tomllib.loads(document["settings"]), f"{file}, as settings")
    for project in converted.projects:
        check_name("project", project)


def _tell(document: ConvertAnswer, tasks: Sequence[Brought], out: Sequence[LeftOut]) -> None:
    document["tasks"] = len(tasks)
    document["skipped"] = [
        {"id": item.id, "reason": item.reason, "where": item.where} for item in out
    ]


def _settings(path: Path, converted: Converted, document: ConvertAnswer) -> str:
    """The settings file with what follows; an agent that it names already stays.

    Without slots as many run as cap `all` lets, also when it is raised later: a file that names
    no more than that loses them.
    """
    before = _text(path)
    if before is None:
        return document["settings"]
    table, most = tomllib.loads(before), converted.policy.get("caps.all")
    wanted, slots = dict(converted.settings), _value(table, "worker.slots")
    if isinstance(most, int) and isinstance(slots, int) and slots <= most:
        wanted["worker.slots"] = None
    changes = {key: value for key, value in wanted.items() if _value(table, key) != value}
    if "agent" in table:
        changes.pop("agent", None)
    return base.merged(before, changes) if changes else before


def _value(table: object, key: str) -> object:
    for name in key.split("."):
        table = table.get(name) if isinstance(table, dict) else None
    return table


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def bring(
    context: Context,
    tx: Writing,
    policy: Policy,
    settings: Settings,
    converted: Converted,
    document: ConvertAnswer,
    origin: str,
) -> tuple[int, bool]:
    """Everything that is not there yet. How many tasks are new, and whether anything changed."""
    made_projects = place_projects(context, tx, converted.projects)
    now = context.now()
    changes = TaskChanges(tx, policy, now, context.actor)
    paused = _pause_scopes(changes, converted.pauses)
    router = _router(context, tx, settings)
    tasks, out = sift(converted, partial(_try, router), tx.statuses)
    _tell(document, tasks, out)
    tasks.sort(key=lambda task: task.created_at or now)  # the oldest first
    beside = {str(task.record["id"]): _beside(task) for task in tasks if task.artifacts}
    records = Records.of([{**AS_THERE, **task.record} for task in tasks])
    batch = submit(tx, router, policy, now, records, beside=beside)
    note_others(tx, tasks, batch.new, converted)
    past = {str(task.record["id"]): task for task in tasks}
    new = [
        Placed(with_past(placed.task, past[name], now), placed.wait, placed.due_at)
        for name, placed in batch.new.items()
    ]
    for made in router.new_groups:
        tx.put(made)
    tx.insert([placed if _queued(placed) else Placed(placed.task) for placed in new])
    tx.book(completions(tx, [placed.task for placed in new]))
    spent = book_spent(tx, policy, settings, now, document["format"], converted.spent)
    data = {"by": context.actor, "from": origin}
    tx.log([Event(0, now, "added", row.task.id, row.task.project, data) for row in new])
    held = [placed.task.id for placed in new if placed.task.paused]
    _pause_scopes(changes, [Paused(f"task:{name}", reason=past[name].reason) for name in held])
    for placed in filter(_queued, new):
        changes.keep(placed.task)  # placed anew: what it needs may be over already
    changes.close()
    return len(new), bool(new or paused or made_projects or spent)


def _router(context: Context, tx: Writing, settings: Settings) -> Router:
    """A project that was archived there still has its tasks."""
    known = {DEFAULT_PROJECT: Project(DEFAULT_PROJECT)} | tx.table(Project)
    projects = {name: replace(project, status="active") for name, project in known.items()}
    return Router(projects, tx.table(Group), settings, context.home)


def _try(router: Router, values: TaskValues) -> None:
    """Refuse what does not fit; groups are made once it is sure that somebody joins them."""
    values.pop("group", None)
    router.complete(values)


def _queued(placed: Placed) -> bool:
    return placed.task.status is Status.QUEUED


def _beside(task: Brought) -> TaskValues:
    """Paths that only a user's own conversion can give: callers give relative ones."""
    missing = tuple(path for path in task.artifacts if not artifact_exists(None, path))
    return {"artifacts": task.artifacts, "artifacts_missing": missing}


def _pause_scopes(changes: TaskChanges, pauses: Sequence[Paused]) -> list[Paused]:
    known = changes.tx.table(Pause)
    new = [pause for pause in pauses if pause.scope not in known]
    for pause in new:
        since = pause.at or changes.now
        changes.tx.put(Pause(pause.scope, pause.by or changes.actor, since, pause.reason))
        changes.note("paused", scope=pause.scope, reason=pause.reason)
    return new


#: Permissions of a file that was not there before: settings may hold secrets.
_NEW_MODE = 0o600


class Replacing:
    """New texts are staged next to their files; `replace` installs them; an error rolls back."""

    def __init__(self, texts: Mapping[Path, str]) -> None:
        self._texts = texts
        self._staged: dict[Path, Path] = {}
        self.backups: dict[Path, Path | None] = {}  # of what was replaced; None: there was none

    def __enter__(self) -> Replacing:
        try:
            for path, text in self._texts.items():
                self._staged[path] = stage(path, text, _NEW_MODE)
        except OSError as error:
            self._discard()
            raise unwritable(path, error) from error
        return self

    def replace(self) -> None:
        """The new texts take their places."""
        for path, staged in self._staged.items():
            try:
                self.backups[path] = _backed_up(path) if path.exists() else None
                staged.replace(path.resolve())
            except OSError as error:
                raise unwritable(path, error) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is not None:
            for path, backup in self.backups.items():
                if backup is None:
                    path.unlink(missing_ok=True)
                else:
                    backup.replace(path.resolve())
        self._discard()

    def _discard(self) -> None:
        for staged in self._staged.values():
            staged.unlink(missing_ok=True)


def _backed_up(path: Path) -> Path:
    backup = free_backup(path)
    shutil.copy2(path, backup)
    return backup
