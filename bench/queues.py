"""Queues of any length in the same lanes, each in a home of its own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench.bench_planner import DEPTHS, KINDS, SLOTS
from fairlane.app import open_context
from fairlane.engine.end_attempt import NOTHING
from fairlane.model.instant import HOUR
from fairlane.model.project import Project
from fairlane.model.record import changed
from fairlane.model.task import Task
from fairlane.service import pull
from fairlane.store.base import Placed
from fairlane.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fairlane.engine.context import Context
    from fairlane.store.base import Store

PICKS = SLOTS
PROJECTS = [f"project-{number:02}" for number in range(15)]
PLACES = [(name, kind, depth) for name in PROJECTS for kind in KINDS for depth in range(DEPTHS)]
LANES = len(PLACES)
CHUNK = 10_000
WORKER = "bench"
TASK = Task("", agent="claude", pool="anthropic", prompt="Fix the build")


class Queue:
    """Ready tasks that came in one after the other, within an hour, spread evenly over lanes."""

    def __init__(self, home: Path, context: Context, rate: int) -> None:
        self.home, self.context = home, context
        self._since, self._rate = context.now() - 2 * HOUR, rate
        self._held: list[str] = []  # leases
        self._taken: list[int] = []  # the places of their tasks
        self.last = ""  # the task that came in last

    def fill(self, places: Sequence[int]) -> None:
        """A task for each of these places, in one transaction."""
        with self.context.store.write() as tx:
            first = tx.number("seq", len(places))
            for start in range(0, len(places), CHUNK):
                some = enumerate(places[start : start + CHUNK], first + start)
                tx.insert([Placed(self._task(seq, place)) for seq, place in some])

    def round(self) -> None:
        """Look, plan, commit: as much as may start."""
        self._take(None, PICKS)

    def lease_one(self) -> None:
        """One task for one worker."""
        self._take(1, 1)

    def refill(self) -> None:
        """What was taken is completed, and as much comes into the same lanes."""
        pull.finish_each(self.context, [(lease, NOTHING) for lease in self._held])
        self.fill(self._taken)

    def _take(self, limit: int | None, count: int) -> None:
        given = pull.lease(self.context, limit=limit, worker=WORKER)["leases"]
        self._held = [each["lease"] for each in given]
        self._taken = [int(each["task"].rpartition("-")[2]) for each in given]
        if len(given) != count:
            raise AssertionError(f"{len(given)} of {count} tasks were leased")

    def _task(self, seq: int, place: int) -> Task:
        project, kind, depth = PLACES[place]
        at = self._since + seq * HOUR // self._rate
        self.last = f"t{seq}-{place}"
        return changed(
            TASK,
            id=self.last,
            seq=seq,
            project=project,
            kind=kind,
            depth=depth,
            created_at=at,
            ready_since=at,
        )


@contextmanager
def plenty_of_memory(store: Store) -> Iterator[None]:
    """A million rows are written once, not page by page as they come."""
    assert isinstance(store, SqliteStore)
    (usual,) = store.connection.execute("PRAGMA cache_size").fetchone()
    store.connection.execute("PRAGMA cache_size = -600000")
    yield
    store.connection.execute(f"PRAGMA cache_size = {usual:d}")


@contextmanager
def queue(home: Path, count: int) -> Iterator[Queue]:
    """A new queue with so many ready tasks."""
    home.mkdir()
    (home / "policy.toml").write_text('preset = "depth-first"\n', encoding="utf-8")
    context = open_context(home)
    with context.store.write() as tx:
        for name in PROJECTS:
            tx.put(Project(name))
    found = Queue(home, context, count)
    with plenty_of_memory(context.store):
        found.fill([place % LANES for place in range(count)])
    try:
        yield found
    finally:
        context.store.close()
