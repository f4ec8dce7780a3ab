"""Notices: send chosen events of the log to targets, each in order, at least once.

Every target has a thread and a place in the log of its own, so none waits for another. The log
is the queue: nothing piles up in memory, and the next daemon goes on from the same place.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Executor as Threads
from concurrent.futures import Future
from hashlib import sha256

from fairlane.engine.context import Context
from fairlane.model.event import Event
from fairlane.model.instant import DAY, show_instant
from fairlane.notify.send import SECONDS_MAX, send, target_name
from fairlane.runtime.launch import ThreadsOf
from fairlane.service.reports.documents import last_answer
from fairlane.settings import NotifyRule

#: Kind of event -> the name under which settings ask for it.
NAMES = {
    "parked": "parked",
    "budget_warning": "budget_warning",
    "budget_exceeded": "budget_warning",
    "cooldown": "cooldown",
    "group_done": "group_done",
    "queue_empty": "queue_empty",
    "succeeded": "done",
    "check_failed": "check_failed",
    "merge_conflict": "conflict",
}
#: Events older than this are dropped, with a word.
AGE_MAX = DAY
#: Before a target is tried again: twice as long each time.
AGAIN_SECONDS, AGAIN_MAX_SECONDS = 1.0, 300.0
#: How long the end of the daemon waits for targets.
CLOSE_SECONDS = 10.0
_KEPT = "notified"
_PAGE = 500


class Notices:
    """The targets of the settings."""

    def __init__(self, context: Context, say: Callable[[str], None], threads: ThreadsOf) -> None:
        self._context = context
        self._targets = [
            _Target(context, rule, f"notify[{at}]", say, threads(1, f"notify-{at}"))
            for at, rule in enumerate(context.settings.notify)
        ]

    def begin(self) -> None:
        """Find each target's place in the log; a new target starts at the end."""
        if not self._targets:
            return
        with self._context.store.write() as tx:
            kept = tx.value(_KEPT)
            newest = [event.number for event in tx.events(limit=1, last=True)] or [0]
            start = kept if isinstance(kept, int) else newest[0]  # one number for all, formerly
            places = kept if isinstance(kept, dict) else {}
            for target in self._targets:
                target.place = places.get(target.key, start)
            tx.put_value(_KEPT, {target.key: target.place for target in self._targets})

    def look(self) -> None:
        """Send what is new."""
        for target in self._targets:
            target.look()

    def close(self) -> None:
        """Send what came last; what a target does not take in time is left for the next daemon."""
        ends = self._context.clock.monotonic() + CLOSE_SECONDS
        for target in self._targets:
            target.end(ends)
        for target in self._targets:
            target.thread.shutdown(wait=True)


class _Target:
    """One rule of the settings, and its place in the log."""

    def __init__(
        self,
        context: Context,
        rule: NotifyRule,
        name: str,
        say: Callable[[str], None],
        thread: Threads,
    ) -> None:
        self._context, self._rule, self.thread = context, rule, thread
        self._clock = context.clock
        self.key = _key(rule)
        self.place = 0  # the number of the last event that is over
        self._name, self._say = f"{name} ({target_name(rule)})", say
        self._sending: Future[None] | None = None
        self._again_at, self._pause = 0.0, 0.0
        self._ends = float("inf")

    def look(self) -> None:
        """Send what is new, unless something is being sent, or it is too early to try again."""
        if self._sending is not None and not self._sending.done():
            return
        if self._clock.monotonic() >= self._again_at:
            self._sending = self.thread.submit(self._guarded)

    def end(self, ends: float) -> None:
        """Try until this time, then leave the rest."""
        self._ends = ends
        self.thread.submit(self._finish)

    def _finish(self) -> None:
        self._guarded()
        while self._pause and self._clock.monotonic() + self._pause < self._ends:
            self._clock.wait(self._pause)
            self._guarded()
        if self._pause or self._left() <= 0:
            self._say(f"warning: {self._name}: the next daemon sends what was not sent")

    def _guarded(self) -> None:
        """Send what is new; an error here costs this target a pause, and nothing else."""
        try:
            self._send_new()
        except Exception as error:
            self._put_off(f"{type(error).__name__}: {error}")

    def _send_new(self) -> None:
        while self._left() > 0:
            with self._context.store.read() as reading:
                events = reading.events(after=self.place, limit=_PAGE)
            if not events:
                return
            for event in events:
                if not self._is_over(event):
                    return
                self.place = event.number
            self._keep()

    def _is_over(self, event: Event) -> bool:
        """Whether the next event may follow: this one was sent, or never can be."""
        name = NAMES.get(event.kind)
        if name not in self._rule.on:
            return True
        if self._left() <= 0:
            return False
        what, now = f"{event.kind} (event {event.number})", self._context.now()
        if now - event.at > AGE_MAX:
            self._say(f"warning: {self._name}: {what} is too old and was not sent")
            return True
        seconds = min(SECONDS_MAX, self._left())
        document = document_of(event, name or "")
        if self._rule.text:
            document["answer"] = self._answer(event.task)
        sent = send(self._rule, document, now, seconds)
        if sent.again:
            self._put_off(f"{what} was not sent yet: {sent.problem}")
            return False
        if sent.problem:
            self._say(f"warning: {self._name}: {what} was not sent: {sent.problem}")
        elif self._pause:
            self._say(f"{self._name}: sends again")
        self._pause, self.place = 0.0, event.number
        self._keep()
        return True

    def _answer(self, task: str | None) -> str | None:
        """What the agent of a task said in the end."""
        with self._context.store.read() as reading:
            return None if task is None else last_answer(reading.attempts(task))

    def _put_off(self, why: str) -> None:
        """Try again later, and say so the first time."""
        if not self._pause:
            self._say(f"warning: {self._name}: {why}; it is retried")
        self._pause = min(AGAIN_MAX_SECONDS, max(AGAIN_SECONDS, 2 * self._pause))
        self._again_at = self._clock.monotonic() + self._pause

    def _left(self) -> float:
        return self._ends - self._clock.monotonic()

    def _keep(self) -> None:
        """Make the place durable."""
        with self._context.store.write() as tx:
            tx.put_value(_KEPT, {**(tx.value(_KEPT) or {}), self.key: self.place})


def _key(rule: NotifyRule) -> str:
    """What a place in the log belongs to: the target and its events; the secret may change."""
    words = json.dumps([rule.url, rule.command, rule.on])
    return sha256(words.encode()).hexdigest()[:16]


def document_of(event: Event, name: str) -> dict[str, object]:
    """What a listener gets; the number tells one that came twice."""
    return {
        "schema": "fairlane/1",
        "number": event.number,
        "event": name,
        "kind": event.kind,
        "at": show_instant(event.at),
        "task": event.task,
        "project": event.project,
        "data": dict(event.data),
    }
