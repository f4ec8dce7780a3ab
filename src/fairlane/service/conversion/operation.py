"""`convert` as an operation: show what would follow, or write it, all or nothing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from fairlane.intake import fields
from fairlane.model.errors import FairlaneError, Invalid
from fairlane.model.instant import show_instant
from fairlane.model.names import check_name
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA
from fairlane.service.conversion import convert, texts
from fairlane.service.conversion.base import Converted, Paused
from fairlane.service.conversion.bringing import bring
from fairlane.service.conversion.reading import UNCHANGED
from fairlane.service.conversion.replacing import Replacing
from fairlane.service.desk import Desk
from fairlane.settings import FILE, Settings


def show(name: str, file: str) -> dict[str, Any]:
    """What would be written; nothing is."""
    found = convert(name, Path(file))
    document = _document(name, file, found)
    _check(found, document)
    return document


def write(desk: Desk, name: str, file: str) -> dict[str, Any]:
    """Rules, settings, projects, pauses and tasks of the home folder; twice is as once.

    The policy file is replaced, of the settings only what follows is changed; the files before
    them are kept. Tasks that are known stay as they are.
    """
    found = convert(name, Path(file))
    document = _document(name, file, found)
    _check(found, document)
    policy_file, settings_file = desk.policy_file, desk.home / FILE
    rules, page = document["policy"], _settings(settings_file, found, document)
    policy = Policy.parse(tomllib.loads(rules)) if rules else desk.policy()
    settings = Settings.parse(tomllib.loads(page)) if page else desk.settings
    pages = {policy_file: rules, settings_file: page}
    changed = {path: text for path, text in pages.items() if text and text != _text(path)}
    with Replacing(changed) as files, desk.store.write() as tx:
        try:
            added, brought = bring(desk, tx, policy, settings, found, f"{name}: {Path(file).name}")
        except FairlaneError as error:
            raise Invalid(f"{file}: {error.message}", error.hint or UNCHANGED) from error
        files.replace()
    kept = [str(path) for path in files.backups.values() if path is not None]
    document |= {"written": list(map(str, changed)), "backups": kept}
    return document | {"added": added, "changed": bool(changed) or brought}


def _document(name: str, file: str, found: Converted) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "format": name,
        "file": file,
        "policy": texts.policy_text(found, name),
        "settings": texts.settings_text(found, name),
        "projects": [{"name": each} | values for each, values in found.projects.items()],
        "pauses": [_pause(each) for each in found.pauses],
        "tasks": len(found.tasks),
        "notes": found.notes,
        "unknown": found.unknown,
        "added": 0,  # of the tasks, those that are new here
        "changed": False,
        "written": [],
        "backups": [],
    }


def _pause(paused: Paused) -> dict[str, Any]:
    since = None if paused.at is None else show_instant(paused.at)
    return {"scope": paused.scope, "by": paused.by, "since": since, "reason": paused.reason}


def _check(found: Converted, document: dict[str, Any]) -> None:
    """Values that would not be accepted are told before anything is written."""
    file = document["file"]
    if document["policy"]:
        Policy.parse(tomllib.loads(document["policy"]), f"{file}, as a policy")
    Settings.parse(tomllib.loads(document["settings"]), f"{file}, as settings")
    for each in found.projects:
        check_name("project", each)
    for task in found.tasks:
        try:
            fields.read(task.record)
        except Invalid as error:
            told = f"{file}: task {task.record.get('id')!r}: {error.message}"
            raise Invalid(told, error.hint or UNCHANGED) from None


def _settings(path: Path, found: Converted, document: dict[str, Any]) -> str:
    """The settings file with what follows; an agent that it names already stays.

    Without slots as many run as cap `all` lets; a file that names them must not be narrower.
    """
    before = _text(path)
    if before is None:
        return str(document["settings"])
    held, most = tomllib.loads(before), found.policy.get("caps.all")
    wanted = dict(found.settings)
    if isinstance(most, int) and _held(held, "worker.slots") is not None:
        wanted["worker.slots"] = most
    changes = {key: each for key, each in wanted.items() if _held(held, key) != each}
    if "agent" in held:
        changes.pop("agent", None)
    return texts.merged(before, changes) if changes else before


def _held(table: Any, key: str) -> Any:
    for name in key.split("."):
        table = table.get(name) if isinstance(table, dict) else None
    return table


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
