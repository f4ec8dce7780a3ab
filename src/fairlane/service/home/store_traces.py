"""Traces of a store that has lost its last commits, of which the file itself shows nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fairlane.store.base import Reading

#: How many tasks are looked at, those with the newest run folders.
TASKS_MAX = 500


def unknown_attempts(home: Path, reading: Reading) -> Iterator[str]:
    """Attempts that have a run folder, and that the store has never heard of."""
    newest = _newest(home / "runs")
    known = reading.tasks(newest)
    for name in newest:
        if name in known:
            with suppress(OSError):
                names = [folder.name for folder in (home / "runs" / name).iterdir()]
                last = max((int(each) for each in names if each.isdecimal()), default=0)
                if last > known[name].attempts:
                    yield f"attempt {last} of {name}"


def _newest(runs: Path) -> list[str]:
    """The tasks whose folder changed last."""
    with suppress(OSError), os.scandir(runs) as found:
        times = sorted(((each.stat().st_mtime_ns, each.name) for each in found), reverse=True)
        return [name for _, name in times[:TASKS_MAX]]
    return []
