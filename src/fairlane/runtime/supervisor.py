"""Supervisor: the attempts of one worker, from their launch to their end. It knows no store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlane.clock import Waitable, Waker
from fairlane.engine.end_attempt import Ending
from fairlane.executors.base import Handle
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.instant import Instant, Micros
from fairlane.model.task import Status
from fairlane.runtime import recover
from fairlane.runtime.launch import Host, Launcher, is_agent
from fairlane.runtime.settle import Settler
from fairlane.runtime.watch import RunningAttempts

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
        self._lost: dict[str, None] = {}  # leases that ended while their attempt was launched
        self._renewed_at: Instant = 0
        self._progress_at = float("-inf")
        self._just_launched = False  # whether attempts were added whose stop nobody looked for
        self._just_ended = False  # whether ends were reported that may have used a budget up
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
                if is_agent(lease, outcome):
                    self._started[lease["lease"]] = outcome.text
                self._unwatched[lease["lease"]] = lease, outcome
            else:
                self._failed[lease["lease"]] = outcome
        if self._started:
            self._lost |= dict.fromkeys(self._port.start(self._started).lost)
            self._started.clear()
        self._finish(self._failed)
        self._failed.clear()
        for name, (lease, handle) in tuple(self._unwatched.items()):
            if is_agent(lease, handle):
                self.running.add(lease, handle)
            else:
                self.running.begin_setup(lease, handle)
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
        for lease, process in self._settler.checks():
            if self.running.goes_on(lease, process):
                self._stop_lost(self._port.start({lease: process.text}).lost)
        self._finish(endings)
        self.running.remove(endings)
        self._just_ended |= bool(endings)
        endings.clear()
        if self._just_ended:
            self.stop_wanted()
            self._just_ended = False

    def report_progress(self) -> bool:
        """Report usage and notes as they are printed; stop what a budget ends. True: tokens."""
        now = self._host.clock.monotonic()
        if not self.running.attempts or now - self._progress_at < PROGRESS_SECONDS:
            return False
        self._progress_at = now
        progress = self.running.progress()
        if progress:
            self._port.progress(progress)
            self.running.reported(progress)
            self.stop_wanted()
        return any(news.tokens for news in progress.values())

    def renew(self, ttl: Micros) -> None:
        """Every third of the lease time: this worker lives, and so do its attempts."""
        now = self._host.clock.now()
        if 0 <= now - self._renewed_at < ttl // 3:
            return
        self._port.present()
        waiting = self._launcher.waiting
        leases = dict.fromkeys([*self.running.attempts, *self._unwatched, *waiting])
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
                self.running.attempts[lease].stop(why)

    def _stop_lost(self, leases: Iterable[str]) -> None:
        for lease in leases:
            if lease in self.running.attempts:
                self.running.attempts[lease].stop("lost")

    def stop_all(self) -> None:
        """Stop every attempt, because the worker is shut down."""
        for attempt in self.running.attempts.values():
            attempt.stop("shutdown")

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
