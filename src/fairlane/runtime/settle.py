"""Settle: from the end of an agent to the end of its attempt: work kept, checks run, delivered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from queue import SimpleQueue
from typing import cast

from fairlane import workspaces
from fairlane.clock import Waker
from fairlane.engine.checks import without_setup
from fairlane.engine.end_attempt import Ending, unreadable
from fairlane.executors.base import Handle
from fairlane.executors.runfiles import put
from fairlane.model.errors import FairlaneError
from fairlane.model.event import Happening
from fairlane.model.instant import show_instant
from fairlane.runtime import checks, setup
from fairlane.runtime.ending import ending_of
from fairlane.runtime.launch import Host, WorkThreads, whose
from fairlane.runtime.watch import TURN_BYTES, RunningAttempt

#: How many ends are taken in at once where that takes time.
SETTLED_AT_ONCE = 4


class Settler:
    """Takes ends in; what needs git or a long log is done in a thread, and delays no other."""

    def __init__(self, host: Host, waker: Waker) -> None:
        self._host, self._waker = host, waker
        self._threads = WorkThreads(host.threads(SETTLED_AT_ONCE, "settle"))
        self._settled: SimpleQueue[tuple[str, Ending]] = SimpleQueue()
        self._checks: SimpleQueue[tuple[str, Handle]] = SimpleQueue()
        self._ready: dict[str, Ending] = {}
        self._problem: OSError | None = None

    def begin(self, running: RunningAttempt) -> None:
        """It has ended."""
        running.settling = True
        is_short = running.lease["repo"] is None and not running.lease["checked"]
        if is_short and running.log.unread() <= TURN_BYTES:
            self._settle(running)
        else:
            self._threads.submit(self._settle, running)

    def ready(self) -> dict[str, Ending]:
        """Endings by lease; the caller takes out what it has booked."""
        if self._threads.stranded:
            self._threads.start_stranded()
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        while not self._settled.empty():
            lease, ending = self._settled.get()
            self._ready[lease] = ending
        return self._ready

    def checks(self) -> Iterator[tuple[str, Handle]]:
        """Checks that run now, each after the agent of a lease or another check."""
        while not self._checks.empty():
            yield self._checks.get()

    def close(self) -> None:
        """Finish what has begun."""
        self._threads.close()

    def _settle(self, running: RunningAttempt) -> None:
        try:
            ending = advance(self._host, running)
        except OSError as error:  # too many open files, no memory: the next turn tries again
            self._problem, running.settling = error, False
            return
        except Exception as error:  # a bug here must not hold the lease for ever
            ending = unreadable(error)
        if isinstance(ending, Handle):
            self._checks.put((running.id, ending))
        else:
            self._settled.put((running.id, ending))
        self._waker.set()


def advance(host: Host, running: RunningAttempt) -> Ending | Handle:
    """Its setup, its agent or a check has ended: what runs now, or the attempt's end.

    What was done already is found again after a crash: the store has the results of checks, and
    a run folder what became of the one that ran.
    """
    has_checks = bool(running.lease["checked"])  # a setup is among them
    if running.ending is None:
        first = setup.next_step(host, running) if has_checks else None
        if isinstance(first, Ending):
            _write_result(host, running, first)
        if first is not None:
            return first
        running.ending = _kept(host, running, ending_of(host, running))
    ending = running.ending
    if ending.happening is Happening.SUCCEEDED:
        step = checks.next_step(host, running, ending) if has_checks else None
        if isinstance(step, Handle):
            return step
        ending = step or _delivered(host, running, running.ending)
    _write_result(host, running, ending)
    return ending


def _kept(host: Host, running: RunningAttempt, ending: Ending) -> Ending:
    """Keep what the attempt made of its repository, before anything else looks at it."""
    lease, success = running.lease, ending.happening is Happening.SUCCEEDED
    if lease["repo"] is None:
        return ending
    if success and any("started_at" in row for row in without_setup(lease["checked"])):
        return replace(ending, work=lease["work"])  # not what checks have made of it since
    try:
        words = whose(host, lease)
        work = workspaces.keep_work(*words, attempt=lease["attempt"], success=success)
    except workspaces.NotTakenIn as error:
        return replace(_parked(running.task, ending, error), work=error.work and dict(error.work))
    except (FairlaneError, OSError) as error:
        return _parked(running.task, ending, error) if success else ending
    return ending if work is None else replace(ending, work=dict(work))


def _delivered(host: Host, running: RunningAttempt, ending: Ending) -> Ending:
    """Merge, offer or keep the work of a success."""
    work = ending.work
    if work is None:
        return ending
    try:
        if without_setup(running.lease["checked"]):
            # The last one may have changed something, too.
            work = checks.marked(host, running.lease, work)
        record = cast("workspaces.WorkRecord", work)
        merge = workspaces.deliver(*whose(host, running.lease), record)
    except (FairlaneError, OSError) as error:
        return _parked(running.task, ending, error)
    ending = replace(ending, work={**work, "merge": merge})
    problem = workspaces.problem_of(merge)
    return _parked(running.task, ending, OSError(problem)) if problem else ending


def _parked(task: str, ending: Ending, error: FairlaneError | OSError) -> Ending:
    """A success whose work could not be kept or delivered: a person looks at it."""
    detail = error.in_full(task) if isinstance(error, FairlaneError) else str(error)
    report = replace(ending.report, detail=detail, retry_after=None, resets_at=None)
    return replace(ending, happening=Happening.FAILED, report=report, park=True, pause="")


def _write_result(host: Host, running: RunningAttempt, ending: Ending) -> None:
    report = ending.report
    document = {
        "task": running.task,
        "attempt": running.lease["attempt"],
        "ended_at": show_instant(host.clock.now()),
        "happening": str(ending.happening),
        "detail": report.detail,
        "tokens": report.tokens,
        "usd": report.usd,
        "session": ending.session,
        **(report.result or {}),
        "work": ending.work,
        "news": asdict(running.progress),
    }
    try:
        put(running.run / "result.json", json.dumps(document, indent=2, default=str))
    except OSError:
        return  # the store has it all; this file is for people
