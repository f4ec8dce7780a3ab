"""Ending: what the end of an agent's process means for its task."""

from __future__ import annotations

from fairlane.agents.contract import Verdict
from fairlane.engine.end_attempt import Ending, Report
from fairlane.executors.base import Ended, Exit, Running
from fairlane.executors.runfiles import end_of
from fairlane.lifecycle.step import HAPPENINGS
from fairlane.model.event import Happening
from fairlane.model.instant import Instant
from fairlane.model.task import Outcome
from fairlane.runtime.launch import Host
from fairlane.runtime.shortage import shortage, shortage_now
from fairlane.runtime.watch import RunningAttempt

#: How much of the end of the error output is looked at.
_TAIL = 4000


def ending_of(host: Host, running: RunningAttempt) -> Ending:
    """What the end of this attempt means for its task."""
    state = running.executor.poll(running.handle)
    if isinstance(state, Running):
        raise OSError(f"{running.task}: its runner has not ended yet")
    exit = state.exit if isinstance(state, Ended) else None
    if exit is None or exit.noted:
        running.executor.clean_up(running.run)
    running.read_out(exit.record if exit is not None and exit.cut else "")
    if damage := (exit.damage if exit is not None else "") or running.damage:
        running.executor.clean_up(running.run)
        return _damaged(running, damage)
    if exit is None or exit.noted:
        exit = _known_of(running, exit, host.clock.now())
        if exit is None:
            return _lost(running)
    if exit.launch_error:
        return _not_started(running, exit)
    errors = end_of(running.executor, running.run, "stderr", _TAIL).decode("utf-8", "replace")
    verdict = running.parser.verdict(exit.exit_code, exit.signal, errors, host.clock.now())
    return _judged(running, exit, verdict)


def _known_of(running: RunningAttempt, noted: Exit | None, now: Instant) -> Exit | None:
    """How an attempt ended whose runner was killed; None: nobody knows.

    A final record that reports a success is enough. What the runner had noted is, for a program
    that prints no final record; the others may have printed one that nobody has saved.
    """
    if running.says_success(now):
        return noted or Exit(exit_code=0)
    return noted if running.final or not running.parser.FINAL else None


def _judged(running: RunningAttempt, exit: Exit, verdict: Verdict) -> Ending:
    """The verdict, unless a stop explains the end."""
    happening = HAPPENINGS[verdict.outcome]
    detail = f"stopped at a limit ({exit.limit})" if exit.limit else verdict.detail
    why = exit.stopped if exit.stopped != "grace" else ""
    if why and verdict.outcome is not Outcome.SUCCEEDED:
        happening, detail = stopped(running, why, detail)
    report = Report(
        tokens=verdict.tokens if verdict.tokens is not None else running.progress.tokens,
        usd=verdict.usd if verdict.usd is not None else running.progress.usd,
        detail=detail,
        result=verdict.result,
        retry_after=verdict.retry_after,
        resets_at=verdict.resets_at,
    )
    session = verdict.session or running.progress.session
    pause = verdict.pause if happening is Happening.ENVIRONMENT else ""
    return Ending(happening, report, session, pause=pause)


def _report(running: RunningAttempt, detail: str) -> Report:
    return Report(running.progress.tokens, running.progress.usd, detail)


def _not_started(running: RunningAttempt, exit: Exit) -> Ending:
    """The runner could not start its agent, or not watch over it and so has ended it."""
    missing = shortage(OSError(exit.errno, ""), running.run)
    ours = missing or exit.environment
    happening = Happening.ENVIRONMENT if ours else Happening.LAUNCH_FAILED
    return Ending(happening, _report(running, missing or in_words(exit.launch_error)))


def in_words(launch_error: str) -> str:
    """Why a program did not start; one that is named without a folder was searched on the path."""
    program = launch_error.removesuffix(": No such file or directory")
    is_searched = program != launch_error and "/" not in program
    return f"{program} is not on the PATH" if is_searched else launch_error


def stopped(running: RunningAttempt, why: str, detail: str) -> tuple[Happening, str]:
    if why in ("timeout", "silence"):
        return Happening.FAILED, why
    if why == "limit":
        return Happening.FAILED, detail
    if running.stopping == "shutdown":
        return Happening.ENVIRONMENT, "the worker was shut down"
    if running.stopping:
        return Happening.STOPPED, detail
    return Happening.ENVIRONMENT, "its runner was told to stop"


def _lost(running: RunningAttempt) -> Ending:
    """The runner is gone, and left no result."""
    if running.stopping and running.stopping != "shutdown":
        return Ending(Happening.STOPPED, Report())
    missing = shortage_now(running.run)  # it had no room for its result
    happening = Happening.ENVIRONMENT if missing else Happening.LOST
    report = _report(running, missing or "its runner is gone")
    return Ending(happening, report, running.progress.session)


def _damaged(running: RunningAttempt, what: str) -> Ending:
    """What is in the run folder cannot be believed: it costs this attempt."""
    report = _report(running, f"its run folder is damaged: {what}")
    return Ending(Happening.FAILED, report, running.progress.session)
