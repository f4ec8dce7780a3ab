"""Queues of any length in the same lanes, each in a home of its own.

`python -m bench.queues HOME` is a new process that makes its first round there: how long that
takes, and what it leased.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.homes import home
from bench.measure import seconds
from bench.places import LANES, places
from fairlane.app import open_context
from fairlane.engine.context import Facts
from fairlane.engine.end_attempt import NOTHING
from fairlane.engine.look.planned import PlannedRound, look_and_plan
from fairlane.engine.look.workers import Asker
from fairlane.engine.round import commit, committed_round
from fairlane.model.instant import HOUR
from fairlane.model.project import Project
from fairlane.model.record import changed
from fairlane.model.task import Task
from fairlane.service import pull
from fairlane.store.base import Placed
from fairlane.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.places import Place
    from fairlane.engine.context import Context
    from fairlane.engine.round import Committed
    from fairlane.store.base import Store

PICKS = 50
CHUNK = 10_000
WORKER = "bench"
POLICY = 'preset = "depth-first"\n[lease]\nttl = "4h"\n'
TASK = Task("", agent="claude", pool="anthropic", prompt="Fix the build")
#: A lease, and its task.
Held = tuple[str, str]


class Queue:
    """Ready tasks that came in one after the other, within an hour, spread evenly over lanes."""

    def __init__(self, context: Context, rate: int, lanes: Sequence[Place]) -> None:
        self.home, self.context, self.places = context.home, context, lanes
        self._since, self._rate = context.now() - 2 * HOUR, rate
        self._held: list[Held] = []
        self.last = ""  # the task that came in last

    def fill(self, at: Sequence[int]) -> None:
        """A task for each of these places, in one transaction."""
        with self.context.store.write() as tx:
            first = tx.number("seq", len(at))
            for start in range(0, len(at), CHUNK):
                some = enumerate(at[start : start + CHUNK], first + start)
                tx.insert([Placed(self._task(seq, place)) for seq, place in some])

    def round(self) -> None:
        """Look, plan, commit: as much as may start."""
        self.hold(first_round(self.context), PICKS)

    def look(self) -> PlannedRound:
        """Look and plan; nothing is written."""
        context, asker = self.context, Asker(WORKER)
        with context.store.read() as reading:
            return look_and_plan(
                context, reading, context.policy(), context.now(), asker, facts=Facts()
            )

    def commit(self, planned: PlannedRound) -> None:
        """Commit a plan."""
        with self.context.store.write() as tx:
            committed = commit(self.context, tx, planned)
        self.hold(leased(committed), PICKS)

    def lease_one(self) -> None:
        """One task for one worker."""
        given = pull.lease(self.context, limit=1, worker=WORKER)["leases"]
        self.hold([(each["lease"], each["task"]) for each in given], 1)

    def take_for_good(self, count: int) -> None:
        """So many are in flight from now on."""
        given = pull.lease(self.context, limit=count, worker=WORKER)["leases"]
        if len(given) != count:
            raise AssertionError(f"{len(given)} of {count} tasks were leased")

    def complete(self) -> None:
        """What was taken is done."""
        pull.finish_each(self.context, [(lease, NOTHING) for lease, _ in self._held])

    def hold(self, given: Sequence[Held], count: int) -> None:
        """What was leased just now, as much as it should be."""
        if len(given) != count:
            raise AssertionError(f"{len(given)} of {count} tasks were leased")
        self._held = [*given]

    def replace(self) -> None:
        """As much as was taken comes into the same lanes."""
        self.fill([int(task.rpartition("-")[2]) for _, task in self._held])
        self._held = []

    def refill(self) -> None:
        """What was taken is completed, and replaced."""
        if self._held:
            self.complete()
            self.replace()

    def _task(self, seq: int, place: int) -> Task:
        project, kind, depth = self.places[place]
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


def first_round(context: Context) -> list[Held]:
    """One round, and what it leased."""
    with committed_round(context, Asker(WORKER)) as (_, _, committed):
        return leased(committed)


def leased(committed: Committed) -> list[Held]:
    """The leases of a round, each with its task."""
    return [(attempt.lease, task.id) for task, attempt in committed.started]


def in_new_process(queue: Queue) -> float:
    """How long the first round of a new process takes, from when the store is open."""
    words = [sys.executable, "-m", "bench.queues", str(queue.home)]
    root = Path(__file__).parent.parent
    found = subprocess.run(words, check=True, capture_output=True, text=True, cwd=root)
    took, given = json.loads(found.stdout)
    queue.hold([(lease, task) for lease, task in given], PICKS)
    return float(took)


@contextmanager
def plenty_of_memory(store: Store) -> Iterator[None]:
    """A million rows are written once, not page by page as they come."""
    assert isinstance(store, SqliteStore)
    (usual,) = store.connection.execute("PRAGMA cache_size").fetchone()
    store.connection.execute("PRAGMA cache_size = -600000")
    yield
    store.connection.execute(f"PRAGMA cache_size = {usual:d}")


@contextmanager
def queue(
    path: Path, count: int, lanes: Sequence[Place] | None = None, policy: str = POLICY
) -> Iterator[Queue]:
    """A new queue with so many ready tasks."""
    lanes = places(LANES) if lanes is None else lanes
    context = home(path, policy)
    with context.store.write() as tx:
        tx.put(*(Project(name) for name in dict.fromkeys(name for name, _, _ in lanes)))
    found = Queue(context, count, lanes)
    with plenty_of_memory(context.store):
        found.fill([place % len(lanes) for place in range(count)])
    try:
        yield found
    finally:
        context.store.close()


def main(path: Path) -> None:
    context = open_context(path)
    given: list[Held] = []
    took = seconds(lambda: given.extend(first_round(context)))
    print(json.dumps([took, given]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
