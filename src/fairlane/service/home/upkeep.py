"""Upkeep: copies of the store, its schema, and what would keep a daemon from starting."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.engine.context import Context
from fairlane.model.errors import FairlaneError, Invalid, Refused
from fairlane.model.instant import to_datetime
from fairlane.model.names import SCHEMA
from fairlane.policy.policy import Policy
from fairlane.settings import Settings

if TYPE_CHECKING:
    from fairlane.model.documents.admin import BackupAnswer, MigratedAnswer


def backup(context: Context, target: Path | None = None) -> BackupAnswer:
    """A consistent copy while others work; nothing is overwritten."""
    path = _file_of(context)
    if target is None:
        stamp = to_datetime(context.now()).astimezone(UTC).strftime("%Y%m%d-%H%M%S")
        folder = path.absolute().parent / "backups"  # where a damaged one is looked up
        folder.mkdir(mode=0o700, exist_ok=True)
        target = free_name(folder / f"{path.stem}-{stamp}.db")
    elif target.is_dir():
        target = free_name(target / path.name)
    if target.exists():
        raise Refused(f"{target} is there already", "Choose another name.", code="exists")
    if not target.parent.is_dir():
        raise Invalid(f"{target.parent} is no folder", "Make it first, or choose another.")
    context.store.backup(target)
    return {"schema": SCHEMA, "backup": str(target), "bytes": target.stat().st_size}


def free_name(path: Path) -> Path:
    """This name, or one with a number that is not taken."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def migrated(before: int | None, context: Context) -> MigratedAnswer:
    """What opening a store has done to its schema."""
    from fairlane.store.sqlite.migrate import schema_at

    path = _file_of(context)
    return {"schema": SCHEMA, "store": str(path), "from": before, "to": schema_at(path)}


def _file_of(context: Context) -> Path:
    path = context.store.path
    if path is None:
        raise Refused("this store has no file", "Only a store in a file can be copied.")
    return path


def refuse_copying(source: str | None, target: str | None) -> None:
    """Between stores of different sorts, once there is more than one."""
    if source is None and target is None:
        return
    for url in (source, target):
        if url is None:
            raise Invalid("--from and --to go together", "Give both URLs of stores.")
        if not url.startswith("sqlite:"):
            sort = url.partition(":")[0]
            message = f"there is no store for {sort}: URLs here; known is sqlite:"
            raise Invalid(message, "Write it as sqlite:PATH.", code="invalid_store")
    hint = "To copy a SQLite store: fairlane backup FILE."
    raise Refused("both are SQLite stores: there is nothing to migrate", hint)


def sqlite_path(url: str) -> Path | None:
    """The file that a URL names; None: it is no SQLite store."""
    scheme, _, rest = url.partition(":")
    return Path(rest.removeprefix("//")).expanduser() if scheme == "sqlite" and rest else None


#: Folders of a home in which a daemon works.
_FOLDERS = ("runs", "artifacts", "work")


def obstacles(home: Path, settings: Settings) -> Iterator[FairlaneError]:
    """Everything that a start would fail at, without changing anything."""
    checks: list[Callable[[], object]] = [
        partial(Policy.load, home / "policy.toml"),
        partial(_check_executor, settings),
        partial(_check_agents, settings),
        *(partial(_check_folder, home / name) for name in _FOLDERS),
    ]
    for check in checks:
        try:
            check()
        except FairlaneError as error:
            yield error


def _check_executor(settings: Settings) -> None:
    from fairlane.executors import executor_named

    try:
        executor_named(settings.worker.executor).close()
    except ImportError as error:  # of a package that brings an executor
        message = f"executor {settings.worker.executor} cannot be loaded: {error}"
        raise Invalid(message, "Install it again, or choose another in fairlane.toml.") from error


def _check_agents(settings: Settings) -> None:
    from fairlane.agents.contract import agents

    agents(settings)


def _check_folder(folder: Path) -> None:
    if folder.exists() and not (folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK)):
        hint = "Check who owns it, and its mode."
        raise Refused(f"{folder} is no folder that can be read and written", hint, "no_folder")
