"""Sizes: how much the home folder and repositories keep of tasks until `history.keep`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from fairlane.model.errors import FairlaneError
from fairlane.model.project import Project
from fairlane.workspaces.work.keep_refs import count_kept

#: How many files are looked at; a home with more is told of as `more than`.
FILES_MAX = 200_000


class Kept(NamedTuple):
    """One sort of what is kept, and how much of it there is."""

    what: str
    text: str


def kept(home: Path, projects: list[Project]) -> Iterator[Kept]:
    """Run folders with the output of agents and of checks, copies of work, references of git."""
    files = list(islice(_files(home / "runs"), FILES_MAX))
    parts: Counter[str] = Counter()
    for name, size in files:
        parts[name] += size
    least = "more than " if len(files) == FILES_MAX else ""
    yield Kept("run_folders", least + _bytes(parts.total()))
    yield Kept("transcripts", least + _bytes(parts["agent"]))
    yield Kept("check_logs", least + _bytes(parts["check"]))
    copies = list(islice(_files(home / "open"), FILES_MAX))
    least = "more than " if len(copies) == FILES_MAX else ""
    yield Kept("copies", least + _bytes(sum(size for _, size in copies)))
    for project in projects:
        with suppress(FairlaneError, OSError):
            yield Kept("keep_refs", f"{count_kept(home, project)} in {project.repo}")


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Every regular file below a folder: its sort, and its size; no link is followed."""
    for where, _, names in os.walk(folder):
        is_check = any(word in Path(where).name for word in (".check.", ".again."))
        for name in names:
            with suppress(OSError):
                sort = "check" if is_check else "agent" if name.endswith(".log") else "rest"
                yield sort, os.lstat(f"{where}/{name}").st_size


def _bytes(size: int) -> str:
    if size < 1 << 20:
        return f"{size / (1 << 10):.1f} KiB"
    return f"{size / (1 << 20):.1f} MiB" if size < 1 << 30 else f"{size / (1 << 30):.1f} GiB"
