"""Usage: booked to its attempt and scopes; clocks, estimates and budgets follow it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import add, sub

from fairlane.engine.task_changes import TaskChanges
from fairlane.lifecycle.transitions import Stop, request_stop
from fairlane.lifecycle.usage import percentile70, window_start
from fairlane.model.amounts import MICRO_DOLLARS_MAX, TOKENS_MAX
from fairlane.model.instant import Instant, minute_of
from fairlane.model.project import (
    Budget,
    Group,
    History,
    Project,
    Tokens,
    clock_after,
    clock_correction,
    counted,
    each_counted,
    usage_scopes,
)
from fairlane.model.record import changed
from fairlane.model.task import Attempt, Task
from fairlane.policy.policy import Policy
from fairlane.store.base import Booking, Reading, Writing

#: How many of the newest attempts an estimate is taken from.
SAMPLES = 50


#: A project, pool and group: where usage counts.
_Place = tuple[str, str | None, str | None]


def scopes_of(reading: Reading, task: Task) -> tuple[str, ...]:
    """The budgets' scopes in which a task's usage counts."""
    return _scopes(reading, task.project, task.pool, task.group)


def _scopes(reading: Reading, project: str, pool: str | None, group: str | None) -> tuple[str, ...]:
    groups = {} if group is None else reading.table(Group)
    scopes = usage_scopes(
        project, pool, group, lambda name: groups[name].parent if name in groups else None
    )
    return tuple(scopes)


class Books:
    """What one transaction books: summed up, and written once."""

    def __init__(self, tx: Writing, policy: Policy, now: Instant) -> None:
        self._tx, self._policy, self._now = tx, policy, now
        self._sums: dict[_Place, list[int]] = {}  # four counters, usd, starts, completions
        self._clocks: dict[str, int] = {}  # project -> by how much its clock moves
        self._learn: set[tuple[str, str, str | None]] = set()
        self._attempts: dict[str, Attempt] = {}
        self.used: set[_Place] = set()  # where usage was reported, even the same as before

    def start(self, task: Task) -> None:
        """A task was leased."""
        self._add((task.project, task.pool, task.group), starts=1)

    def not_started(self, task: Task, attempt: Attempt) -> None:
        """A lease was given back untouched: it was no start."""
        minute = minute_of(attempt.leased_at)
        scopes = scopes_of(self._tx, task)
        self._tx.book([Booking(scope, minute, starts=-1) for scope in scopes])

    def complete(self, task: Task) -> None:
        """A task is done."""
        self._add((task.project, task.pool, task.group), completions=1)

    def use(
        self,
        attempt: Attempt,
        task: Task,
        tokens: tuple[int, int, int, int] | None,
        usd: int | None,
        ended: bool,
        **changes: object,
    ) -> Attempt:
        """An attempt's totals so far; only what is new is booked, and its clock corrected.

        It counts for the project of the attempt: the task may have gone to another one since.
        `changes` are what else has become of the attempt.
        """
        place = (attempt.project, task.pool, task.group)
        self.used.add(place)
        totals = attempt.tokens
        if tokens is not None:
            capped = (min(count, TOKENS_MAX) for count in tokens)  # a sum may be too large
            totals = tuple(map(max, capped, attempt.tokens))  # type: ignore[assignment]
        cost = attempt.usd
        if usd is not None:
            cost = max(min(usd, MICRO_DOLLARS_MAX), attempt.usd or 0)
        news = totals != attempt.tokens or (cost or 0) != (attempt.usd or 0)
        if news:
            more = tuple(map(sub, totals, attempt.tokens))
            dollars = (cost or 0) - (attempt.usd or 0)
            self._add(place, tokens=more, usd=dollars)
        if ended and any(totals) and (news or attempt.ended_at is None):  # it counts when it ends
            self._learn.add((attempt.project, attempt.kind, attempt.agent))
        used = counted(Tokens(*totals), self._policy.usage.count) if any(totals) else 0
        received = used if ended else max(used, attempt.estimate)
        if received != attempt.charged:
            by = clock_correction(attempt.charged, received, attempt.weight, ended=True)
            self._clocks[attempt.project] = self._clocks.get(attempt.project, 0) + by
        booked = changed(attempt, tokens=totals, usd=cost, charged=received, **changes)
        self._attempts[attempt.lease] = booked
        return booked

    def keep(self, attempt: Attempt) -> None:
        """An attempt as it is now."""
        self._attempts[attempt.lease] = attempt

    def scopes_used(self) -> set[str]:
        """The budgets' scopes in which usage was reported."""
        return {scope for place in self.used for scope in _scopes(self._tx, *place)}

    def close(self) -> None:
        """Write everything."""
        self._tx.put_attempts(list(self._attempts.values()))
        self._tx.book(self._booked())
        if self._clocks:
            projects = self._tx.table(Project)
            moved = {
                name: (clock_after(projects[name].clock or 0, by), projects[name].present)
                for name, by in self._clocks.items()
                if by and name in projects
            }
            self._tx.put_clocks(moved)
        if self._learn:
            keys = sorted(self._learn, key=str)
            self._tx.put(*[_learned(self._tx, self._policy, *key) for key in keys])

    def _add(
        self,
        place: _Place,
        tokens: tuple[int, int, int, int] = (0, 0, 0, 0),
        usd: int = 0,
        starts: int = 0,
        completions: int = 0,
    ) -> None:
        more = [*tokens, usd, starts, completions]
        before = self._sums.get(place)
        self._sums[place] = list(map(add, before, more)) if before else more

    def _booked(self) -> list[Booking]:
        """What is booked in each scope."""
        sums: dict[str, list[int]] = {}
        for place, more in self._sums.items():
            for scope in _scopes(self._tx, *place):
                before = sums.get(scope)
                sums[scope] = list(map(add, before, more)) if before else more
        minute = minute_of(self._now)
        return [
            Booking(scope, minute, (row[0], row[1], row[2], row[3]), *row[4:])
            for scope, row in sums.items()
        ]


def _learned(tx: Writing, policy: Policy, project: str, kind: str, agent: str | None) -> History:
    """What the newest attempts tell; where there are few, also those that were made elsewhere."""
    rows = tx.recent(project, kind, agent, SAMPLES)
    used = each_counted([row.tokens for row in rows], policy.usage.count)
    priced = [(each, row.usd) for each, row in zip(used, rows, strict=True) if row.usd is not None]
    used += (tx.value(samples_value(project, kind, agent)) or [])[: SAMPLES - len(used)]
    return History(
        project,
        kind,
        agent,
        percentile70(used) if used else policy.share.default_estimate,
        sum(each for each, _ in priced),
        sum(usd for _, usd in priced),
    )


def knows_samples(reading: Reading, project: str, kind: str, agent: str | None) -> bool:
    """Whether there is something to learn from that was made elsewhere."""
    return reading.value(samples_value(project, kind, agent)) is not None


def learn_from(
    tx: Writing, policy: Policy, project: str, kind: str, agent: str | None, used: Sequence[int]
) -> None:
    """Tokens of attempts that were made elsewhere, the newest first: estimates begin with them."""
    tx.put_value(samples_value(project, kind, agent), list(used[:SAMPLES]))
    tx.put(_learned(tx, policy, project, kind, agent))


def samples_value(project: str, kind: str, agent: str | None) -> str:
    """Under which name the tokens of attempts that were made elsewhere are kept."""
    return f"samples:{project}:{kind}:{agent or ''}"


def close_books(changes: TaskChanges, books: Books) -> dict[str, Task]:
    """Write what happened and what was used; the tasks that a budget stops now, by id."""
    watching = _watching(changes, books)
    changes.close()  # first: what has ended is no longer in flight, and nobody stops it
    books.close()
    stopped: dict[str, Task] = {}
    for budget in watching:
        if _exceeded(changes, budget) and budget.on_exceeded == "stop":
            stopped |= _stop_all(changes, budget.scope, stopped)
    changes.close()
    return stopped


def _watching(changes: TaskChanges, books: Books) -> list[Budget]:
    """The budgets in which something counts that was booked."""
    projects = changes.tx.table(Project).values() if books.used else ()
    budgets = [
        *changes.policy.budget,
        *(budget for project in projects for budget in project.budgets),
    ]
    scopes = books.scopes_used() if budgets else set()
    return [budget for budget in budgets if budget.scope in scopes]


def _exceeded(changes: TaskChanges, budget: Budget) -> bool:
    """Whether a budget is used up; an event reports that, or that it nearly is, once a window."""
    tx, policy = changes.tx, changes.policy
    rows = tx.usage(budget.scope, window_start(budget.window, changes.now))
    limit = budget.tokens if budget.tokens is not None else budget.usd or 0
    if budget.tokens is not None:
        used = sum(counted(Tokens(*row.tokens), policy.usage.count) for row in rows)
    else:
        used = sum(row.usd for row in rows)
    level = 2 if used >= limit else 1 if Fraction(used) >= budget.warn_at * limit else 0
    unit = "usd" if budget.tokens is None else "tokens"
    # There may be several for one scope and window: each has its own level.
    name = f"budget:{budget.scope}:{budget.window}:{limit} {unit}:{budget.warn_at}"
    before = (tx.value(name) or {}).get("level", 0)
    if level != before:
        tx.put_value(name, {"level": level})
    if level > before:
        kind = "budget_exceeded" if level == 2 else "budget_warning"
        changes.note(kind, None, scope=budget.scope, window=budget.window, used=used, limit=limit)
    return level == 2


def _stop_all(changes: TaskChanges, scope: str, stopped: dict[str, Task]) -> dict[str, Task]:
    """Ask for the stop of everything in flight in a scope, except of what is being stopped."""
    asked_now = {}
    for task in changes.tx.in_flight():
        known = task.stop_requested or task.id in stopped
        if not known and scope in scopes_of(changes.tx, task):
            asked = request_stop(task, Stop.BUDGET, f"budget of {scope} is used up")
            changes.keep(asked)
            changes.note("stop_requested", asked, stop=asked.stop_requested)
            asked_now[asked.id] = asked
    return asked_now
