"""What came of a task besides its work: its checks and its session, as `show` tells them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fairlane.engine import checks as engine_checks
from fairlane.engine.context import Context, folder_of, is_here, run_folder
from fairlane.executors.runfiles import log_of
from fairlane.model.task import Attempt, Task

if TYPE_CHECKING:
    from fairlane.model.documents import work as documents


def checks_of(home: Path, attempts: Sequence[Attempt]) -> list[documents.AttemptCheckDocument]:
    """Every check of every attempt, with what came of it."""
    return [
        {
            "name": str(row["name"]),
            "argv": [str(word) for word in cast("Sequence[object]", row["argv"])],
            "exit": cast("int | None", row.get("exit")),
            "passed": cast("bool | None", row.get("passed")),
            "seconds": cast("float | None", row.get("seconds")),
            "attempt": attempt.number,
            "log": str(log_of(folder_of(run_folder(home, attempt), number, row)))
            if "started_at" in row and is_here(attempt)
            else None,
        }
        for attempt in attempts
        for number, row in enumerate(attempt.checks)
    ]


def session_of(
    context: Context, task: Task, attempts: Sequence[Attempt]
) -> documents.SessionDocument | None:
    """The session of the last attempt that had one."""
    last = next((row for row in reversed(attempts) if row.session), None)
    if last is None:
        return None
    return {
        "id": str(last.session),
        "agent": last.agent,
        "worker": last.worker,
        "resumable": engine_checks.resumes(context.settings, task, last),
    }
