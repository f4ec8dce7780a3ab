"""Changes: what each transaction has written, as one row; and a cache that drops only that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from fairlane.model.record import dataclass, field
from fairlane.store.news import VALUES, Mark, News, gather
from fairlane.store.sql.rows import Row, dump, parse

T = TypeVar("T")

#: How many versions are kept at least, and how often those before them are dropped.
KEPT, DROPPED_EVERY = 1024, 256
#: What was written after a mark so many versions ago is not read again when the same one is asked.
LONG_AGO = 16
#: A transaction that changes more than this says that it may have changed anything.
NAMED_MAX = 10_000


@dataclass(slots=True)
class Written:
    """What transactions have written; lanes by their ids, which is how a row has them."""

    said: News = field(default_factory=News)
    lanes: set[int] = field(default_factory=set)
    version: int = -1  # of the last of them; -1: nobody knows

    def include(self, later: Written) -> None:
        """What was written after it."""
        self.said.include(later.said)
        self.lanes |= later.lanes
        self.version = later.version

    def news(self, mark: Mark) -> News:
        """The same without the lanes."""
        return gather(mark, [self.said])


def text_of(news: News, lanes: Iterable[int]) -> str | None:
    """What one transaction has written, as JSON; None: it may be anything."""
    listed = sorted(lanes)
    named = len(news.flights) + len(listed) + len(news.scopes)
    if news.anything or named + sum(map(len, news.tables.values())) > NAMED_MAX:
        return None
    tables = {table: sorted(keys) for table, keys in sorted(news.tables.items())}
    parts = {
        "f": sorted(news.flights), "l": listed, "s": sorted(news.scopes), "t": tables,
        "w": news.waits,
    }  # fmt: skip
    return dump({name: part for name, part in parts.items() if part})


def read_written(since: int, rows: Sequence[Row]) -> Written:
    """What the rows from a version on say; where one is missing, it may be anything.

    The version itself is among them: one that is not there was dropped, or never committed.
    """
    written = Written()
    if rows:
        written.version = rows[-1][0]
    if not rows or rows[0][0] != since or any(text is None for _, text in rows[1:]):
        written.said.anything = True
        return written
    for _, text in rows[1:]:
        parts = parse(text)
        written.lanes.update(parts.get("l", ()))
        written.said.include(
            News(
                flights=set(parts.get("f", ())),
                scopes=set(parts.get("s", ())),
                tables={table: set(keys) for table, keys in parts.get("t", {}).items()},
                waits=parts.get("w", False),
            )
        )
    return written


def value_name(name: str) -> str:
    """Under which name the cache has a value."""
    return f"{VALUES} {name}"


class Memo:
    """Caches small tables and counters from one transaction to the next.

    The store gives a stamp that changes with every commit of another connection, and with every
    row that this one changed without telling the cache.
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._stamp: tuple[int, int] | None = None
        self._is_behind = True  # others may have written since
        self._long_ago: tuple[int, Written] | None = None  # since a version that is asked again
        self.mark = Mark(-1, 0)  # -1: no version is known

    def begin(self, stamp: tuple[int, int]) -> None:
        """A transaction begins; what others have written is read before anything else."""
        known, self._stamp = self._stamp, stamp
        if known is None or known != stamp:
            self._is_behind = True
            if known is not None and known[1] != stamp[1]:  # nobody said which rows
                self.doubt()

    def follow(self, latest: Callable[[], int], written: Callable[[int], Written]) -> None:
        """Drop what others have written."""
        if not self._is_behind:
            return
        self._is_behind = False
        if self.mark.version < 0:
            self._values.clear()
            self.mark = self.mark._replace(version=latest())
            return
        since = written(self.mark.version)
        if since.version < 0:  # as if it had never been
            self.doubt()
            self.mark = self.mark._replace(version=latest())
            return
        self.mark = self.mark._replace(version=since.version)
        self._drop(since.news(self.mark))

    def _drop(self, news: News) -> None:
        if news.anything:
            self._values.clear()
            return
        self.drop("numbers")
        for table, keys in news.tables.items():
            for name in map(value_name, keys) if table == VALUES else (table,):
                self.drop(name)

    def written(self, since: int, read: Callable[[int], Written]) -> Written:
        """What was written after a version."""
        if self._long_ago is not None and self._long_ago[0] == since:
            found = self._long_ago[1]
            found.include(read(found.version))
        else:
            found = read(since)
        if found.version - since >= LONG_AGO:
            self._long_ago = since, found
        return found

    def commit(self, stamp: tuple[int, int], version: int) -> None:
        """The cache knows what was written up to this stamp."""
        self._stamp, self.mark = stamp, self.mark._replace(version=version)

    def clear(self) -> None:
        """The transaction was rolled back: nothing is known."""
        self._values.clear()
        self._stamp = self._long_ago = None

    def doubt(self) -> None:
        """What was seen may never have happened: marks from before cannot be compared."""
        self.clear()
        self.mark, self._is_behind = Mark(-1, self.mark.life + 1), True

    def get(self, name: str, read: Callable[[], T]) -> T:
        """The value of this name, read if it must be."""
        if name not in self._values:
            self._values[name] = read()
        value: T = self._values[name]
        return value

    def put(self, name: str, value: object) -> None:
        """The value of this name from now on."""
        self._values[name] = value

    def update(self, table: str, key: str, row: object) -> None:
        """One row of a table has changed; a new one is read with the rest, in its order."""
        rows = self._values.get(table)
        if rows is not None and key in rows:
            rows[key] = row
        else:
            self.drop(table)

    def drop(self, name: str) -> None:
        """It has changed: read it again."""
        self._values.pop(name, None)
