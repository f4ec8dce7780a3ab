"""Booking: usage goes to its attempt and scopes, clocks follow it, estimates learn from it."""

from __future__ import annotations

from operator import add, sub
from typing import Any

from fairlane.lifecycle.usage import Tokens, clock_correction, counted, minute_of, percentile70
from fairlane.model.amounts import MICRO_DOLLARS_MAX, TOKENS_MAX, clock_after
from fairlane.model.frozen import changed
from fairlane.model.instant import Instant
from fairlane.model.resources import History
from fairlane.model.task import Task
from fairlane.policy.policy import Policy
from fairlane.store.base import Attempt, Booking, Reading, Writing

#: How many of the newest attempts an estimate is taken from.
SAMPLES = 50


#: A task's project, pool and group: where its usage counts.
_Place = tuple[str, str | None, str | None]


def scopes_of(reading: Reading, task: Task) -> tuple[str, ...]:
    """The budgets' scopes in which a task's usage counts."""
    return _scopes(reading, task.project, task.pool, task.group)


def _scopes(reading: Reading, project: str, pool: str | None, group: str | None) -> tuple[str, ...]:
    found = ["all", f"project:{project}"]
    if pool is not None:
        found.append(f"pool:{pool}")
    if group is not None:
        groups = reading.groups()
        seen: list[str] = []
        name: str | None = group
        while name is not None and name not in seen:
            seen.append(name)
            name = groups[name].parent if name in groups else None
        found += [f"group:{name}" for name in seen]
    return tuple(found)


class Books:
    """What one transaction books: summed up, and written once."""

    def __init__(self, tx: Writing, policy: Policy, now: Instant) -> None:
        self._tx, self._policy, self._now = tx, policy, now
        self._sums: dict[_Place, list[int]] = {}  # four counters, usd, starts, completions
        self._clocks: dict[str, int] = {}  # project -> by how much its clock moves
        self._learn: set[tuple[str, str, str | None]] = set()
        self._attempts: dict[str, Attempt] = {}
        self.used: set[_Place] = set()  # where usage was told, be it the same as before

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
        **changes: Any,
    ) -> Attempt:
        """An attempt's totals so far; only what is new is booked, and its clock corrected.

        `changes` are what else has become of the attempt.
        """
        self.used.add((task.project, task.pool, task.group))
        totals = attempt.tokens
        if tokens is not None:
            said = (min(each, TOKENS_MAX) for each in tokens)  # sums of sound numbers may not be
            totals = tuple(map(max, said, attempt.tokens))  # type: ignore[assignment]
        cost = attempt.usd
        if usd is not None:
            cost = max(min(usd, MICRO_DOLLARS_MAX), attempt.usd or 0)
        if totals != attempt.tokens or (cost or 0) != (attempt.usd or 0):
            more = tuple(map(sub, totals, attempt.tokens))
            dollars = (cost or 0) - (attempt.usd or 0)
            self._add(task, tokens=more, usd=dollars)
            self._learn.add((attempt.project, attempt.kind, attempt.agent))
        used = counted(Tokens(*totals), self._policy.usage.count) if any(totals) else 0
        received = used if ended else max(used, attempt.estimate)
        if received != attempt.charged:
            by = clock_correction(attempt.charged, received, attempt.weight, ended=True)
            self._clocks[task.project] = self._clocks.get(task.project, 0) + by
        found = changed(attempt, tokens=totals, usd=cost, charged=received, **changes)
        self._attempts[attempt.lease] = found
        return found

    def keep(self, attempt: Attempt) -> None:
        """An attempt as it is now."""
        self._attempts[attempt.lease] = attempt

    def scopes_used(self) -> set[str]:
        """The budgets' scopes in which usage was told."""
        return {scope for place in self.used for scope in _scopes(self._tx, *place)}

    def close(self) -> None:
        """Write everything."""
        self._tx.put_attempts(list(self._attempts.values()))
        self._tx.book(self._booked())
        if self._clocks:
            projects = self._tx.projects()
            moved = {
                name: (clock_after(projects[name].clock or 0, by), projects[name].present)
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
        more = [*tokens, usd, starts, completions]
        place = (task.project, task.pool, task.group)
        held = self._sums.get(place)
        self._sums[place] = list(map(add, held, more)) if held else more

    def _booked(self) -> list[Booking]:
        """What is booked in each scope."""
        sums: dict[str, list[int]] = {}
        for place, more in self._sums.items():
            for scope in _scopes(self._tx, *place):
                held = sums.get(scope)
                sums[scope] = list(map(add, held, more)) if held else more
        minute = minute_of(self._now)
        return [
            Booking(scope, minute, (held[0], held[1], held[2], held[3]), *held[4:])
            for scope, held in sums.items()
        ]

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
