"""The durable queue as one object: every verb is a method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fairlead.app import open_desk
from fairlead.model.errors import Invalid, did_you_mean
from fairlead.service import leases, projects, queue, rounds, tasks, whys
from fairlead.service.ending import Report
from fairlead.service.reports import stats, status, summary
from fairlead.service.reports.documents import COUNTERS

if TYPE_CHECKING:
    from fairlead.clock import Clock
    from fairlead.model.instant import Instant

#: What every verb gives: what `--json` prints.
Document: TypeAlias = dict[str, Any]
#: Totals of an attempt so far, by counter; a bare number is output.
Used: TypeAlias = Mapping[str, int] | int | None


class Fairlead:
    """The durable queue as one object: every verb is a method and gives the same document.

    `home` is a folder, which is made if it is missing; without one it is the user's own.
    """

    def __init__(
        self, home: str | Path | None = None, *, db: str | None = None, clock: Clock | None = None
    ) -> None:
        self.desk = open_desk(None if home is None else Path(home), db, clock)

    def __enter__(self) -> Fairlead:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing more is asked of it."""
        self.desk.store.close()

    # Work comes in.

    def add(
        self,
        work: str | Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        again: bool = False,
        force: bool = False,
        chain: bool = False,
        dry_run: bool = False,
        **values: Any,
    ) -> Document:
        """A prompt, a task, or many; `values` are the fields of tasks that do not give them."""
        records = [{"prompt": work}] if isinstance(work, str) else work
        many = [records] if isinstance(records, Mapping) else records
        return tasks.add(
            self.desk,
            many,
            defaults=values,
            again=again,
            force=force,
            chain=chain,
            dry_run=dry_run,
        )

    def edit(self, *ids: str, **changes: Any) -> Document:
        """Change tasks that have not started."""
        return tasks.edit(self.desk, ids, changes)

    def cancel(
        self, *ids: str, tree: bool = False, group: str | None = None, reason: str = ""
    ) -> Document:
        """Cancel tasks, their descendants, or a group."""
        return tasks.cancel(self.desk, ids, tree=tree, group=group, reason=reason)

    def retry(self, *ids: str) -> Document:
        """Put parked tasks back; start those in backoff at once."""
        return tasks.retry(self.desk, ids)

    # What there is, and why.

    def list(self, **filters: Any) -> Document:
        """Tasks: `project`, `kind`, `status`, `group`, `held_by`, `after`, `limit`."""
        return tasks.list_tasks(self.desk, **filters)

    def show(self, task: str) -> Document:
        """One task whole."""
        return tasks.show(self.desk, task)

    def plan(self) -> Document:
        """What a cycle would start now; changes nothing."""
        return rounds.plan(self.desk)

    def why(self, task: str) -> Document:
        """Why a task does not start, and what would start it."""
        return whys.why(self.desk, task)

    def status(self) -> Document:
        """How things stand now."""
        return status.status(self.desk)

    def summary(self, since: Instant | None = None) -> Document:
        """What happened since then."""
        return summary.summary(self.desk, since)

    def stats(self, since: Instant | None = None) -> Document:
        """Shares, waits, durations and estimates since then."""
        return stats.stats(self.desk, since)

    # The queue.

    def pause(self, scope: str = "all", reason: str = "") -> Document:
        """Nothing in the scope starts."""
        return queue.pause(self.desk, scope, reason)

    def resume(self, scope: str = "all") -> Document:
        """The scope may start again."""
        return queue.resume(self.desk, scope)

    def clear(self, scope: str = "all", *, dry_run: bool = False) -> Document:
        """Cancel the queued tasks of a scope."""
        return queue.clear(self.desk, scope, dry_run=dry_run)

    # The pull protocol.

    def lease(
        self, limit: int | None = None, *, worker: str | None = None, labels: Sequence[str] = ()
    ) -> Document:
        """Take what may start now, at most `limit`."""
        return leases.lease(self.desk, limit, worker, labels)

    def heartbeat(self, lease: str) -> Document:
        """Renew a lease."""
        return leases.heartbeat(self.desk, lease)

    def report(
        self, lease: str, *, tokens: Used = None, cost: float | None = None, note: str = ""
    ) -> Document:
        """Tell what an attempt has used so far, and how far it is."""
        return leases.report(self.desk, lease, _told(tokens, cost), note)

    def complete(
        self,
        lease: str,
        *,
        tokens: Used = None,
        cost: float | None = None,
        result: dict[str, Any] | None = None,
    ) -> Document:
        """The work is done."""
        return leases.complete(self.desk, [lease], _told(tokens, cost, result=result))

    def release(
        self,
        lease: str,
        outcome: str = "released",
        *,
        reason: str = "",
        tokens: Used = None,
        cost: float | None = None,
    ) -> Document:
        """Give a lease back: untouched, failed, throttled, …"""
        return leases.release(self.desk, lease, outcome, _told(tokens, cost, detail=reason))

    def reclaim(self) -> Document:
        """End what has expired."""
        return leases.reclaim(self.desk)

    # Projects, groups, pools, workers.

    def projects(self) -> Document:
        """Every project."""
        return projects.list_projects(self.desk)

    def add_project(self, name: str, **values: Any) -> Document:
        """A new project."""
        return projects.add_project(self.desk, name, values)

    def set_project(self, name: str, **values: Any) -> Document:
        """Change a project."""
        return projects.set_project(self.desk, name, values)

    def remove_project(self, name: str) -> Document:
        """Take a project away."""
        return projects.remove_project(self.desk, name)

    def groups(self) -> Document:
        """Every group with its progress."""
        return projects.list_groups(self.desk)

    def pools(self) -> Document:
        """Every pool with its cooldown."""
        return projects.list_pools(self.desk)

    def workers(self) -> Document:
        """Every worker with its slots."""
        return projects.list_workers(self.desk)


def _told(
    tokens: Used, cost: float | None, detail: str = "", result: dict[str, Any] | None = None
) -> Report:
    """What a holder says, as it is booked; a bare number of tokens is output."""
    given = {"output": tokens} if isinstance(tokens, int) else tokens
    for name in given or {}:
        if name not in COUNTERS:
            raise Invalid(f"there is no counter {name!r}", did_you_mean(name, COUNTERS))
    counted = None
    if given is not None:
        first, second, third, fourth = (int(given.get(name, 0)) for name in COUNTERS)
        counted = (first, second, third, fourth)
    return Report(counted, None if cost is None else round(cost * 1_000_000), detail, result)
