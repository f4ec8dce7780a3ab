"""Sources: work sources kept in step; read and told in threads, so that no cycle waits for them."""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from threading import Event as Signal
from threading import Thread
from time import monotonic
from typing import Any

from fairlane.daemon.watch import Watch
from fairlane.intake import whole
from fairlane.intake.sources.base import Found
from fairlane.model.errors import FairlaneError, TryLater
from fairlane.model.instant import SECOND
from fairlane.service.desk import Desk
from fairlane.service.sourcing import syncing, telling
from fairlane.service.sourcing.syncing import Configured

#: A file is read when it has been left alone for so long, or written to for so long.
QUIET_SECONDS, RESTLESS_SECONDS = 0.1, 1.0
#: A source that takes its time is read less often: the rest is at least so many times as long.
REST_TIMES = 10
#: What was read while the source was written to is read again, but not for ever.
DISCARDS_MAX = 3
#: How much longer than one of its programs a source may take; telling many takes many programs.
GRACE_SECONDS, TELL_TIMES = 5.0, 20
#: How long the last words to sources may take: when told to stop, and when all is done.
CLOSE_SECONDS, FAREWELL_SECONDS = 3.0, 30.0
_READ, _TELL = "read", "tell"


class Errand:
    """Something to do with one source, in a thread that nobody has to wait for."""

    def __init__(self, what: str, work: Callable[[Signal], Any], wake: int) -> None:
        self.what, self._work, self._wake = what, work, wake
        self.result: Any = None
        self.error: FairlaneError | None = None
        self.began, self.seconds = monotonic(), 0.0
        self.done = False
        self._halt = Signal()
        self._thread = Thread(target=self._do, name=what, daemon=True)
        self._thread.start()

    def _do(self) -> None:
        try:
            self.result = self._work(self._halt)
        except Exception as error:  # a source is somebody else's code too
            self.error = syncing.explained(error)
        self.seconds = monotonic() - self.began
        self.done = True
        with suppress(OSError):
            os.write(self._wake, b"!")

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._halt.is_set()

    def give_up(self) -> None:
        """Want no answer: end the programs of its thread, with all that they started."""
        self._halt.set()
        thread = self._thread.native_id
        with suppress(OSError):
            text = Path(f"/proc/self/task/{thread}/children").read_text(encoding="ascii")
            for pid in map(int, text.split()):
                with suppress(ProcessLookupError):
                    group = os.getpgid(pid)
                    ours = group == os.getpgid(0)
                    os.kill(pid, signal.SIGKILL) if ours else os.killpg(group, signal.SIGKILL)


@dataclass(slots=True)
class Feed:
    """One configured source, and what is due for it."""

    source: Configured
    watched: bool = False  # the kernel tells of changes
    due: float = inf  # when it is read next
    touched_at: float | None = None  # since when it is being written to
    rests_until: float = 0.0  # it is not read again before
    discarded: int = 0
    settled: Found | None = None  # what it had when all of it was followed
    errand: Errand | None = None
    news: set[str] | None = field(default_factory=set)  # tasks to tell of; None: look at all
    tell_due: float = 0.0
    retry_at: float = inf  # when what could not be told is tried again
    complaints: dict[str, str] = field(default_factory=dict)  # errand -> what was said of it
    clashes: list[str] = field(default_factory=list)  # what was said of conflicts

    @property
    def every(self) -> float:
        """Seconds between two looks where nobody tells of changes."""
        return max(QUIET_SECONDS, self.source.rule.every / SECOND)

    @property
    def reading(self) -> bool:
        """Whether it is being read, and an answer is waited for."""
        errand = self.errand
        return errand is not None and errand.what == _READ and not errand.given_up

    @property
    def must_tell(self) -> bool:
        """Whether there may be something to tell."""
        return self.source.rule.write_back and (self.news is None or bool(self.news))


class Sources:
    """The configured sources of one daemon.

    `up` keeps them in step as long as it lives, `run` asks them once; anybody else only tells.
    """

    def __init__(
        self,
        desk: Desk,
        say: Callable[[str], None],
        selector: selectors.BaseSelector,
        what: str = "up",
    ) -> None:
        self._desk, self._say, self._selector = desk, say, selector
        self._keep, self._ask = what == "up", what in ("up", "run")
        self._feeds = [Feed(each) for each in syncing.configured(desk)]
        self._watch: Watch | None = None
        self._woken, self._wake = -1, -1
        self._after = 0  # the last event that was looked at

    @property
    def reading(self) -> bool:
        """Whether a first answer is still waited for."""
        return any(feed.due < inf or feed.reading for feed in self._feeds)

    def begin(self) -> None:
        """Ask all of them; their answers come by `look`."""
        if not self._feeds:
            return
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._woken, selectors.EVENT_READ, self._drain)
        with self._desk.store.read() as reading:
            newest = reading.events(0, 1, last=True)
        self._after = newest[-1].number if newest else 0
        if self._keep:
            self._watch = Watch()
            if self._watch.descriptor >= 0:
                self._selector.register(self._watch.descriptor, selectors.EVENT_READ, self._noticed)
        for feed in self._feeds:
            self._watch_feed(feed)
            feed.due, feed.news = monotonic() if self._ask else inf, None
        self._start_due()

    def look(self) -> bool:
        """Take in what was read, and start what is due; whether any task may have changed."""
        changed = False
        for feed in self._feeds:
            if feed.errand is not None and feed.errand.done:
                changed |= self._take(feed, feed.errand)
            elif feed.errand is not None:
                self._give_up_late(feed, feed.errand)
        self._start_due()
        return changed

    def tell(self) -> None:
        """Something may have been committed: what concerns a source is told to it."""
        writers = [feed for feed in self._feeds if feed.source.rule.write_back]
        if not writers:
            return
        with self._desk.store.read() as reading:
            tasks, self._after = telling.changed_since(reading, self._after)
        for feed in writers if tasks else ():
            if feed.news is not None:
                feed.news |= tasks
        self._start_due()

    def due_in(self) -> float:
        """Seconds until something is due."""
        times = [inf]
        for feed in self._feeds:
            if feed.errand is None:
                times += [feed.due, feed.retry_at, feed.tell_due if feed.must_tell else inf]
        return max(0.0, min(times) - monotonic())

    def close(self, hurry: bool = True) -> None:
        """Tell what is still to be told, for a while; then end whatever is under way."""
        if self._wake < 0:  # it has not begun
            return
        end = monotonic() + (CLOSE_SECONDS if hurry else FAREWELL_SECONDS)
        for feed in self._feeds:
            feed.due = inf
            if feed.errand is not None and feed.reading:
                feed.errand.give_up()
        with suppress(FairlaneError):
            self.tell()
            while self._telling() and monotonic() < end:
                self._wait()
                self.look()
        for feed in self._feeds:
            if feed.errand is not None:
                feed.errand.give_up()
        if self._watch is not None:
            self._watch.close()
        self._feeds = []

    def _telling(self) -> bool:
        """Whether something is being told, or could be now."""
        now = monotonic()
        return any(
            feed.errand is not None or (feed.must_tell and feed.tell_due <= now)
            for feed in self._feeds
            if feed.source.rule.write_back
        )

    def _wait(self) -> None:
        with selectors.DefaultSelector() as woken:
            woken.register(self._woken, selectors.EVENT_READ)
            woken.select(0.05)
        self._drain()

    # What is noticed

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._woken, 4096)

    def _noticed(self) -> None:
        """Files have changed: they are read when they have been left alone for a moment."""
        assert self._watch is not None
        changed, now = self._watch.changed(whole.is_ours), monotonic()
        for feed in self._feeds:
            if feed.source.where.path in changed:
                feed.touched_at = now if feed.touched_at is None else feed.touched_at
                quiet = min(now + QUIET_SECONDS, feed.touched_at + RESTLESS_SECONDS)
                feed.due = max(quiet, feed.rests_until)

    def _watch_feed(self, feed: Feed) -> None:
        path = feed.source.where.path
        with suppress(FairlaneError):  # there is no such source: reading it says so
            if self._watch is not None and path and syncing.can_be_watched(feed.source):
                feed.watched = self._watch.add(path)

    # Errands

    def _start_due(self) -> None:
        now = monotonic()
        for feed in self._feeds:
            if feed.errand is not None:
                continue
            if feed.retry_at <= now:
                feed.news, feed.retry_at = None, inf
            if feed.due <= now:
                feed.due, feed.touched_at = inf, None
                feed.errand = Errand(_READ, partial(_read, feed.source), self._wake)
            elif feed.must_tell and feed.tell_due <= now:
                tasks, feed.news = feed.news, set()
                work = partial(_tell, self._desk, feed.source, tasks)
                feed.errand = Errand(_TELL, work, self._wake)

    def _give_up_late(self, feed: Feed, errand: Errand) -> None:
        """A source that does not come back is not waited for, nor asked again before it does."""
        limit = feed.source.where.seconds * (1 if errand.what == _READ else TELL_TIMES)
        limit += GRACE_SECONDS
        if not errand.given_up and monotonic() - errand.began >= limit:
            errand.give_up()
            self._failed(feed, TryLater(f"no answer within {limit:g} seconds", "", "too_slow"))

    def _take(self, feed: Feed, errand: Errand) -> bool:
        """What an errand brought; whether any task may have changed."""
        feed.errand = None
        if errand.given_up:
            feed.news = None
            return False
        if errand.what == _TELL:
            self._take_told(feed, errand)
            return False
        return self._take_read(feed, errand)

    def _take_read(self, feed: Feed, errand: Errand) -> bool:
        feed.rests_until = monotonic() + min(errand.seconds * REST_TIMES, feed.every)
        if feed.due < inf and feed.discarded < DISCARDS_MAX:  # it was written to meanwhile
            feed.discarded += 1
            return False
        feed.discarded = 0
        if self._keep and not feed.watched:
            self._watch_feed(feed)  # from now on: what changed since it was read is read again
            wait = QUIET_SECONDS if feed.watched else feed.every
            feed.due = min(feed.due, monotonic() + wait)
        if feed.settled is not None and errand.result == feed.settled:
            return False  # nothing new: there is nothing to follow
        feed.settled = None
        try:
            if errand.error is not None:
                raise errand.error
            row = syncing.follow(self._desk, feed.source, errand.result)
        except Exception as error:  # what a source says must not end the daemon
            self._failed(feed, syncing.explained(error))
            return False
        feed.settled = None if row["conflicts"] or row["skipped"] else errand.result
        self._tell_conflicts(feed, row["conflicts"])
        if feed.complaints.pop(_READ, None):
            self._say(f"source {feed.source.name} works again")
        feed.news = None
        return True

    def _take_told(self, feed: Feed, errand: Errand) -> None:
        """What could not be told is told later: with the next change, or after a while."""
        later = monotonic() + feed.every
        if errand.error is not None:
            feed.news, feed.tell_due = None, later
            self._complain(feed, _TELL, f"cannot be told: {errand.error.message}")
            return
        feed.tell_due = 0.0
        failed = errand.result["failed"]
        if failed:  # the others are told at once all the same
            feed.retry_at = min(feed.retry_at, later)
            names = ", ".join(each["id"] for each in failed)
            text = f"cannot be told of {names}: {failed[0]['message']}"
            self._complain(feed, _TELL, text)

    def _tell_conflicts(self, feed: Feed, conflicts: list[dict[str, Any]]) -> None:
        texts = [syncing.clash(feed.source, each) for each in conflicts]
        for text in texts:
            if text not in feed.clashes:
                self._say(f"warning: {text}")
        feed.clashes = texts

    def _failed(self, feed: Feed, error: FairlaneError) -> None:
        feed.settled = None
        if self._keep:
            feed.due = min(feed.due, monotonic() + feed.every)
        self._complain(feed, _READ, f"cannot be asked: {error.message}")
        with suppress(TryLater):  # a busy store
            syncing.failed(self._desk, feed.source, error)

    def _complain(self, feed: Feed, errand: str, text: str) -> None:
        if text != feed.complaints.get(errand):
            feed.complaints[errand] = text
            self._say(f"warning: source {feed.source.name} {text}")


def _read(source: Configured, halt: Signal) -> Found:
    return syncing.ask(source)


def _tell(desk: Desk, source: Configured, tasks: set[str] | None, halt: Signal) -> dict[str, Any]:
    return telling.tell(desk, source.rule.type, source.where, tasks, halt.is_set)
