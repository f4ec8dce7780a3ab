"""Settle: a process has ended; its verdict, its work and its usage are taken in, once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from queue import SimpleQueue

from fairlane import workspaces
from fairlane.agents.adapter import Verdict
from fairlane.daemon import folders
from fairlane.daemon.crew import TURN_BYTES, Member
from fairlane.daemon.trouble import is_of_the_place
from fairlane.executors.base import Exit
from fairlane.executors.process import clean_up, exit_of
from fairlane.executors.runfiles import put, tail
from fairlane.model.event import Happening
from fairlane.model.instant import Instant, show_instant
from fairlane.model.project import Project
from fairlane.model.task import Outcome, Task
from fairlane.policy.policy import Policy
from fairlane.service import holding
from fairlane.service.desk import Desk
from fairlane.service.ending import Report
from fairlane.service.holding import Ending

#: How many ends are taken in at once where that takes time.
SETTLED_AT_ONCE = 4
#: How much of the end of the error output is looked at.
_TAIL = 4000
_HAPPENING = {
    Outcome.SUCCEEDED: Happening.SUCCEEDED,
    Outcome.FAILED: Happening.FAILED,
    Outcome.LAUNCH_FAILED: Happening.LAUNCH_FAILED,
    Outcome.LOST: Happening.LOST,
    Outcome.THROTTLED: Happening.THROTTLED,
    Outcome.ENVIRONMENT: Happening.ENVIRONMENT,
    Outcome.RELEASED: Happening.RELEASED,
    Outcome.CANCELED: Happening.STOPPED,
}


class Settler:
    """Takes ends in; where git or a project's command has a part, nobody else waits for it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._threads = ThreadPoolExecutor(SETTLED_AT_ONCE, "settle")
        self._told: SimpleQueue[tuple[str, Ending]] = SimpleQueue()
        self._ready: dict[str, Ending] = {}
        self._problem: OSError | None = None

    def begin(self, member: Member, project: Project, now: Instant) -> None:
        """Its process is gone."""
        member.settling = True
        if project.repo is None and member.log.unread() <= TURN_BYTES:
            self._settle(member, project, now)
        else:
            self._threads.submit(self._settle, member, project, now)

    def ready(self) -> dict[str, Ending]:
        """Ends that are to be booked, by lease; whoever has booked one takes it out."""
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        while not self._told.empty():
            lease, ending = self._told.get()
            self._ready[lease] = ending
        return self._ready

    def close(self) -> None:
        """What has begun is finished."""
        self._threads.shutdown(wait=True)

    def _settle(self, member: Member, project: Project, now: Instant) -> None:
        try:
            found = ending_of(self._desk, member, project, now)
        except OSError as error:  # too many open files, no memory: it is looked at again
            self._problem, member.settling = error, False
            return
        except Exception as error:  # a bug here must not hold the lease for ever
            found = broken(error)
        self._told.put((member.lease, found))


def book(desk: Desk, policy: Policy, endings: Mapping[str, Ending]) -> dict[str, Task]:
    """Ends go into the store together; one that cannot is parked by itself, the rest goes on."""
    try:
        return holding.finish(desk, policy, endings)
    except Exception as error:
        if is_of_the_place(error):
            raise
    found: dict[str, Task] = {}
    problem: Exception | None = None
    for lease, ending in endings.items():
        try:
            found |= _book_alone(desk, policy, lease, ending)
        except Exception as error:  # not even parked: tried again with the next turn
            problem = error
    if problem is not None:
        raise problem
    return found


def _book_alone(desk: Desk, policy: Policy, lease: str, ending: Ending) -> dict[str, Task]:
    try:
        return holding.finish(desk, policy, {lease: ending})
    except Exception as error:
        if is_of_the_place(error):
            raise
        return holding.finish(desk, policy, {lease: broken(error)})


def broken(error: Exception) -> Ending:
    """The end of an attempt that our own code could not take in: a person looks at it."""
    return Ending(Happening.FAILED, Report(detail=f"{type(error).__name__}: {error}"), park=True)


def ending_of(desk: Desk, member: Member, project: Project, now: Instant) -> Ending:
    """What the end of this process means for its task."""
    ended = exit_of(member.folder)
    member.read_out(ended.record if ended is not None and ended.cut else "")
    if ended is None or ended.damage or member.damage:
        clean_up(member.folder)
        damage = member.damage if ended is None else ended.damage or member.damage
        return _damaged(member, damage) if damage else _lost(member)
    if ended.launch_error:
        return _not_started(member, ended)
    verdict = member.parser.verdict(ended.exit_code, ended.signal, _tail(member), now)
    found = _judged(member, ended, verdict)
    if found.happening is Happening.SUCCEEDED:
        found = _finished(desk, member, project, found)
    _write_result(member, verdict, found, now)
    return found


def _judged(member: Member, ended: Exit, verdict: Verdict) -> Ending:
    """The verdict, but for what a stop explains."""
    happening, detail = _HAPPENING[verdict.outcome], verdict.detail
    stopped = ended.stopped if ended.stopped != "grace" else ""
    if stopped and verdict.outcome is not Outcome.SUCCEEDED:
        happening, detail = _stopped(member, stopped, detail)
    report = Report(
        tokens=verdict.tokens if verdict.tokens is not None else member.news.tokens,
        usd=verdict.usd if verdict.usd is not None else member.news.usd,
        detail=detail,
        result={"summary": verdict.summary[:2000]} if verdict.summary else None,
        retry_after=verdict.retry_after,
        resets_at=verdict.resets_at,
    )
    session = verdict.session or member.news.session
    pause = verdict.pause if happening is Happening.ENVIRONMENT else ""
    return Ending(happening, report, session, pause=pause)


def _not_started(member: Member, ended: Exit) -> Ending:
    """The runner could not start its agent, or not watch over it and so has ended it."""
    missing = folders.missing(OSError(ended.errno, ""), member.folder)
    ours = missing or ended.environment
    happening = Happening.ENVIRONMENT if ours else Happening.LAUNCH_FAILED
    tokens, usd = member.news.tokens, member.news.usd
    return Ending(happening, Report(tokens, usd, missing or ended.launch_error))


def _stopped(member: Member, why: str, detail: str) -> tuple[Happening, str]:
    if why in ("timeout", "silence"):
        return Happening.FAILED, why
    if member.stopping == "shutdown":
        return Happening.ENVIRONMENT, "the worker was shut down"
    if member.stopping:
        return Happening.STOPPED, detail
    return Happening.ENVIRONMENT, "its runner was told to stop"


def _lost(member: Member) -> Ending:
    """The runner died without a word."""
    if member.stopping and member.stopping != "shutdown":
        return Ending(Happening.STOPPED, Report())
    tokens, usd = member.news.tokens, member.news.usd
    missing = folders.missing_now(member.folder)  # it could not even say so
    told = Report(tokens=tokens, usd=usd, detail=missing or "its runner is gone")
    happening = Happening.ENVIRONMENT if missing else Happening.LOST
    return Ending(happening, told, member.news.session)


def _damaged(member: Member, what: str) -> Ending:
    """What is in the run folder cannot be believed: it costs this attempt."""
    told = Report(member.news.tokens, member.news.usd, f"its run folder is damaged: {what}")
    return Ending(Happening.FAILED, told, member.news.session)


def _finished(desk: Desk, member: Member, project: Project, ending: Ending) -> Ending:
    """After a success: what is left is committed, and the branch goes where it should."""
    try:
        problem = workspaces.finish(
            desk.home, desk.settings, project, member.task, member.attempt.workspace
        )
    except OSError as error:
        problem = str(error)
    if not problem:
        return ending
    report = Report(
        tokens=ending.report.tokens,
        usd=ending.report.usd,
        detail=problem,
        result=ending.report.result,
    )
    return Ending(Happening.FAILED, report, ending.session, park=True)


def _tail(member: Member) -> str:
    return tail(member.folder / "stderr.log", _TAIL).decode("utf-8", "replace")


def _write_result(member: Member, verdict: Verdict, ending: Ending, now: Instant) -> None:
    document = {
        "task": member.task.id,
        "attempt": member.attempt.number,
        "ended_at": show_instant(now),
        "happening": str(ending.happening),
        "detail": ending.report.detail,
        "tokens": verdict.tokens._asdict() if verdict.tokens is not None else None,
        "usd": verdict.usd,
        "session": verdict.session,
        "summary": verdict.summary,
        "news": asdict(member.news),
    }
    try:
        text = json.dumps(document, indent=2, default=str)
        put(member.folder / "result.json", text)
    except OSError:
        return  # the store has it all; this file is for people
