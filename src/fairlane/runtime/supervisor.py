"""Supervisor: the attempts of one worker, from their launch to their end. It knows no store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from queue import SimpleQueue

from fairlane import workspaces
from fairlane.agents.contract import Verdict
from fairlane.clock import Waitable, Waker
from fairlane.engine.end_attempt import Ending, Report, unreadable
from fairlane.executors.base import Ended, Exit, Handle, Running
from fairlane.executors.runfiles import end_of, put
from fairlane.lifecycle.step import HAPPENINGS
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.event import Happening
from fairlane.model.instant import Instant, Micros, show_instant
from fairlane.model.task import Outcome, Status
from fairlane.runtime import recover
from fairlane.runtime.launch import (
    Host,
    Launcher,
    WorkThreads,
    project_of,
    shortage,
    shortage_now,
    task_of,
)
from fairlane.runtime.watch import TURN_BYTES, RunningAttempt, RunningAttempts

#: How often the output of running attempts is read for tokens.
PROGRESS_SECONDS = 1.0


class Supervisor:
    """Each method does what is due and can be called again after an error: nothing is lost."""

    def __init__(self, host: Host) -> None:
        self._host, self._port = host, host.port
        self.waker = Waker()  # set when a thread of a launch or an end has something
        self.running = RunningAttempts(host)
        self._launcher = Launcher(host, self.waker)
        self._settler = Settler(host, self.waker)
        self._started: dict[str, str | None] = {}  # launched, and not reported yet
        self._failed: dict[str, Ending] = {}  # not launched, and not reported yet
        self._unwatched: dict[str, tuple[LocalLeaseDocument, Handle]] = {}  # launched, not watched
        self._lost: set[str] = set()  # leases that ended while their attempt was launched
        self._renewed_at: Instant = 0
        self._progress_at = float("-inf")
        self._just_launched = False  # whether attempts were added whose stop nobody looked for
        self.changed = False  # whether there is news for a plan
        self.ended = 0
        self.parked = 0

    @property
    def busy(self) -> bool:
        """Whether any attempt runs or is being launched."""
        return bool(self.running.attempts or self._unwatched) or self._launcher.busy

    @property
    def count(self) -> int:
        """How many attempts run or are being launched."""
        return len({*self.running.attempts, *self._unwatched, *self._launcher.waiting})

    def waitables(self) -> list[Waitable]:
        """What becomes ready when there is something to do."""
        return [self.waker, *self.running.waitables()]

    def due_in(self) -> float:
        """Seconds until a launch is due."""
        return self._launcher.due_in()

    def recover(self) -> recover.Recovered:
        """Take over what an earlier worker left."""
        self._host.executor.warm_up()
        return recover.recover(self._host, self.running)

    def launch(self, leases: Sequence[LocalLeaseDocument], pause: float) -> None:
        """Start these, `pause` seconds apart."""
        self._launcher.begin(leases, pause)

    def take_launched(self) -> None:
        """Report what became of launches, and start those that are due."""
        self._launcher.start_due()
        for launched in self._launcher.take():
            lease, outcome = launched.lease, launched.outcome
            if isinstance(outcome, Handle):
                self._started[lease["lease"]] = outcome.text
                self._unwatched[lease["lease"]] = lease, outcome
            else:
                self._failed[lease["lease"]] = outcome
        if self._started:
            self._lost.update(self._port.start(self._started).lost)
            self._started.clear()
        self._finish(self._failed)
        self._failed.clear()
        for name, (lease, handle) in tuple(self._unwatched.items()):
            self.running.add(lease, handle)
            del self._unwatched[name]
            self._just_launched = True
        if self._just_launched:  # a stop may have been requested while it was launched
            self._stop_lost(self._lost)
            self._lost.clear()
            self.stop_wanted()
            self._just_launched = False
            self._host.executor.warm_up()  # not before: it would keep an agent from its start

    def settle_ended(self) -> None:
        """Take in the ends of attempts, all that are there at once."""
        for attempt in self.running.ended():
            self.running.unwatch(attempt.id)
            self._settler.begin(attempt)
        self.take_settled()

    def take_settled(self) -> None:
        """Report endings."""
        endings = self._settler.ready()
        self._finish(endings)
        self.running.remove(endings)
        endings.clear()

    def report_progress(self) -> None:
        """Report usage and notes as they are printed; stop what a budget ends."""
        now = self._host.clock.monotonic()
        if not self.running.attempts or now - self._progress_at < PROGRESS_SECONDS:
            return
        self._progress_at = now
        progress = self.running.progress()
        if progress:
            self._port.progress(progress)
            self.running.reported(progress)
            self.stop_wanted()

    def renew(self, ttl: Micros) -> None:
        """Every third of the lease time: this worker lives, and so do its attempts."""
        now = self._host.clock.now()
        if 0 <= now - self._renewed_at < ttl // 3:
            return
        self._port.present()
        waiting = self._launcher.waiting
        leases = {*self.running.attempts, *self._unwatched, *waiting}
        if leases:  # of those that do not run yet, `blocked` or `start` learns of their end
            self._stop_lost(self._port.renew(leases, waiting).lost)
        self.follow_changes()  # a command may have died before it said what it started
        self._renewed_at = now

    def follow_changes(self) -> None:
        """Another process wrote: adopt what a command started, stop what somebody canceled."""
        recover.adopt_new(self._host, self.running)
        self.stop_wanted()

    def stop_wanted(self) -> None:
        """Stop the attempts whose stop was requested."""
        if self.running.attempts:
            for lease, why in self._port.stops(self.running.attempts).items():
                self._stop(self.running.attempts[lease], why)

    def _stop_lost(self, leases: Iterable[str]) -> None:
        for lease in leases:
            if lease in self.running.attempts:
                self._stop(self.running.attempts[lease], "lost")

    def stop_all(self) -> None:
        """Stop every attempt, because the worker is shut down."""
        for attempt in self.running.attempts.values():
            self._stop(attempt, "shutdown")

    def close_launches(self) -> None:
        """Launch nothing more; `take_launched` then reports the rest."""
        self._launcher.close()

    def close_settling(self) -> None:
        """Begin no more ends; `take_settled` then reports the rest."""
        self._settler.close()

    def close(self) -> None:
        """Release what was prepared and what is watched; attempts go on."""
        self._host.executor.close()
        self.running.close()
        self.waker.close()

    def _finish(self, endings: dict[str, Ending]) -> None:
        if not endings:
            return
        for finished in self._port.finish(endings).values():
            if finished.taken_in:
                self.ended += 1
                self.parked += finished.status is Status.PARKED
        self.changed = True

    def _stop(self, attempt: RunningAttempt, why: str) -> None:
        if not attempt.stopping:
            attempt.executor.stop(attempt.handle)
            attempt.stopping = why  # after it: a stop that failed is sent again


#: How many ends are taken in at once where that takes time.
SETTLED_AT_ONCE = 4
#: How much of the end of the error output is looked at.
_TAIL = 4000


class Settler:
    """Takes ends in; what needs git or a long log is done in a thread, and delays no other."""

    def __init__(self, host: Host, waker: Waker) -> None:
        self._host, self._waker = host, waker
        self._threads = WorkThreads(host.threads(SETTLED_AT_ONCE, "settle"))
        self._settled: SimpleQueue[tuple[str, Ending]] = SimpleQueue()
        self._ready: dict[str, Ending] = {}
        self._problem: OSError | None = None

    def begin(self, running: RunningAttempt) -> None:
        """It has ended."""
        running.settling = True
        if running.lease["repo"] is None and running.log.unread() <= TURN_BYTES:
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

    def close(self) -> None:
        """Finish what has begun."""
        self._threads.close()

    def _settle(self, running: RunningAttempt) -> None:
        try:
            ending = ending_of(self._host, running)
        except OSError as error:  # too many open files, no memory: the next turn tries again
            self._problem, running.settling = error, False
            return
        except Exception as error:  # a bug here must not hold the lease for ever
            ending = unreadable(error)
        self._settled.put((running.id, ending))
        self._waker.set()


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
    ending = _judged(running, exit, verdict)
    if ending.happening is Happening.SUCCEEDED:
        ending = _finished(host, running, ending)
    _write_result(host, running, verdict, ending)
    return ending


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
    stopped = exit.stopped if exit.stopped != "grace" else ""
    if stopped and verdict.outcome is not Outcome.SUCCEEDED:
        happening, detail = _stopped(running, stopped, detail)
    report = Report(
        tokens=verdict.tokens if verdict.tokens is not None else running.progress.tokens,
        usd=verdict.usd if verdict.usd is not None else running.progress.usd,
        detail=detail,
        result={"summary": verdict.summary[:2000]} if verdict.summary else None,
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
    return Ending(happening, _report(running, missing or _in_words(exit.launch_error)))


def _in_words(launch_error: str) -> str:
    """Why a program did not start; one that is named without a folder was searched on the path."""
    program = launch_error.removesuffix(": No such file or directory")
    is_searched = program != launch_error and "/" not in program
    return f"{program} is not on the PATH" if is_searched else launch_error


def _stopped(running: RunningAttempt, why: str, detail: str) -> tuple[Happening, str]:
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


def _finished(host: Host, running: RunningAttempt, ending: Ending) -> Ending:
    """After a success: commit what is left, and merge or keep the branch."""
    lease = running.lease
    if lease["repo"] is None:
        return ending
    try:
        problem = workspaces.finish(
            host.home, host.settings, project_of(lease), task_of(lease), lease["workspace"],
            sandboxed=host.settings.is_confined(lease["agent"], lease["project"]),
        )  # fmt: skip
    except OSError as error:
        problem = str(error)
    if not problem:
        return ending
    report = replace(ending.report, detail=problem, retry_after=None, resets_at=None)
    return Ending(Happening.FAILED, report, ending.session, park=True)


def _write_result(host: Host, running: RunningAttempt, verdict: Verdict, ending: Ending) -> None:
    document = {
        "task": running.task,
        "attempt": running.lease["attempt"],
        "ended_at": show_instant(host.clock.now()),
        "happening": str(ending.happening),
        "detail": ending.report.detail,
        "tokens": verdict.tokens._asdict() if verdict.tokens is not None else None,
        "usd": verdict.usd,
        "session": verdict.session,
        "summary": verdict.summary,
        "news": asdict(running.progress),
    }
    try:
        put(running.run / "result.json", json.dumps(document, indent=2, default=str))
    except OSError:
        return  # the store has it all; this file is for people
