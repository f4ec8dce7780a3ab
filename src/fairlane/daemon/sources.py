"""Sources: work sources kept in step; read and told in threads, so that no cycle waits for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf

from fairlane.clock import Waitable, Waker
from fairlane.daemon.source_job import SourceJob, Spawn, Work, in_thread
from fairlane.engine.context import Context
from fairlane.file_watch import TreeWatch
from fairlane.intake import atomic_write
from fairlane.intake.sources.base import Found
from fairlane.model.documents.sources import ReasonDocument, WrittenDocument
from fairlane.model.errors import FairlaneError, TryLater
from fairlane.model.instant import SECOND
from fairlane.model.record import dataclass, field
from fairlane.service.sync import syncing, write_back
from fairlane.service.sync.syncing import Configured

#: A file is read when it has been left alone for so long, or written to for so long.
QUIET_SECONDS, RESTLESS_SECONDS = 0.1, 1.0
#: A slow source is read, and followed again as there is room, less often: it rests at least this
#: many times as long as it took.
REST_TIMES = 10
#: What was read while the source was written to is read again, but not for ever.
DISCARDS_MAX = 3
#: How much longer than one of its programs a source may take; telling many takes many programs.
GRACE_SECONDS, TELL_TIMES = 5.0, 20
#: How long the last words to sources may take: when told to stop, and when all is done.
CLOSE_SECONDS, FAREWELL_SECONDS = 3.0, 30.0
_READ, _TELL = "read", "tell"
_NO_ROOM = syncing.Room(0, 0)


@dataclass(slots=True)
class SourceState:
    """One configured source, and what is due for it."""

    source: Configured
    watched: bool = False  # the kernel tells of changes
    due: float = inf  # when it is read next
    touched_at: float | None = None  # since when it is being written to
    rests_until: float = 0.0  # it is not read again before
    discarded: int = 0
    settled: Found | None = None  # what it had when all of it was followed
    deferred: Found | None = None  # what it had when the queue had no room for all of it
    room: syncing.Room | None = None  # that was left then
    follow_at: float = 0.0  # what is deferred does not enter before
    followed: int = 0  # its place among all follows: who waits longest for room is next
    job: SourceJob | None = None
    news: set[str] | None = field(default_factory=set)  # tasks to tell of; None: look at all
    tell_due: float = 0.0
    retry_at: float = inf  # when what could not be told is tried again
    complaints: dict[str, str] = field(default_factory=dict)  # job -> what was said of it
    clashes: list[str] = field(default_factory=list)  # what was said of conflicts

    @property
    def every(self) -> float:
        """Seconds between two looks where nobody tells of changes."""
        return max(QUIET_SECONDS, self.source.rule.every / SECOND)

    @property
    def reading(self) -> bool:
        """Whether it is being read, and an answer is waited for."""
        job = self.job
        return job is not None and job.what == _READ and not job.given_up

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
        context: Context,
        say: Callable[[str], None],
        waker: Waker,
        what: str = "up",
        spawn: Spawn = in_thread,
    ) -> None:
        self._context, self._say, self._waker, self._spawn = context, say, waker, spawn
        self._clock = context.clock
        self._keep, self._ask = what == "up", what in ("up", "run")
        self._states = [SourceState(source) for source in syncing.configured(context)]
        self._watch: TreeWatch | None = None
        self._begun = False
        self._after = 0  # the last event that was looked at

    @property
    def reading(self) -> bool:
        """Whether a first answer is still waited for."""
        return any(state.due < inf or state.reading for state in self._states)

    @property
    def unfinished(self) -> bool:
        """Whether an answer is waited for, or something that was deferred can enter."""
        return self.reading or any(map(self._has_room, self._states))

    def begin(self) -> None:
        """Ask all of them; their answers come by `look`."""
        if not self._states:
            return
        self._begun = True
        with self._context.store.read() as reading:
            newest = reading.events(0, 1, last=True)
        self._after = newest[-1].number if newest else 0
        if self._keep:
            self._watch = TreeWatch()
        for state in self._states:
            self._watch_state(state)
            state.due, state.news = self._clock.monotonic() if self._ask else inf, None
        self._start_due()

    def look(self) -> bool:
        """Take in what was read, and start what is due; whether any task may have changed."""
        changed = False
        self._notice_files()
        for state in self._states:
            if state.job is not None and state.job.done:
                changed |= self._take(state, state.job)
            elif state.job is not None:
                self._give_up_late(state, state.job)
        changed |= self._bring_deferred()
        self._start_due()
        return changed

    def tell(self) -> None:
        """Write back to the sources what was committed about their tasks."""
        writers = [state for state in self._states if state.source.rule.write_back]
        if not writers:
            return
        with self._context.store.read() as reading:
            tasks, self._after = write_back.changed_since(reading, self._after)
        for state in writers if tasks else ():
            if state.news is not None:
                state.news |= tasks
        self._start_due()

    def waitables(self) -> list[Waitable]:
        """What becomes ready when files of sources change."""
        return [self._watch] if self._watch is not None and self._watch.fileno() >= 0 else []

    def due_in(self) -> float:
        """Seconds until something is due."""
        times = [inf]
        for state in self._states:
            if state.job is None:
                times += [state.due, state.retry_at, state.tell_due if state.must_tell else inf]
        return max(0.0, min(times) - self._clock.monotonic())

    def close(self, hurry: bool = True) -> None:
        """Tell what is still to be told, for a while; then end whatever is under way."""
        if not self._begun:
            return
        end = self._clock.monotonic() + (CLOSE_SECONDS if hurry else FAREWELL_SECONDS)
        for state in self._states:
            state.due = inf
            if state.job is not None and state.reading:
                state.job.give_up()
        with suppress(FairlaneError):
            self.tell()
            while self._telling() and self._clock.monotonic() < end:
                self._clock.wait(0.05, self._waker)
                self._waker.clear()
                self.look()
        for state in self._states:
            if state.job is not None:
                state.job.give_up()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._states = []

    def _telling(self) -> bool:
        """Whether something is being told, or could be now."""
        now = self._clock.monotonic()
        return any(
            state.job is not None or (state.must_tell and state.tell_due <= now)
            for state in self._states
            if state.source.rule.write_back
        )

    # What is noticed

    def _notice_files(self) -> None:
        """Files that have changed are read when they have been left alone for a moment."""
        if not self.waitables():
            return
        assert self._watch is not None
        changed, now = self._watch.changed(atomic_write.is_ours), self._clock.monotonic()
        for state in self._states:
            if state.source.where.path in changed:
                state.touched_at = now if state.touched_at is None else state.touched_at
                quiet = min(now + QUIET_SECONDS, state.touched_at + RESTLESS_SECONDS)
                state.due = max(quiet, state.rests_until)

    def _watch_state(self, state: SourceState) -> None:
        path = state.source.where.path
        with suppress(FairlaneError):  # there is no such source: reading it says so
            if self._watch is not None and path and syncing.can_be_watched(state.source):
                state.watched = self._watch.add(path)

    # Jobs

    def _start_due(self) -> None:
        now = self._clock.monotonic()
        for state in self._states:
            if state.job is not None:
                continue
            if state.retry_at <= now:
                state.news, state.retry_at = None, inf
            if state.due <= now:
                state.due, state.touched_at = inf, None
                state.job = self._job(_READ, partial(_read, state.source))
            elif state.must_tell and state.tell_due <= now:
                tasks, state.news = state.news, set()
                work = partial(_tell, self._context, state.source, tasks)
                state.job = self._job(_TELL, work)

    def _job(self, what: str, work: Work) -> SourceJob:
        return SourceJob(what, work, self._waker, self._clock, self._spawn)

    def _give_up_late(self, state: SourceState, job: SourceJob) -> None:
        """A source that does not come back is not waited for, nor asked again before it does."""
        limit = state.source.where.seconds * (1 if job.what == _READ else TELL_TIMES)
        limit += GRACE_SECONDS
        if not job.given_up and self._clock.monotonic() - job.began >= limit:
            job.give_up()
            self._failed(state, TryLater(f"no answer within {limit:g} seconds", "", "too_slow"))

    def _take(self, state: SourceState, job: SourceJob) -> bool:
        """What a job brought; whether any task may have changed."""
        state.job = None
        if job.given_up:
            state.news = None
            return False
        if job.what == _TELL:
            self._take_told(state, job)
            return False
        return self._take_read(state, job)

    def _take_read(self, state: SourceState, job: SourceJob) -> bool:
        state.rests_until = self._clock.monotonic() + min(job.seconds * REST_TIMES, state.every)
        if state.due < inf and state.discarded < DISCARDS_MAX:  # it was written to meanwhile
            state.discarded += 1
            return False
        state.discarded = 0
        if self._keep and not state.watched:
            self._watch_state(state)  # from now on: what changed since it was read is read again
            wait = QUIET_SECONDS if state.watched else state.every
            state.due = min(state.due, self._clock.monotonic() + wait)
        if state.settled is not None and job.result == state.settled:
            return False  # nothing new: there is nothing to follow
        state.settled = None
        if job.error is not None:
            self._failed(state, job.error)
            return False
        assert isinstance(job.result, Found)
        return self._follow(state, job.result)

    def _bring_deferred(self) -> bool:
        """Follow sources again that had more than fitted into the queue, if it has other room."""
        changed = False
        for state in sorted(self._states, key=lambda state: state.followed):
            fresh = state.touched_at is None and not state.reading
            rested = self._clock.monotonic() >= state.follow_at
            if state.deferred is not None and fresh and rested and self._has_room(state):
                changed |= self._follow(state, state.deferred)
        return changed

    def _has_room(self, state: SourceState) -> bool:
        """Whether more of what it had may enter than when it was followed last."""
        return state.deferred is not None and self._room() not in (state.room, _NO_ROOM)

    def _room(self) -> syncing.Room:
        with suppress(FairlaneError):  # a busy store, or a broken policy: look again later
            return syncing.room(self._context)
        return _NO_ROOM

    def _follow(self, state: SourceState, content: Found) -> bool:
        began = self._clock.monotonic()
        state.followed = 1 + max(each.followed for each in self._states)
        try:
            row = syncing.follow(self._context, state.source, content)
        except Exception as error:  # what a source says must not end the daemon
            self._failed(state, syncing.explained(error))
            return False
        state.deferred, state.room = (content, self._room()) if row["deferred"] else (None, None)
        now = self._clock.monotonic()
        state.follow_at = now + min((now - began) * REST_TIMES, state.every)
        odd = row["conflicts"] or row["skipped"] or row["deferred"]
        expires_in = syncing.next_expiry(self._context, content)
        state.settled = None if odd or expires_in < inf else content
        if self._keep:
            state.due = min(state.due, self._clock.monotonic() + expires_in)
        self._tell_conflicts(state, row["conflicts"])
        if state.complaints.pop(_READ, None):
            self._say(f"source {state.source.name} works again")
        state.news = None
        return True

    def _take_told(self, state: SourceState, job: SourceJob) -> None:
        """Retry what could not be written back, with the next change or after a while."""
        later = self._clock.monotonic() + state.every
        if job.error is not None:
            state.news, state.tell_due = None, later
            self._complain(state, _TELL, f"cannot be told: {job.error.message}")
            return
        state.tell_due = 0.0
        failed = job.result["failed"] if isinstance(job.result, dict) else []
        if failed:  # the others are told at once all the same
            state.retry_at = min(state.retry_at, later)
            names = ", ".join(str(row["id"]) for row in failed)
            text = f"cannot be told of {names}: {failed[0]['message']}"
            self._complain(state, _TELL, text)

    def _tell_conflicts(self, state: SourceState, conflicts: list[ReasonDocument]) -> None:
        texts = [syncing.clash(state.source, conflict) for conflict in conflicts]
        for text in texts:
            if text not in state.clashes:
                self._say(f"warning: {text}")
        state.clashes = texts

    def _failed(self, state: SourceState, error: FairlaneError) -> None:
        state.settled = state.deferred = None
        if self._keep:
            state.due = min(state.due, self._clock.monotonic() + state.every)
        self._complain(state, _READ, f"cannot be asked: {error.message}")
        with suppress(TryLater):  # a busy store
            syncing.failed(self._context, state.source, error)

    def _complain(self, state: SourceState, job: str, text: str) -> None:
        if text != state.complaints.get(job):
            state.complaints[job] = text
            self._say(f"warning: source {state.source.name} {text}")


def _read(source: Configured, halted: Callable[[], bool]) -> Found:
    return syncing.ask(source)


def _tell(
    context: Context, source: Configured, tasks: set[str] | None, halted: Callable[[], bool]
) -> WrittenDocument:
    return write_back.tell(context, source.rule.type, source.where, tasks, halted)
