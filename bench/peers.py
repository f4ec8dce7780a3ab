"""Peers: queues on SQLite, as durable as they can be told to be, and what they do not promise."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROMPT = "Fix the build"


@dataclass(frozen=True, slots=True)
class Peer:
    """One life of a task, and a hundred of them as fast as the peer can."""

    name: str
    lacks: str  # what it does not promise
    life: Callable[[], object]
    batch: Callable[[int], object]
    close: Callable[[], object]


def peers(folder: Path) -> list[Peer]:
    """Every peer that is installed, each in its own file."""
    made = {"huey": with_huey, "persistqueue": with_persist_queue, "litequeue": with_litequeue}
    return [make(folder) for module, make in made.items() if find_spec(module) is not None]


def with_huey(folder: Path) -> Peer:
    """A job is enqueued, handed out and run; handing out deletes it."""
    from huey import SqliteHuey

    huey = SqliteHuey(filename=str(folder / "huey.db"), fsync=True, results=False)

    def work(prompt: str) -> None:
        """Nothing: the queue is measured."""

    job = huey.task()(work)

    def life() -> None:
        job(PROMPT)
        huey.execute(huey.dequeue())

    def batch(count: int) -> None:
        for _ in range(count):
            job(PROMPT)
        for _ in range(count):
            huey.execute(huey.dequeue())

    lacks = "no lease: a job is deleted when it is handed out"
    return Peer("Huey", lacks, life, batch, huey.storage.close)


def with_persist_queue(folder: Path) -> Peer:
    """An item is put, got and acknowledged, each in its own transaction."""
    from persistqueue import SQLiteAckQueue

    queue: Any = SQLiteAckQueue(str(folder / "persist-queue"), multithreading=True)
    for connection in (queue._putter, queue._getter):
        connection.execute("PRAGMA synchronous = FULL")

    def life() -> None:
        queue.put({"prompt": PROMPT})
        queue.ack(queue.get(block=False))

    def batch(count: int) -> None:
        for _ in range(count):
            queue.put({"prompt": PROMPT})
        held = [queue.get(block=False) for _ in range(count)]
        for item in held:
            queue.ack(item)

    lacks = "no expiry, no priorities, no log"
    return Peer("persist-queue", lacks, life, batch, queue.close)


def with_litequeue(folder: Path) -> Peer:
    """A message is put, popped and done; a pop is always a transaction of its own."""
    from litequeue import LiteQueue

    queue: Any = LiteQueue(str(folder / "litequeue.db"))
    queue.conn.execute("PRAGMA synchronous = FULL")

    def life() -> None:
        queue.put(PROMPT)
        queue.done(queue.pop().message_id)

    def batch(count: int) -> None:
        with queue.transaction():
            for _ in range(count):
                queue.put(PROMPT)
        held = [queue.pop().message_id for _ in range(count)]
        with queue.transaction():
            for name in held:
                queue.done(name)

    lacks = "no lease, no expiry, no log"
    return Peer("litequeue", lacks, life, batch, queue.close)
