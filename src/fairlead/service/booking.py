"""Booking: usage goes to its attempt and scopes, clocks follow it, estimates learn from it."""

from __future__ import annotations

from fairlead.lifecycle.usage import Tokens, clock_correction, counted, minute_of, percentile70
from fairlead.model.frozen import changed
from fairlead.model.instant import Instant
from fairlead.model.resources import History
from fairlead.model.task import Task
from fairlead.policy.policy import Policy
from fairlead.store.base import Attempt, Booking, Reading, Writing

#: How many of the newest attempts an estimate is taken from.
SAMPLES = 50


def scopes_of(reading: Reading, task: Task) -> tuple[str, ...]:
    """The budgets' scopes in which a task's usage counts."""
    found = ["all", f"project:{task.project}"]
    if task.pool is not None:
        found.append(f"pool:{task.pool}")
    if task.group is not None:
        groups = reading.groups()
        seen: list[str] = []
        name: str | None = task.group
        while name is not None and name not in seen:
            seen.append(name)
            name = groups[name].parent if name in groups else None
        found += [f"group:{name}" for name in seen]
    return tuple(found)


class Books:
    """What one transaction books: summed up, and written once."""

    def __init__(self, tx: Writing, policy: Policy, now: Instant) -> None:
        self._tx, self._policy, self._now = tx, policy, now
        self._sums: dict[str, Booking] = {}
        self._clocks: dict[str, int] = {}  # project -> by how much its clock moves
        self._learn: set[tuple[str, str, str | None]] = set()
        self._attempts: dict[str, Attempt] = {}

    def start(self, task: Task) -> None:
        """A task was leased."""
        self._add(task, starts=1)

    def not_started(self, task: Task, attempt: Attempt) -> None:
        """A lease was given back untouched: it was no start."""
        minute = minute_of(attempt.leased_at)
        scopes = scopes_of(self._tx, task)
        self._tx.book([Booking(scope, minute, starts=-1) for scope in scopes])

    def complete(self, task: Task) -> None:
        """A task is done."""
        self._add(task, completions=1)

    def use(
        self,
        attempt: Attempt,
        task: Task,
        tokens: tuple[int, int, int, int] | None,
        usd: int | None,
        ended: bool,
    ) -> Attempt:
        """An attempt's totals so far; only what is new is booked, and its clock corrected."""
        totals = attempt.tokens
        if tokens is not None:
            totals = tuple(map(max, tokens, attempt.tokens))  # type: ignore[assignment]
        more = tuple(new - old for new, old in zip(totals, attempt.tokens, strict=True))
        cost = max(usd, attempt.usd or 0) if usd is not None else attempt.usd
        if any(more) or (cost or 0) != (attempt.usd or 0):
            dollars = (cost or 0) - (attempt.usd or 0)
            self._add(task, tokens=more, usd=dollars)  # type: ignore[arg-type]
            self._learn.add((attempt.project, attempt.kind, attempt.agent))
        used = counted(Tokens(*totals), self._policy.usage.count)
        received = used if ended else max(used, attempt.estimate)
        if received != attempt.charged:
            by = clock_correction(attempt.charged, received, attempt.weight, ended=True)
            self._clocks[task.project] = self._clocks.get(task.project, 0) + by
        found = changed(attempt, tokens=totals, usd=cost, charged=received)
        self._attempts[attempt.lease] = found
        return found

    def keep(self, attempt: Attempt) -> None:
        """An attempt as it is now."""
        self._attempts[attempt.lease] = attempt

    def close(self) -> None:
        """Write everything."""
        self._tx.put_attempts(list(self._attempts.values()))
        self._tx.book(list(self._sums.values()))
        if self._clocks:
            projects = self._tx.projects()
            moved = {
                name: ((projects[name].clock or 0) + by, projects[name].present)
                for name, by in self._clocks.items()
                if by and name in projects
            }
            self._tx.put_clocks(moved)
        if self._learn:
            self._tx.put_history([self._learned(*key) for key in sorted(self._learn, key=str)])

    def _add(
        self,
        task: Task,
        tokens: tuple[int, int, int, int] = (0, 0, 0, 0),
        usd: int = 0,
        starts: int = 0,
        completions: int = 0,
    ) -> None:
        minute = minute_of(self._now)
        for scope in scopes_of(self._tx, task):
            held = self._sums.get(scope) or Booking(scope, minute)
            self._sums[scope] = Booking(
                scope,
                minute,
                tuple(map(sum, zip(held.tokens, tokens, strict=True))),  # type: ignore[arg-type]
                held.usd + usd,
                held.starts + starts,
                held.completions + completions,
            )

    def _learned(self, project: str, kind: str, agent: str | None) -> History:
        rows = self._tx.recent(project, kind, agent, SAMPLES)
        count = self._policy.usage.count
        used = [counted(Tokens(*row.tokens), count) for row in rows]
        priced = [row for row in rows if row.usd is not None]
        return History(
            project,
            kind,
            agent,
            percentile70(used) if used else self._policy.share.default_estimate,
            sum(counted(Tokens(*row.tokens), count) for row in priced),
            sum(row.usd or 0 for row in priced),
        )
