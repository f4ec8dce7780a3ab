"""Telling: what has become of a source's items is written into the source; nothing is lost.

What is about to be told is kept before it is written, and kept as told after it. Whatever a crash
leaves between the two is told once more, and a source changes nothing when it hears the same twice.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from threading import Event as Signal
from time import monotonic
from typing import IO, Any

from fairlane.intake.sources import source_named
from fairlane.intake.sources.base import Told, Where, Writable
from fairlane.model.errors import FairlaneError, Refused, TryLater
from fairlane.model.instant import Instant
from fairlane.model.task import Status, Task
from fairlane.service.desk import Desk
from fairlane.service.sourcing.remembered import seen, source_key
from fairlane.store.base import Reading

#: How many items are told at once: a crash leaves no more, and a file is written once for all.
BATCH = 1000
#: How many events are looked at in one go.
PAGE = 1000
#: How often a lock that is taken is tried again.
LOCK_LOOKS_SECONDS = 0.02
#: What is over is told first: a source may let nothing be claimed that waits for it.
_ORDER = {"done": 0, "canceled": 0, "parked": 0, "leased": 1, "running": 1, "queued": 2}


def can_be_told(source: str) -> bool:
    """Whether anything can be written back to this source."""
    return isinstance(source_named(source), Writable)


def tell(
    desk: Desk,
    source: str,
    where: Where,
    tasks: Collection[str] | None = None,
    halted: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Tell what has changed of these tasks, or of all that came from there: written, and failed."""
    found = source_named(source)
    if not isinstance(found, Writable):
        hint = "Take write_back away; cards, beads and queue.json can be told."
        raise Refused(f"nothing can be written back to {source}", hint, code="not_writable")
    key = source_key(source, where)
    teller = _Teller(desk, found, where, key, halted)
    with _alone(desk, key, where.seconds):
        teller.make_up()
        with desk.store.read() as reading:
            news = sorted(_news(desk, reading, key, tasks), key=lambda each: _ORDER[each.status])
        for start in range(0, len(news), BATCH):
            teller.tell(news[start : start + BATCH])
    return {"written": teller.written, "failed": teller.failed}


def untold(desk: Desk, source: str, where: Where) -> list[str]:
    """The items of which something would be told now."""
    with desk.store.read() as reading:
        return [each.id for each in _news(desk, reading, source_key(source, where), None)]


def changed_since(reading: Reading, after: int) -> tuple[set[str], int]:
    """The tasks of the events after this number, and the number of the last one."""
    tasks: set[str] = set()
    while events := reading.events(after, PAGE):
        tasks |= {each.task for each in events if each.task is not None}
        after = events[-1].number
    return tasks, after


def _news(desk: Desk, reading: Reading, key: str, tasks: Collection[str] | None) -> Iterator[Told]:
    """Items whose task is not as it was told last, in the source's order."""
    items = {
        item: str(row["task"])
        for item, row in seen(reading, key).items()
        if row.get("task") and (tasks is None or row["task"] in tasks)
    }
    now, found = desk.now(), reading.tasks(items.values())
    for item, name in items.items():
        task = found.get(name)
        told = reading.value(f"told:{key}:{item}")
        if task is not None and told != _mark(task):
            yield Told(
                item,
                task.id,
                str(task.status),
                _since(task) or now,
                task.reason,
                _facts(task) | {"told": told[0] if told else None},
            )


def _since(task: Task) -> Instant | None:
    return task.parked_at if task.status is Status.PARKED else task.ended_at


def _facts(task: Task) -> dict[str, Any]:
    """What a source may want to keep beside the status; times are instants."""
    lease = task.lease
    return {
        "attempts": task.attempts,
        "failures": task.failures,
        "lease": lease.id if lease else None,
        "lease_expires_at": lease.expires_at if lease else None,
        "backoff_until": task.backoff_until,
        "parked_reason": task.reason if task.status is Status.PARKED else None,
    }


def _mark(task: Task) -> list[Any]:
    """What tells whether there is anything new to tell; the status is first."""
    lease = task.lease.id if task.lease else None
    return [str(task.status), task.attempts, task.failures, lease, task.backoff_until, task.reason]


def _mark_told(told: Told) -> list[Any]:
    facts = told.facts
    counted = [facts["attempts"], facts["failures"], facts["lease"], facts["backoff_until"]]
    return [told.status, *counted, told.reason]


@dataclass(slots=True)
class _Teller:
    """One turn with one source."""

    desk: Desk
    source: Writable
    where: Where
    key: str
    halted: Callable[[], bool]
    written: list[str] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)

    def make_up(self) -> None:
        """What was being told when somebody was killed is told once more, as it was."""
        with self.desk.store.read() as reading:
            left = reading.value(f"telling:{self.key}") or []
        if left:
            self._write([Told(**each) for each in left])

    def tell(self, news: list[Told]) -> None:
        """Keep what is about to be told, and tell it."""
        with self.desk.store.write() as tx:
            tx.put_value(f"telling:{self.key}", [asdict(each) for each in news])
        self._write(news)

    def _write(self, news: list[Told]) -> None:
        """Write, and remember what was told; one that cannot be told does not keep the others."""
        try:
            self.written += self._asked(news)
            told = news
        except TryLater:  # nobody can be told now
            raise
        except FairlaneError:
            told = list(self._one_by_one(news))
        with self.desk.store.write() as tx:
            for each in told:
                tx.put_value(f"told:{self.key}:{each.id}", _mark_told(each))
            tx.put_value(f"telling:{self.key}", None)

    def _one_by_one(self, news: list[Told]) -> Iterator[Told]:
        for each in news:
            try:
                self.written += self._asked([each])
                yield each
            except TryLater:
                raise
            except FairlaneError as error:
                self.failed.append({"id": each.id, "message": error.message})

    def _asked(self, news: list[Told]) -> list[str]:
        if self.halted():
            raise TryLater("nobody waits for it any more", code="halted")
        return self.source.write(self.where, news)


@contextmanager
def _alone(desk: Desk, key: str, seconds: float) -> Iterator[None]:
    """One process at a time tells one source; the lock goes with whoever holds it."""
    folder = desk.home / "sources"
    folder.mkdir(mode=0o700, exist_ok=True)
    give_up, pause = monotonic() + seconds, Signal()
    with (folder / f"{sha256(key.encode()).hexdigest()[:16]}.lock").open("a") as held:
        while not _locked(held):
            if monotonic() >= give_up:
                hint = "The next sync makes up for it."
                raise TryLater("another process is telling this source", hint, code="busy")
            pause.wait(LOCK_LOOKS_SECONDS)
        yield


def _locked(held: IO[str]) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
