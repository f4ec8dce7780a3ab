"""Checks: what an attempt must pass before its task is done, and what came of them so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fairlane.engine.context import Context, Row, folder_of, run_folder
from fairlane.engine.end_attempt import Ending
from fairlane.engine.turn import Renewed, Turn
from fairlane.intake.fields import renamed
from fairlane.model.errors import NotFound, Refused
from fairlane.model.event import Happening
from fairlane.model.instant import SECOND, Micros
from fairlane.model.project import Project
from fairlane.model.record import changed, replace
from fairlane.model.task import SETUP, Attempt, Check, Task, agent_of
from fairlane.model.visible import quoted, visible
from fairlane.settings import Settings

#: How much of the end of a check's output is kept for the next attempt and for people.
TAIL_BYTES = 8_000


def checks_of(task: Task, project: Project) -> tuple[Row, ...]:
    """The checks of a new attempt, as its row keeps them."""
    return tuple({**check.document()} for check in required(task, project))


def required(task: Task, project: Project) -> list[Check]:
    """The checks of a task: its project's, then its own; none replaces another of its name."""
    if task.no_checks:
        return []
    checks = list(project.checks)
    for own in task.checks:
        if own not in checks:
            checks.append(renamed(own, {check.name for check in checks}))
    return checks


def folder_named(home: Path, attempt: Attempt, name: str) -> Path:
    """Where the check of this name leaves its traces."""
    for number, row in enumerate(attempt.checks):
        if row["name"] == name:
            return folder_of(run_folder(home, attempt), number, row)
    known = ", ".join(str(row["name"]) for row in attempt.checks)
    hint = f"It has: {known}." if known else f"`fairlane show {attempt.task}` lists its checks."
    message = f"attempt {attempt.number} of {attempt.task} has no check {name!r}"
    raise NotFound(message, hint, code="unknown_check")


def record(context: Context, lease: str, rows: Sequence[Row], work: Row | None = None) -> Renewed:
    """Keep what came of the checks of an open attempt, and log what is new.

    `work`: what is checked; checks change files too, and that is none of it.
    """
    with context.store.write() as tx:
        turn = Turn(context, tx, [lease])
        for attempt in turn.open().values():
            note = _note(rows) or ("" if attempt.note == SETUP else attempt.note)
            kept = attempt.work if work is None else work
            turn.start(changed(attempt, checks=tuple(map(dict, rows)), note=note, work=kept))
            _log(turn, attempt, rows)
        turn.close()
    return turn.renewed()


def _note(rows: Sequence[Row]) -> str:
    """What runs now."""
    open_ = [str(row["name"]) for row in rows if row.get("passed") is None and "started_at" in row]
    if not open_:
        return ""
    return SETUP if open_[0] == SETUP else f"check: {open_[0]}"


def _log(turn: Turn, attempt: Attempt, rows: Sequence[Row]) -> None:
    """The end of a failed one is the end of its attempt, and logged with it."""
    task = turn.task_of(attempt)
    begun = any("started_at" in row for row in without_setup(attempt.checks))
    if not begun and any("started_at" in row for row in without_setup(rows)):
        names = [str(row["name"]) for row in without_setup(rows)]
        turn.changes.note("checks_started", task, attempt=attempt.number, checks=names)
    log_passed(turn, attempt, rows)


def log_passed(turn: Turn, attempt: Attempt, rows: Sequence[Row]) -> None:
    """Log which checks have passed since the attempt was as it is given here."""
    passed = {row["name"] for row in attempt.checks if row.get("passed")}
    for row in without_setup(rows):
        if row.get("passed") and row["name"] not in passed:
            data = {"check": row["name"], "seconds": row.get("seconds")}
            task = turn.task_of(attempt)
            turn.changes.note("check_passed", task, attempt=attempt.number, **data)


def without_setup(rows: Iterable[Row]) -> list[Row]:
    """The checks alone."""
    return [row for row in rows if row["name"] != SETUP]


def _failed(attempt: Attempt) -> Row | None:
    rows = without_setup(attempt.checks)
    return next((row for row in rows if row.get("passed") is False), None)


def failed_name(attempt: Attempt) -> str:
    """The check of an attempt that failed; empty: none did."""
    failed = _failed(attempt)
    return "" if failed is None else str(failed["name"])


def outstanding(attempt: Attempt) -> list[str]:
    """The checks of an attempt that have not passed."""
    return [str(row["name"]) for row in attempt.checks if not row.get("passed")]


def judged(attempt: Attempt, ending: Ending, by_attempt: bool) -> tuple[Attempt, Ending]:
    """A success with the results that came with it; one that failed makes it `check_failed`.

    Only a holder outside runs its checks itself; what an agent says of its own counts for nothing.
    """
    is_holder = attempt.executor == "none" and not by_attempt
    results = ending.report.checks if is_holder else ()
    given = {str(row["name"]): row for row in results}
    rows = tuple(_with_result(row, given.get(str(row["name"]))) for row in attempt.checks)
    attempt = changed(attempt, checks=rows)
    failed = _failed(attempt)
    if failed is None:
        return attempt, ending
    report = replace(ending.report, detail=detail_of(failed))
    return attempt, replace(ending, happening=Happening.CHECK_FAILED, report=report)


def _with_result(row: Row, result: Row | None) -> Row:
    if result is None:
        return row
    seconds = result.get("seconds")
    tail = visible(str(result.get("output") or "")[-TAIL_BYTES:], lines=True)
    ended = {"exit": result["exit"], "passed": result["exit"] == 0, "seconds": seconds}
    return {**row, **ended, "tail": tail}


def why_failed(row: Row) -> str:
    """Why a check or a setup failed, in a few words: `exit 2`."""
    return str(row.get("problem") or f"exit {row.get('exit')}")


def detail_of(row: Row) -> str:
    """What a failed check says in one line: `check make test: exit 2`."""
    return f"check {row['name']}: {why_failed(row)}"


def missing(attempt: Attempt) -> Refused:
    """What a holder learns that has not sent the results of its checks."""
    names = ", ".join(outstanding(attempt))
    hint = (
        "Whoever leased it runs them in its workspace, and sends them with `complete`: checks with"
        " name and exit. Those that an attempt's token sends do not count."
    )
    message = f"{attempt.task} is done when its checks have passed: {names}"
    return Refused(message, hint, code="checks_missing")


def resumes(settings: Settings, task: Task, attempt: Attempt) -> bool:
    """Whether the next attempt can go on with the session of this one."""
    if not attempt.session or task.session != "resume":
        return False
    from fairlane.agents.contract import agents  # costly, and reports plan without it

    name = agent_of(attempt.agent, None, settings.agent, bool(task.command))
    agent = agents(settings).get(name)
    return agent is not None and agent.resumes


def timeout_of(settings: Settings, own: Micros | None) -> float:
    """How many seconds a check may take."""
    return (settings.checks.timeout if own is None else own) / SECOND


def output_of(attempt: Attempt) -> str:
    """The prompt of an agent whose check failed: which, and the end of what it printed."""
    failed = _failed(attempt)
    if failed is None:
        return ""
    text = f"The check `{failed['name']}` failed ({why_failed(failed)}) on your work."
    tail = str(failed.get("tail") or "").strip()
    if tail:
        text += f" The end of its output:\n\n{quoted(tail)}\n\nFind the cause and correct it."
    return f"{text} The check runs again when you end your turn.\n"
