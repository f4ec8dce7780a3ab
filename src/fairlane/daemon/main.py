"""The daemon: waits until something happens, leases and launches, takes in what ended."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from fairlane.clock import Waker
from fairlane.daemon.history import History
from fairlane.daemon.notices import Notices
from fairlane.daemon.open_files import OpenFiles
from fairlane.daemon.signals import signals_taken
from fairlane.daemon.source_job import Spawn, in_thread
from fairlane.daemon.sources import Sources
from fairlane.daemon.trouble import Trouble
from fairlane.engine.context import Context
from fairlane.model.errors import FairlaneError
from fairlane.model.event import Event
from fairlane.model.instant import SECOND, Instant
from fairlane.model.plan import Decided
from fairlane.model.record import dataclass
from fairlane.policy.policy import Policy
from fairlane.runtime import direct
from fairlane.runtime.launch import ThreadsOf, host_of
from fairlane.runtime.lock import HomeLock
from fairlane.runtime.supervisor import Supervisor
from fairlane.service.home.upkeep import obstacles

#: How often everything that tells of no change is looked at: the policy file, logs, artifacts.
LOOK_SECONDS = 0.25
#: How long a run waits for its sources before it begins without them.
SOURCES_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What one run is asked to do."""

    once: bool = False  # one cycle, and wait for what it started
    until_idle: bool = False
    max_wait: float | None = None  # seconds to wait for time alone
    limit: int | None = None  # most starts in one cycle


class Daemon:
    """One scheduler of one home folder."""

    def __init__(
        self,
        context: Context,
        what: str = "up",
        say: Callable[[str], None] = lambda message: None,
        tick: Callable[[Daemon], None] = lambda daemon: None,
        threads: ThreadsOf = ThreadPoolExecutor,
        spawn: Spawn = in_thread,
    ) -> None:
        self.context, self.say, self._what = context, say, what
        self._tick, self._clock = lambda: tick(self), context.clock
        self.policy: Policy = context.policy()  # a bad file starts nothing
        host = host_of(context, threads)
        self._port, self.attempts = host.port, Supervisor(host)
        self._notices, self._history = Notices(context, say, threads), History(context, threads)
        self._sources = Sources(context, say, self.attempts.waker, what, spawn)
        self._trouble, self._files = Trouble(say, self._clock), OpenFiles(context, say)
        self._signals, self.stopping = Waker(), ""  # it ends to "leave" the agents, or "stop" them
        self.decided: Decided | None = None
        self._planned_at: Instant = 0
        self._idle_since: float | None = None
        self._was_empty = self._dirty = True  # dirty: something has changed since the plan
        self._stamp = -1  # of the store, as it was last looked at

    def run(self, options: RunOptions | None = None) -> None:
        """Schedule until there is nothing more to do, or until told to stop."""
        for obstacle in obstacles(self.context.home, self.context.settings):
            raise obstacle
        self.context.store.verify()
        lock = HomeLock(self.context.home)
        lock.take(self._what)
        with ExitStack() as cleanup:
            cleanup.callback(lock.release)
            cleanup.callback(self._signals.close)
            cleanup.callback(self.attempts.close)
            cleanup.callback(self._trouble.attempt, self.attempts.take_launched)
            cleanup.callback(self._close_threads)
            cleanup.enter_context(signals_taken(self.stop, self._signals))
            self._begin()
            lock.admit_commands()
            self._loop(options or RunOptions(), lock)
            self._end()
        direct.take_in(self.context)  # what ended since the last look

    def stop(self, how: str = "leave") -> None:
        """End the loop: leave the agents to their runners, or stop them."""
        self.stopping = how if how == "stop" else self.stopping or how

    # The loop

    def _begin(self) -> None:
        self._files.fit(self.policy)
        self._port.present()
        self._notices.begin()
        for line in self.attempts.recover().lines():
            self.say(line)
        self._sources.begin()
        end = self._clock.monotonic() + SOURCES_SECONDS
        while self._what == "run" and self._sources.reading and self._clock.monotonic() < end:
            self._wait(LOOK_SECONDS)
            self._sources.look()

    def _loop(self, options: RunOptions, lock: HomeLock) -> None:
        while not self.stopping:
            self._turn(options)
            if not self._trouble.end_turn():
                self._dirty = True
                self._clock.wait(self._trouble.pause, self._signals)
                continue
            lock.mark_begun()
            if self._done(options):
                return
            self._trouble.attempt(self._sleep)

    def _turn(self, options: RunOptions) -> None:
        """Do whatever is due now, in this order; after an error of the host, nothing more."""
        steps: tuple[Callable[[], object], ...] = (
            self.attempts.take_launched, lambda: self.attempts.renew(self.policy.lease.ttl),
            self.attempts.settle_ended, self._report_progress, self._follow_changes,
            lambda: self._schedule(options), self._sources.tell, self._notices.look, self._tick,
        )  # fmt: skip
        for step in steps:
            if not self._trouble.attempt(step):
                return

    def _report_progress(self) -> None:
        """A probe that has used tokens has proved its pool healthy: the rest may start."""
        if self.attempts.report_progress() and self.decided is not None:
            self._dirty |= "probe" in self.decided.held

    def _follow_changes(self) -> None:
        """A source has news, another process wrote, or the policy file changed."""
        self._dirty |= self._sources.look()
        stamp = self.context.store.stamp()
        if stamp != self._stamp:
            self._dirty = True
            self.attempts.follow_changes()
            self._stamp = stamp  # after it: what failed is done again
        try:
            policy = self.context.policy()
        except FairlaneError as error:
            self._trouble.warn(f"{error.message}; the old policy stays in force")
            return
        if policy is not self.policy:
            self._files.fit(policy)
            self._port.present()
            self.policy, self._dirty = policy, True

    def _schedule(self, options: RunOptions) -> None:
        """Look, plan, commit, launch, once, if there is a reason."""
        due = self._plan_is_due() and not (options.once and self.decided is not None)
        self._dirty = self.attempts.changed = False
        if not due:
            return
        self._planned_at = self.context.now()
        files, most = self._files, options.limit
        most = most if files.enough else files.most(most, self.attempts.count)
        leased = self._port.lease(limit=most)  # durable before anything starts
        self.decided = leased.decided
        self._dirty = bool(self.decided.plan.reclaims)  # they wait from now on: plan again
        self.attempts.launch(leased.documents, self.policy.capacity.spawn_delay / SECOND)
        self._note_empty(leased.decided)
        self._history.look(self.policy, lambda: bool(self.stopping))

    def _plan_is_due(self) -> bool:
        """Something changed, or a time has come; files that tasks wait for tell of nothing."""
        if self._dirty or self.attempts.changed or self.decided is None:
            return True
        waited = (now := self.context.now()) - self._planned_at
        if self.decided.plan.wake_at is not None and now >= self.decided.plan.wake_at:
            return True
        return waited >= self.policy.cycle.interval and "artifact" in self.decided.held

    def _note_empty(self, decided: Decided) -> None:
        """Log that the last of the work is done, once until there is work again."""
        empty = not (decided.plan.picks or decided.held or decided.plan.room.in_flight)
        if empty and not self._was_empty:
            with self.context.store.write() as tx:
                tx.log([Event(0, self.context.now(), "queue_empty")])
        self._was_empty = empty

    def _done(self, options: RunOptions) -> bool:
        if options.once:
            return not self.attempts.busy
        busy = self.attempts.busy or self.attempts.changed or self._dirty
        if not options.until_idle or busy or self._sources.unfinished:
            self._idle_since = None
            return False
        if self.decided is None or self.decided.plan.wake_at is None or self.decided.is_idle:
            return True
        now = self._clock.monotonic()
        self._idle_since = now if self._idle_since is None else self._idle_since
        return options.max_wait is not None and now - self._idle_since >= options.max_wait

    def _sleep(self) -> None:
        """Until an attempt ends, a thread or a signal has something, another writes, or time."""
        if self._dirty or self.attempts.changed:
            return
        dues = self._sources.due_in(), self.attempts.due_in()
        left = min(LOOK_SECONDS, self.policy.cycle.interval / SECOND, *dues)
        if self.decided is not None and self.decided.plan.wake_at is not None:
            left = min(left, (self.decided.plan.wake_at - self.context.now()) / SECOND)
        self._wait(max(0.0, left))

    def _wait(self, seconds: float) -> None:
        waitables = [self._signals, *self.attempts.waitables(), *self._sources.waitables()]
        self.context.store.wait_for_change(self._stamp, seconds, *waitables, clock=self._clock)
        self._signals.clear()
        self.attempts.waker.clear()

    # The end

    def _end(self) -> None:
        """Agents go on under their runners, or are stopped and given back."""
        self.attempts.close_launches()
        self._trouble.attempt(self.attempts.take_launched)
        if self.stopping == "stop":
            self.attempts.stop_all()
            # After an error the next start takes in the rest.
            while self.attempts.running.attempts and self._trouble.end_turn():
                self._clock.wait(0.1, *self.attempts.waitables())
                self.attempts.waker.clear()
                self._trouble.attempt(self.attempts.settle_ended)
        self.attempts.close_settling()
        self._trouble.attempt(self.attempts.take_settled)

    def _close_threads(self) -> None:
        self.attempts.close_launches()
        self.attempts.close_settling()
        self._sources.close(hurry=bool(self.stopping))
        self._notices.close()
        self._history.close()
