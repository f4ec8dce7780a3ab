"""The tasks and every order in which they are read, updated with each change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice, takewhile

from fairlane.model.errors import Refused
from fairlane.model.instant import Instant
from fairlane.model.plan import IDS_SHOWN
from fairlane.model.project import Droppable, Project
from fairlane.model.record import changed
from fairlane.model.snapshot import WaitCount
from fairlane.model.task import Lane, LaneKey, Lease, Status, Task
from fairlane.store.base import Filter, Placed, Tally
from fairlane.store.memory.lane_index import LaneIndexes
from fairlane.store.memory.ordered import Ordered, give, take
from fairlane.store.memory.rows import NAMES, Row, Shelf, Sort, check_placed, fits
from fairlane.store.memory.small_tables import SmallTables

Due = tuple[Instant, int, str]  # when, seq, task


class Queue(SmallTables):
    """Tasks: by id, by seq, by status, by name, by lane, by what they wait for, by time."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, Row] = {}
        self._ids: dict[int, str] = {}  # by seq
        self._lines = LaneIndexes()
        self._shelves: dict[Shelf, Ordered[int]] = {}
        self._named: dict[tuple[str, str], Ordered[int]] = {}
        self._counts: dict[Sort, int] = {}
        self._due: Ordered[Due] = Ordered()
        self._due_of: dict[Shelf, Ordered[Due]] = {}
        self._dependents: dict[str, set[str]] = {}

    # Reading

    def task(self, task: str) -> Task | None:
        placed = self.placed(task)
        return placed and placed.task

    def tasks(self, ids: Iterable[str]) -> dict[str, Task]:
        pairs = ((task, self.task(task)) for task in ids)
        return {task: value for task, value in pairs if value is not None}

    def statuses(self, ids: Iterable[str]) -> dict[str, Status]:
        rows = ((task, self._rows.get(task)) for task in ids)
        return {task: row.shelf[0] for task, row in rows if row is not None}

    def placed(self, task: str) -> Placed | None:
        row = self._rows.get(task)
        return self._shown(row) if row is not None else None

    def listing(self, which: Filter, after: int = 0, limit: int = 1000) -> list[Placed]:
        rows = (self._rows[self._ids[seq]] for seq in self._candidates(which, after))
        return [self._shown(row) for row in islice((r for r in rows if fits(r, which)), limit)]

    def in_flight(self) -> list[Task]:
        seqs = self._on_shelves((Status.LEASED, Status.RUNNING), 0)
        return [self._shown(self._rows[self._ids[seq]]).task for seq in seqs]

    def due(self, now: Instant, limit: int) -> list[Placed]:
        rows = takewhile(lambda timer: timer[0] <= now, self._due)
        return [self._shown(self._rows[task]) for _, _, task in islice(rows, limit)]

    def next_due(self) -> Instant | None:
        head = self._due.head()
        return head and head[0]

    def dependents(self, task: str) -> list[str]:
        return sorted(self._dependents.get(task, ()), key=lambda name: self._rows[name].seq)

    def children(self, parent: str) -> int:
        return len(self._named.get(("parent", parent), ()))

    def tallies(self) -> list[Tally]:
        return [Tally(*sort, count) for sort, count in sorted(self._counts.items())]

    def lanes(
        self, age_from: str, window: int, keys: Iterable[LaneKey] | None = None
    ) -> tuple[Lane, ...]:
        known = self._lines.known
        lines = known.values() if keys is None else [known[key] for key in keys if key in known]
        return tuple(line.read(age_from, window) for line in lines)

    def wait_counts(self) -> tuple[WaitCount, ...]:
        return tuple(
            self._wait_count(shelf, seqs)
            for shelf, seqs in sorted(self._shelves.items(), key=lambda pair: pair[0])
            if shelf[1]
        )

    # Writing

    def insert(self, tasks: Sequence[Placed]) -> None:
        for placed in tasks:
            task = placed.task
            if task.id in self._rows:
                raise Refused(f"task {task.id} is known already", "Give another id.")
            if task.seq in self._ids:
                raise Refused(f"seq {task.seq} of task {task.id} is that of another task")
            self._change(None, self._row(placed))

    def save(self, tasks: Sequence[Placed], content: bool = False) -> None:
        for placed in tasks:
            old = self._rows.get(placed.task.id)
            if old is None or old.seq != placed.task.seq:
                raise Refused(f"no task {placed.task.id} with seq {placed.task.seq}")
            self._change(old, self._row(placed))

    def drop(self, kind: type[Droppable], key: str) -> None:
        if kind is Project and ("project", key) in self._named:
            raise Refused(f"project {key} has tasks", "Archive it.")
        super().drop(kind, key)

    # Inside

    def _lease_of(self, task: str) -> Lease | None:
        """The lease of the open attempt; the class of attempts knows it."""
        raise NotImplementedError

    def _row(self, placed: Placed) -> Row:
        """A row of a task that can be where it is said to be."""
        check_placed(placed)
        if placed.task.project not in self._tables[Project]:
            raise Refused(f"no project {placed.task.project} for task {placed.task.id}")
        return Row(placed)

    def _shown(self, row: Row) -> Placed:
        """A row as it is read: its lease is that of its open attempt."""
        task = row.placed.task
        lease = self._lease_of(task.id) if task.status.in_flight else None
        if task.lease == lease:
            return row.placed
        row.placed = row.placed._replace(task=changed(task, lease=lease))
        return row.placed

    def _candidates(self, which: Filter, after: int) -> Iterator[int]:
        """The seqs after one among which all that fit are: the shortest list that is at hand."""
        if which.held_lanes is not None:
            known = self._lines.known
            lines = [known[key] for key in set(which.held_lanes) if key in known]
            return (seq for seq in merge(*(line.seqs() for line in lines)) if seq > after)
        names = [(name, getattr(which, name)) for name in NAMES]
        lists = [self._named.get(pair, Ordered()) for pair in names if pair[1] is not None]
        shelves = self._shelves_of(which.status)
        if which.wait is not None:
            shelves = [shelf for shelf in shelves if shelf == (Status.QUEUED, which.wait)]
        shelved = sum(len(self._shelves[shelf]) for shelf in shelves)
        shortest = min(lists, key=len, default=None)
        if shortest is not None and len(shortest) <= shelved:
            return shortest.after(after)
        return self._on(shelves, after)

    def _shelves_of(self, statuses: tuple[Status, ...]) -> list[Shelf]:
        return [shelf for shelf in self._shelves if not statuses or shelf[0] in statuses]

    def _on_shelves(self, statuses: tuple[Status, ...], after: int) -> Iterator[int]:
        return self._on(self._shelves_of(statuses), after)

    def _on(self, shelves: list[Shelf], after: int) -> Iterator[int]:
        return merge(*(self._shelves[shelf].after(after) for shelf in shelves))

    def _wait_count(self, shelf: Shelf, seqs: Ordered[int]) -> WaitCount:
        ids = tuple(self._ids[seq] for seq in seqs.first(IDS_SHOWN))
        due = self._due_of.get(shelf)
        head = due.head() if due else None
        return WaitCount(shelf[1], len(seqs), ids, head and head[0])

    def _change(self, old: Row | None, new: Row | None) -> None:
        """One task from one row to another; None: it is not there."""
        self._note(self._swap, new, old)
        for row in (old, new):
            if row is not None:
                self._tell(row)
        self._swap(old, new)

    def _tell(self, row: Row) -> None:
        """A task was or is there."""
        news, (status, wait) = self._news, row.shelf
        if status.in_flight:
            news.flights.add(row.placed.task.id)
        if row.lane is not None:
            news.lanes.add(row.lane)
        if wait or row.due is not None or status is Status.PARKED:
            news.waits = True

    def _swap(self, old: Row | None, new: Row | None) -> None:
        """The rows and everything that follows from them; its own opposite."""
        self._swap_row(old, new)
        if old is None or new is None or old.sort != new.sort:
            self._swap_sort(old, new)
        if old is None or new is None or old.names != new.names:
            self._swap_names(old, new)
        if (old and old.due) != (new and new.due) or (old and old.shelf) != (new and new.shelf):
            self._swap_due(old, new)
        if (old and old.links) != (new and new.links):
            self._swap_links(old, new)
        if (old and old.lane) != (new and new.lane) or (old and old.entry) != (new and new.entry):
            self._swap_lane(old, new)

    def _swap_row(self, old: Row | None, new: Row | None) -> None:
        if new is not None:
            self._rows[new.placed.task.id] = new
            self._ids[new.seq] = new.placed.task.id
        elif old is not None:
            del self._rows[old.placed.task.id], self._ids[old.seq]

    def _swap_sort(self, old: Row | None, new: Row | None) -> None:
        if old is not None:
            take(self._shelves, old.shelf, old.seq)
            self._counts[old.sort] -= 1
            if not self._counts[old.sort]:
                del self._counts[old.sort]
        if new is not None:
            give(self._shelves, new.shelf, new.seq)
            self._counts[new.sort] = self._counts.get(new.sort, 0) + 1

    def _swap_names(self, old: Row | None, new: Row | None) -> None:
        before = _names(old)
        after = _names(new)
        for key, seq in before - after:
            take(self._named, key, seq)
        for key, seq in after - before:
            give(self._named, key, seq)

    def _swap_due(self, old: Row | None, new: Row | None) -> None:
        if old is not None and old.due is not None:
            self._due.remove(old.due)
            take(self._due_of, old.shelf, old.due)
        if new is not None and new.due is not None:
            self._due.add(new.due)
            give(self._due_of, new.shelf, new.due)

    def _swap_links(self, old: Row | None, new: Row | None) -> None:
        if old is not None:
            for needed in old.links:
                self._dependents[needed].discard(old.placed.task.id)
                if not self._dependents[needed]:
                    del self._dependents[needed]
        if new is not None:
            for needed in new.links:
                self._dependents.setdefault(needed, set()).add(new.placed.task.id)

    def _swap_lane(self, old: Row | None, new: Row | None) -> None:
        if old is not None and old.lane is not None and old.entry is not None:
            self._lines.remove(old.lane, old.entry)
        if new is not None and new.lane is not None and new.entry is not None:
            self._lines.add(new.lane, new.entry)


def _names(row: Row | None) -> set[tuple[tuple[str, str], int]]:
    if row is None:
        return set()
    pairs = zip(NAMES, row.names, strict=True)
    return {((name, value), row.seq) for name, value in pairs if value is not None}
