"""Forget: what runs, copies and repositories keep of tasks ends with the history of those tasks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

from fairlane.engine.context import Context
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import Instant, Micros
from fairlane.model.project import Project
from fairlane.workspaces.work.keep_refs import forget_work

#: How many tasks the store is asked for at once.
_TASKS = 500


def forget_compacted(
    context: Context, keep: Micros, is_over: Callable[[], bool] = lambda: False
) -> None:
    """Remove what is left of tasks that are tombstones; what cannot be removed waits.

    It reads folders and asks git, so that it may take a while; it ends when it `is_over`.
    A copy stays while it is younger than `keep`.
    """
    before = context.now() - keep
    for folder in _compacted_in(context, context.home / "runs"):
        if is_over():
            return
        with suppress(OSError):
            _remove(folder)
    for folder in _compacted_in(context, context.home / "open"):
        with suppress(OSError):
            if _changed_at(folder) < before:  # a person may work in it
                _remove(folder)
    with context.store.read() as reading:
        projects = reading.table(Project)
    for project in projects.values():
        if project.repo is not None and not is_over():
            with suppress(FairlaneError, OSError):
                forget_work(context.home, project, partial(_compacted, context))


def _compacted_in(context: Context, folder: Path) -> Iterator[Path]:
    """Entries of a folder that have the names of tombstones."""
    try:
        names = iter([entry.name for entry in folder.iterdir()])
    except OSError:
        return
    while some := list(islice(names, _TASKS)):
        yield from (folder / name for name in sorted(_compacted(context, some)))


def _compacted(context: Context, names: Iterable[str]) -> set[str]:
    """Those that are known here and compacted: another home may use the same repository."""
    with context.store.read() as reading:
        tasks = reading.tasks(names)
    return {name for name, task in tasks.items() if task.meta.get("compacted")}


def _changed_at(folder: Path) -> Instant:
    """When something in a folder was changed last."""
    paths = (Path(at, name) for at, _, names in os.walk(folder) for name in (".", *names))
    return max((path.lstat().st_mtime_ns // 1000 for path in paths), default=0)


def _remove(folder: Path) -> None:
    """Remove a folder; a link in its place, or in it, is not followed."""
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)
