"""History: what leases cost while a long history is compacted, beside them in the same process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bench.bench_store import folder
from bench.measure import Row, show_seconds
from bench.year import Year
from fairlane.engine import compaction
from fairlane.model.instant import DAY
from fairlane.store.sqlite.store import SqliteStore

#: Finished tasks, as days of so many.
DAYS, A_DAY = 30, 10_000
LEASES = 500


def rows() -> list[Row]:
    """Leases beside a compaction, and without one."""
    with folder() as here:
        year = Year(here / "home", A_DAY)
        store = year.context.store
        assert isinstance(store, SqliteStore)
        store.connection.execute("PRAGMA synchronous = OFF")
        for _ in range(DAYS):
            year.day()
        store.connection.execute("PRAGMA synchronous = FULL")
        year.clock.at += 60 * DAY
        alone = slowest(year)
        beside = slowest_beside(year)
        store.close()
    return [
        Row(
            f"lease p99 while {DAYS * A_DAY:,} finished tasks are compacted",
            show_seconds(beside),
            f"the same without {show_seconds(alone)}",
            beside / alone,
            "<= 3",
        )
    ]


def slowest(year: Year) -> float:
    """The 99th percentile of leases, one after the other."""
    year.lease()
    found = sorted(year.lease() for _ in range(LEASES))
    return found[len(found) * 99 // 100]


def slowest_beside(year: Year) -> float:
    """The same while a thread compacts, as a daemon's does; it ends with the leases."""
    over: list[bool] = []
    with ThreadPoolExecutor(1) as threads:
        work = threads.submit(compaction.compact, year.context, lambda: bool(over))
        found = slowest(year)
        if work.done():
            raise AssertionError("the compaction was through before the leases")
        over.append(True)
    return found
