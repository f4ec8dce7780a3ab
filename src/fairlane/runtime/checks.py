"""Checks of an attempt: one after the other, in its workspace, under its lease."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from fairlane import workspaces
from fairlane.engine.checks import TAIL_BYTES, detail_of, timeout_of
from fairlane.engine.context import Row, folder_of
from fairlane.engine.end_attempt import Ending
from fairlane.executors.base import Ended, Executor, Exit, Gone, Handle, Orders, Running
from fairlane.executors.runfiles import Damaged, end_of
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.errors import FairlaneError, Shortage
from fairlane.model.event import Happening
from fairlane.model.instant import SECOND, parse_duration, show_instant
from fairlane.model.record import replace
from fairlane.model.visible import visible
from fairlane.runtime.commands import command_orders
from fairlane.runtime.ending import in_words, stopped
from fairlane.runtime.launch import Host, whose
from fairlane.runtime.shortage import shortage
from fairlane.runtime.watch import RunningAttempt

#: How often a check starts again whose runner was killed.
STARTS_MAX = 3

Made = TypeVar("Made")


def next_step(host: Host, running: RunningAttempt, success: Ending) -> Handle | Ending | None:
    """The check that runs now, the end that a failed one means, or None: all have passed."""
    rows = running.lease["checked"]
    for number, row in enumerate(rows):
        if row.get("passed"):
            continue
        if row.get("started_at") is None:
            return _started(host, running, success, number)
        folder = folder_of(running.run, number, row)
        state = state_of(running, folder)
        if isinstance(state, Handle):
            return state
        if state is None:
            return _started(host, running, success, number)
        result = result_of(running.executor, row, folder, state.exit)
        if result["passed"] and not _is_sealed(row, state.exit):
            running.executor.clean_up(folder)
            return _started(host, running, success, number)
        rows[number] = result
        host.port.checked(running.id, rows)
        if end := _end_of(running, success, rows[number], state.exit):
            return end
    return None


def _is_sealed(row: Row, exit: Exit) -> bool:
    """Whether the runner says so: what it runs could have killed it and written its record."""
    return row.get("seal") in (None, _digest(exit.seal))


def _digest(seal: str) -> str:
    return hashlib.sha256(seal.encode("utf-8", "replace")).hexdigest()


def state_of(running: RunningAttempt, folder: Path) -> Handle | Ended | None:
    """The check of this run folder that runs, or how it ended; None: it is gone for good."""
    executor, known = running.executor, running.checking
    handle = known if known is not None and known.run == folder else Handle(folder)
    state = executor.poll(handle)
    if state == Gone():
        executor.revoke(folder)  # one that has not shown itself yet starts nothing
        state = executor.poll(handle)
    if isinstance(state, Running):
        return executor.adopt(folder) or handle
    if state == Gone() or (isinstance(state, Ended) and state.exit.noted):
        executor.clean_up(folder)
    return state if isinstance(state, Ended) else None


def _started(host: Host, running: RunningAttempt, success: Ending, number: int) -> Handle | Ending:
    """Start a check; the store knows of it first, so that a crash finds it again.

    Its run folder is emptied before that: what an agent left there says nothing.
    """
    if running.stopping:
        happening, detail = stopped(running, "stop", "")
        return _ended(success, happening, detail)
    rows = running.lease["checked"]
    row = rows[number]
    starts = int(str(row.get("starts", 0))) + 1
    if starts > STARTS_MAX:
        detail = f"check {row['name']}: its runner was killed {STARTS_MAX} times"
        return _ended(success, Happening.FAILED, detail)  # what it runs can have killed it
    now = show_instant(host.clock.now())
    seal = secrets.token_hex(16)
    rows[number] = row = {**row, "started_at": now, "starts": starts, "seal": _digest(seal)}
    work = success.work
    if work is not None:
        seen = _tried(host, running, success, number, lambda: marked(host, running.lease, work))
        if isinstance(seen, Ending):
            return seen
        running.ending = success = replace(success, work=seen)
    orders = _tried(host, running, success, number, lambda: _orders(host, running, number))
    if isinstance(orders, Ending):
        return orders
    if host.port.checked(running.id, rows, success.work).lost:
        return _ended(success, Happening.LOST, "its lease ended before its checks ran")
    sealed = replace(orders, seal=seal)
    return _tried(host, running, success, number, lambda: running.executor.launch(sealed))


def marked(host: Host, lease: LocalLeaseDocument, work: Row) -> Row:
    """What an attempt made, with protected files that differ in its workspace by now.

    They can make a check pass, and are not in what is merged.
    """
    record = cast("workspaces.WorkRecord", work)
    return dict(workspaces.mark_again(*whose(host, lease), record))


def _orders(host: Host, running: RunningAttempt, number: int) -> Orders:
    row = running.lease["checked"][number]
    own = row["timeout"]
    seconds = timeout_of(host.settings, parse_duration(own) if isinstance(own, str) else None)
    argv, folder = [str(word) for word in _words(row)], folder_of(running.run, number, row)
    return command_orders(host, running.lease, folder, argv, seconds)


def _tried(
    host: Host, running: RunningAttempt, success: Ending, number: int, deed: Callable[[], Made]
) -> Made | Ending:
    """What it takes to start a check; an error ends the attempt."""
    rows = running.lease["checked"]
    try:
        return deed()
    except Shortage as error:
        return _ended(success, Happening.ENVIRONMENT, error.message)
    except (FairlaneError, Damaged) as error:
        problem = error.message if isinstance(error, FairlaneError) else str(error)
        rows[number] = {**rows[number], "passed": False, "problem": problem}
        host.port.checked(running.id, rows)
        return _ended(success, Happening.CHECK_FAILED, detail_of(rows[number]))
    except OSError as error:
        missing = shortage(error, running.run)
        return _ended(success, Happening.ENVIRONMENT, missing or str(error))


def _words(row: Row) -> list[object]:
    argv = row["argv"]
    return argv if isinstance(argv, list) else []


def result_of(executor: Executor, row: Row, folder: Path, exit: Exit) -> dict[str, object]:
    """The row of a check that has ended."""
    seconds = max(0, exit.ended_at - exit.started_at) / SECOND
    passed = exit.exit_code == 0 and not exit.stopped and not exit.launch_error and not exit.damage
    problem = ""
    if exit.damage:
        problem = f"its run folder is damaged: {exit.damage}"
    elif exit.launch_error:
        problem = in_words(exit.launch_error)
    elif exit.stopped:
        problem = exit.limit or exit.stopped
    elif exit.signal:
        problem = f"signal {exit.signal}"
    ended = {"exit": exit.exit_code, "passed": passed, "seconds": round(seconds, 3)}
    return {**row, **ended, "problem": problem, "tail": _tail(executor, folder)}


def _tail(executor: Executor, folder: Path) -> str:
    """The end of what a check printed."""
    text = end_of(executor, folder, "stdout", TAIL_BYTES).rstrip(b"\n")
    return visible(text.decode("utf-8", "replace"), lines=True)


def _end_of(running: RunningAttempt, success: Ending, row: Row, exit: Exit) -> Ending | None:
    """What a check that has ended means for its attempt; None: it passed."""
    if row["passed"]:
        return None
    if exit.environment:
        return _ended(success, Happening.ENVIRONMENT, str(row["problem"]))
    if exit.stopped == "stop":
        happening, detail = stopped(running, exit.stopped, "")
        return _ended(success, happening, detail)
    return _ended(success, Happening.CHECK_FAILED, detail_of(row))


def _ended(success: Ending, happening: Happening, detail: str) -> Ending:
    """The end of an attempt whose agent had succeeded."""
    report = replace(success.report, detail=detail, retry_after=None, resets_at=None)
    return replace(success, happening=happening, report=report, pause="")


def running_check(executor: Executor, lease: LocalLeaseDocument) -> Handle | None:
    """The check of an attempt that runs now, if one does."""
    for number, row in enumerate(lease["checked"]):
        if row.get("started_at") is not None and row.get("passed") is None:
            return executor.adopt(folder_of(Path(lease["run"]), number, row))
    return None
