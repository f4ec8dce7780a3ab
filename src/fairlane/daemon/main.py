"""The daemon: sleeps until something happens, runs a cycle, takes in what ended. No rules here."""

from __future__ import annotations

import os
import select
import selectors
import signal
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from types import FrameType
from typing import Any

from fairlane.daemon import collect, recover
from fairlane.daemon.crew import Crew, Member
from fairlane.daemon.cycle import Cycle
from fairlane.daemon.launch import Launcher, LaunchFailed
from fairlane.daemon.lock import HomeLock
from fairlane.daemon.notices import Notices
from fairlane.daemon.settle import Settler, book
from fairlane.daemon.sources import Sources
from fairlane.daemon.trouble import Trouble
from fairlane.daemon.watch import watch_writes
from fairlane.executors import executor_named
from fairlane.executors.process import reap
from fairlane.model.errors import FairlaneError
from fairlane.model.event import Event
from fairlane.model.instant import SECOND, Instant
from fairlane.model.plan import Plan
from fairlane.policy.policy import Policy
from fairlane.service import holding
from fairlane.service.compaction import compact_if_due
from fairlane.service.desk import Desk
from fairlane.service.holding import Ending
from fairlane.store.base import Attempt

#: How soon a command of another process is noticed.
NOTICE_SECONDS = 0.015
#: How long a write that was noticed is waited for.
RESTLESS_SECONDS = 0.1
#: How often everything else is looked at: the policy file, logs, artifacts.
LOOK_SECONDS = 0.25
#: How often the output of running attempts is read for tokens.
PROGRESS_SECONDS = 1.0
#: How long a run waits for its sources before it begins without them.
SOURCES_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What one run is asked to do."""

    once: bool = False  # one cycle, and wait for what it started
    until_idle: bool = False
    max_wait: float | None = None  # seconds to wait for time alone
    limit: int | None = None  # most starts in one cycle


class Daemon:
    """One scheduler of one home folder."""

    def __init__(
        self,
        desk: Desk,
        what: str = "up",
        say: Callable[[str], None] = lambda message: None,
        tick: Callable[[Daemon], None] = lambda daemon: None,
    ) -> None:
        self.desk, self.say = desk, say
        self._tick = tick
        self._what = what
        self._selector = selectors.DefaultSelector()
        self._executor = executor_named(desk.settings.worker.executor, warm=True)
        self.cycle = Cycle(desk, Launcher(desk, self._executor))
        self.crew = Crew(self._selector)
        self._settler = Settler(desk)
        self._notices = Notices(desk, say)
        self._sources = Sources(desk, say, self._selector, what)
        self._was_empty = True
        self.policy: Policy = desk.policy()  # a bad file starts nothing
        self.plan: Plan | None = None
        self.stopping = ""  # why it ends: "leave" the agents, or "stop" them
        self._trouble = Trouble(say)
        self._failed: dict[str, Ending] = {}  # launches that are not booked yet
        self._started: list[Attempt] = []
        self._told_of_writes = False
        self._restless_until = 0.0
        self._gone: set[str] = set()  # leases whose process has just ended
        self._stamp = -1
        self._dirty = True
        self._renewed_at: Instant = 0
        self._progress_at = 0.0
        self._cycle_at: Instant = 0
        self._idle_since: float | None = None
        self.parked = 0
        self.ended = 0

    def run(self, wish: Wish | None = None) -> None:
        """Schedule until there is nothing more to do, or until told to stop."""
        self.desk.store.verify()  # who holds the lock is up
        lock = HomeLock(self.desk.home)
        lock.take(self._what)
        before = self._take_signals()
        try:
            self._begin()
            lock.begun()
            self._loop(wish or Wish())
            self._end()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(-1)
            self.cycle.close()
            self._settler.close()
            self._sources.close(hurry=bool(self.stopping))
            self._notices.close()
            self._executor.close()
            try:
                self._trouble.attempt(self._take_launched)
            finally:
                lock.release()
        collect.take_in(self.desk, self.policy)  # what ended since the last look

    def stop(self, how: str = "leave") -> None:
        """End the loop: leave the agents to their runners, or stop them."""
        self.stopping = self.stopping or how
        if how == "stop":
            self.stopping = how

    # The loop

    def _begin(self) -> None:
        holding.present(self.desk, self.policy)
        log = watch_writes(self.desk.store.written) if self.desk.store.written else None
        self._told_of_writes = log is not None
        if log is not None:
            self._selector.register(log, selectors.EVENT_READ, None)
        self._executor.warm_up()
        found = recover.recover(self.desk, self.policy, self._executor, self.cycle, self.crew)
        for word, tasks in (("adopted", found.adopted), ("ended meanwhile", found.ended)):
            if tasks:
                self.say(f"{word}: {', '.join(tasks)}")
        if found.lost:
            self.say(f"lost: {', '.join(found.lost)}")
        self._sources.begin()
        self._wait_for_sources()

    def _wait_for_sources(self) -> None:
        """A run begins with what its sources have, unless they take too long."""
        end = monotonic() + SOURCES_SECONDS
        while self._what == "run" and self._sources.reading and monotonic() < end:
            for key, _ in self._selector.select(LOOK_SECONDS):
                self._noticed(key)
            self._sources.look()

    def _loop(self, wish: Wish) -> None:
        while not self.stopping:
            self._once(wish)
            if not self._trouble.end_turn():  # busy is not the same as nothing to do: soon again
                self._dirty = True
                self._rest(self._trouble.pause)
            elif self._done(wish):
                return
            else:
                self._trouble.attempt(self._sleep)

    def _once(self, wish: Wish) -> None:
        """Whatever is due now, in this order."""
        steps = (
            self._take_launched, self._renew, self._settle_ended, self._watch_progress,
            self._watch_changes, lambda: self._plan(wish), self._sources.tell,
            lambda: self._tick(self),
        )  # fmt: skip
        for step in steps:
            if not self._trouble.attempt(step):
                return

    def _rest(self, seconds: float) -> None:
        """Something went wrong: nothing is done for a while, unless a signal comes."""
        if select.select([self._woken], [], [], 0.0 if self.stopping else seconds)[0]:
            os.read(self._woken, 4096)

    def _plan(self, wish: Wish) -> None:
        if (wish.once and self.plan is not None) or not self._plan_is_due():
            return
        self._dirty = False
        self._cycle_at = self.desk.now()
        self.plan = self.cycle.once(self.policy, wish.limit).plan
        self._tell_empty(self.plan)
        self._notices.look()
        compact_if_due(self.desk)

    def _tell_empty(self, plan: Plan) -> None:
        """The last of the work is done: said once, until there is work again."""
        empty = not plan.picks and not plan.holds and not plan.room.in_flight
        if empty and not self._was_empty:
            with self.desk.store.write() as tx:
                tx.log([Event(0, self.desk.now(), "queue_empty")])
        self._was_empty = empty

    def _plan_is_due(self) -> bool:
        """Something changed, or a time has come; the interval alone is no reason but for files."""
        now = self.desk.now()
        if self._dirty or self.plan is None:
            return True
        if self.plan.wake_at is not None and now >= self.plan.wake_at:
            return True
        waits_for_files = any(held.hold.code == "artifact" for held in self.plan.holds)
        return waits_for_files and now - self._cycle_at >= self.policy.cycle.interval

    def _watch_changes(self) -> None:
        """A source has news, another process wrote, or the policy file changed."""
        if self._sources.look():
            self._dirty = True
        stamp = self.desk.store.stamp()
        if stamp != self._stamp:
            self._stamp = stamp
            self._dirty = True
            recover.adopt_new(self.desk, self.policy, self._executor, self.cycle, self.crew)
            self._stop_wanted()
        try:
            policy = self.desk.policy()
        except FairlaneError as error:
            self._trouble.warn(f"{error.message}; the old policy stays in force")
            return
        if policy is not self.policy:
            self.policy = policy
            holding.present(self.desk, policy)
            self._dirty = True

    def _sleep(self) -> None:
        """Until a process ends, a signal or a launch comes, somebody writes, or time passes."""
        end = monotonic() + min(LOOK_SECONDS, self.policy.cycle.interval / SECOND)
        while True:
            busy = self._dirty or not self.cycle.launched.empty()
            found = self._selector.select(0.0 if busy else self._nap(end))
            for key, _ in found:
                self._noticed(key)
            if found or busy or self.stopping or self._time_has_come(end):
                return

    def _nap(self, end: float) -> float:
        """Short naps while something runs, or where the kernel does not tell of writes."""
        if not self._told_of_writes or self.crew.members or self.cycle.launching:
            return NOTICE_SECONDS
        if monotonic() < self._restless_until:  # a write has begun; its commit follows
            return NOTICE_SECONDS / 5
        wake_at = self.plan.wake_at if self.plan else None
        left = min(end - monotonic(), self._sources.due_in())
        if wake_at is not None:
            left = min(left, (wake_at - self.desk.now()) / SECOND)
        return max(0.0, left)

    def _time_has_come(self, end: float) -> bool:
        if monotonic() >= end or self.desk.store.stamp() != self._stamp:
            return True
        if not self._sources.due_in():
            return True
        wake_at = self.plan.wake_at if self.plan else None
        return wake_at is not None and self.desk.now() >= wake_at

    def _noticed(self, key: selectors.SelectorKey) -> None:
        if callable(key.data):
            key.data()
        elif key.data is None:
            os.read(key.fd, 4096)
            self._restless_until = monotonic() + RESTLESS_SECONDS
        else:
            self._gone.add(key.data)

    def _done(self, wish: Wish) -> bool:
        busy = self.crew.members or self.cycle.launching or self._dirty or self._sources.reading
        if wish.once:
            return not busy or not (self.crew.members or self.cycle.launching)
        if not wish.until_idle or busy:
            self._idle_since = None
            return False
        if self.plan is None or self.plan.wake_at is None or self.plan.is_idle:
            return True
        self._idle_since = self._idle_since or monotonic()
        return wish.max_wait is not None and monotonic() - self._idle_since >= wish.max_wait

    # What is due

    def _take_launched(self) -> None:
        """What became of launches: members to watch, or failures to book."""
        while not self.cycle.launched.empty():
            _, attempt, found = self.cycle.launched.get()
            self.cycle.launching -= 1
            if isinstance(found, LaunchFailed):
                self._failed[attempt.lease] = found.ending
                continue
            self.crew.add(found)
            self._started.append(attempt)
        if self._started:
            holding.started(self.desk, self.policy, self._started)
            self._started.clear()
            self._dirty = True
        self._finish(self._failed)
        self._failed.clear()

    def _settle_ended(self) -> None:
        """Processes that are gone: their ends are taken in, all that are there at once."""
        leases = self._gone.union(self.crew.unwatched())
        gone = [self.crew.members[lease] for lease in leases if lease in self.crew.members]
        self._gone.clear()
        if gone:
            reap()
            with self.desk.store.read() as reading:
                projects = reading.projects()
            for member in gone:
                self.crew.unwatch(member.lease)
                self._settler.begin(member, projects[member.task.project], self.desk.now())
        self._take_settled()

    def _take_settled(self) -> None:
        endings = self._settler.ready()
        self._finish(endings)
        for lease in endings:
            self.crew.remove(lease)
        endings.clear()

    def _finish(self, endings: dict[str, Ending]) -> None:
        if not endings:
            return
        tasks = book(self.desk, self.policy, endings)
        self.ended += len(tasks)
        self.parked += sum(task.status == "parked" for task in tasks.values())
        self._dirty = True

    def _watch_progress(self) -> None:
        if self.crew.members and monotonic() - self._progress_at >= PROGRESS_SECONDS:
            self._progress_at = monotonic()
            news = self.crew.progress()
            if news:
                holding.progress(self.desk, self.policy, news)
                self.crew.heard(news)
                self._stop_wanted()

    def _renew(self) -> None:
        """Every third of the lease time: this worker lives, and so do its attempts."""
        now = self.desk.now()
        if 0 <= now - self._renewed_at < self.policy.lease.ttl // 3:
            return
        self._renewed_at = now
        holding.present(self.desk, self.policy)
        if self.crew.members:
            for lease in holding.renew(self.desk, self.policy, self.crew.members):
                self._stop_member(self.crew.members[lease], "lost")

    def _stop_wanted(self) -> None:
        if self.crew.members:
            for lease, why in holding.stops_wanted(self.desk, self.crew.members).items():
                self._stop_member(self.crew.members[lease], why)

    def _stop_member(self, member: Member, why: str) -> None:
        if not member.stopping:
            member.stopping = why
            self._executor.stop(member.handle)

    # The end

    def _end(self) -> None:
        """Agents go on under their runners, or are stopped and given back."""
        self.cycle.close()
        self._trouble.attempt(self._take_launched)
        if self.stopping == "stop":
            for member in self.crew.members.values():
                self._stop_member(member, "shutdown")
            while (
                self.crew.members and self._trouble.end_turn()
            ):  # the next start takes in the rest
                for key, _ in self._selector.select(0.1):
                    self._noticed(key)
                self._trouble.attempt(self._settle_ended)
        self._settler.close()
        self._trouble.attempt(self._take_settled)

    def _take_signals(self) -> dict[int, Any]:
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

        def leave(number: int, frame: FrameType | None) -> None:
            self.stop("stop" if number == signal.SIGUSR1 else "leave")

        numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` means: stay
            numbers.append(signal.SIGHUP)
        return {number: signal.signal(number, leave) for number in numbers}


__all__ = ["SECOND", "Daemon", "Wish"]
