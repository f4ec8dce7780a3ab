"""Write back: the state of tasks is written into their source, at least once.

Each batch is stored before it is written, and its items are marked after it. What a crash leaves
between the two is written again; sources are idempotent.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import IO

from fairlane.clock import poll
from fairlane.engine.context import Context
from fairlane.intake.sources import names, source_named
from fairlane.intake.sources.base import Where, Writable, WriteBack
from fairlane.model.documents.sources import FailedWriteDocument, WrittenDocument
from fairlane.model.errors import FairlaneError, Refused, TryLater
from fairlane.model.instant import Instant
from fairlane.model.task import Status, Task
from fairlane.service.sync.mapping import live_entries, source_key
from fairlane.store.base import Reading, Writing

#: How many items are written in one batch; a crash leaves at most one batch to repeat.
BATCH = 1000
#: How many events are looked at in one go.
PAGE = 1000
#: How often a lock that is taken is tried again.
LOCK_LOOKS_SECONDS = 0.02
#: Ended tasks first: a source may refuse to claim what waits for them.
_ORDER = {"done": 0, "canceled": 0, "parked": 0, "leased": 1, "running": 1, "queued": 2}


def tell(
    context: Context,
    source: str,
    where: Where,
    tasks: Collection[str] | None = None,
    halted: Callable[[], bool] = lambda: False,
) -> WrittenDocument:
    """Tell what has changed of these tasks, or of all that came from there: written, and failed."""
    writable = source_named(source)
    if not isinstance(writable, Writable):
        hint = f"Take write_back away; it works with {', '.join(writable_sources())}."
        raise Refused(f"nothing can be written back to {source}", hint, code="not_writable")
    key = source_key(source, where)
    teller = _Teller(context, writable, where, key, halted)
    with _alone(context, key, where.seconds):
        teller.make_up()
        with context.store.read() as reading:
            news = sorted(_news(context, reading, key, tasks), key=lambda item: _ORDER[item.status])
        for start in range(0, len(news), BATCH):
            teller.tell(news[start : start + BATCH])
    return {"written": teller.written, "failed": teller.failed}


def writable_sources() -> list[str]:
    """The sources that accept write-back."""
    return [name for name in names() if isinstance(source_named(name), Writable)]


def untold(context: Context, source: str, where: Where) -> list[str]:
    """The items of which something would be told now."""
    with context.store.read() as reading:
        return [item.id for item in _news(context, reading, source_key(source, where), None)]


def changed_since(reading: Reading, after: int) -> tuple[set[str], int]:
    """The tasks of the events after this number, and the number of the last one."""
    tasks: set[str] = set()
    while events := reading.events(after, PAGE):
        tasks |= {event.task for event in events if event.task is not None}
        after = events[-1].number
    return tasks, after


def _news(
    context: Context, reading: Reading, key: str, tasks: Collection[str] | None
) -> Iterator[WriteBack]:
    """Items whose task is not as it was told last, in the source's order."""
    items = {
        item: str(row["task"])
        for item, row in live_entries(reading, key).items()
        if row.get("task") and (tasks is None or row["task"] in tasks)
    }
    now, known = context.now(), reading.tasks(items.values())
    for item, name in items.items():
        task = known.get(name)
        last = reading.value(f"told:{key}:{item}")
        if task is not None and last != _mark(task):
            yield WriteBack(
                item,
                task.id,
                str(task.status),
                _since(task) or now,
                task.reason,
                _facts(task) | {"told": last[0] if last else None},
            )


def forget_told(tx: Writing, key: str, item: str) -> None:
    """The item is as if nothing had been told: a person has put it back."""
    tx.put_value(f"told:{key}:{item}", None)


def is_told_leased(reading: Reading, key: str, item: str) -> bool:
    """Whether its source has it as leased because we said so."""
    last = reading.value(f"told:{key}:{item}")
    return bool(last) and last[0] in (Status.LEASED, Status.RUNNING)


def note_told(tx: Writing, key: str, item: str, task: Task) -> None:
    """A task is as its source has it already: only what changes from now on is news."""
    tx.put_value(f"told:{key}:{item}", _mark(task))


def _since(task: Task) -> Instant | None:
    return task.parked_at if task.status is Status.PARKED else task.ended_at


def _facts(task: Task) -> dict[str, object]:
    """What a source may store in addition to the status; times are instants."""
    lease = task.lease
    return {
        "attempts": task.attempts,
        "failures": task.failures,
        "lease": lease.id if lease else None,
        "lease_expires_at": lease.expires_at if lease else None,
        "backoff_until": task.backoff_until,
        "parked_reason": task.reason if task.status is Status.PARKED else None,
    }


def _mark(task: Task) -> list[object]:
    """What tells whether there is anything new to tell; the status is first."""
    lease = task.lease.id if task.lease else None
    return [str(task.status), task.attempts, task.failures, lease, task.backoff_until, task.reason]


def _mark_told(written: WriteBack) -> list[object]:
    facts = written.facts
    counted = [facts["attempts"], facts["failures"], facts["lease"], facts["backoff_until"]]
    return [written.status, *counted, written.reason]


@dataclass(slots=True)
class _Teller:
    """One turn with one source."""

    context: Context
    source: Writable
    where: Where
    key: str
    halted: Callable[[], bool]
    written: list[str] = field(default_factory=list)
    failed: list[FailedWriteDocument] = field(default_factory=list)

    def make_up(self) -> None:
        """Repeat the batch that a killed process left, as it was."""
        with self.context.store.read() as reading:
            left = reading.value(f"telling:{self.key}") or []
        if left:
            self._write([WriteBack(**row) for row in left])

    def tell(self, news: list[WriteBack]) -> None:
        """Keep what is about to be told, and tell it."""
        with self.context.store.write() as tx:
            tx.put_value(f"telling:{self.key}", [asdict(item) for item in news])
        self._write(news)

    def _write(self, news: list[WriteBack]) -> None:
        """Write, and remember what was told; one that cannot be told does not keep the others."""
        try:
            self.written += self._asked(news)
            written = news
        except TryLater:  # nobody can be told now
            raise
        except FairlaneError:
            written = list(self._one_by_one(news))
        with self.context.store.write() as tx:
            for item in written:
                tx.put_value(f"told:{self.key}:{item.id}", _mark_told(item))
            tx.put_value(f"telling:{self.key}", None)

    def _one_by_one(self, news: list[WriteBack]) -> Iterator[WriteBack]:
        for item in news:
            try:
                self._asked([item])
                self.written.append(item.id)  # the batch before may have written it already
                yield item
            except TryLater:
                raise
            except FairlaneError as error:
                self.failed.append({"id": item.id, "message": error.message})

    def _asked(self, news: list[WriteBack]) -> list[str]:
        if self.halted():
            raise TryLater("nobody waits for it any more", code="halted")
        return self.source.write(self.where, news)


@contextmanager
def _alone(context: Context, key: str, seconds: float) -> Iterator[None]:
    """One process at a time writes to one source; the lock ends with its process."""
    folder = context.home / "sources"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / f"{sha256(key.encode()).hexdigest()[:16]}.lock").open("a") as lock:
        if not poll(lambda: _locked(lock), seconds, LOCK_LOOKS_SECONDS, context.clock):
            hint = "The next sync makes up for it."
            raise TryLater("another process is telling this source", hint, code="busy")
        yield


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
