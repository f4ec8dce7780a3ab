"""Usage adds up: bookings, share clocks and budgets follow what attempts have used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from fairlane.model.project import CLOCK_MAX, Budget
from fairlane.model.task import Attempt, Status, Task
from fairlane.testing.torture.model import facts
from fairlane.testing.torture.promises.base import Commit, Problem, Problems, promise
from fairlane.testing.torture.promises.gates import used_of
from fairlane.testing.torture.promises.holders import Ground

#: What a booking counts, in the order of its amounts.
COUNTED = ("input", "output", "cache read", "cache write", "usd", "starts", "completions")


@promise("attempt", 2)
def totals_grow(
    commit: Commit, before: Attempt | None, after: Attempt, ground: Ground | None
) -> Problems:
    """What an attempt has used only grows, and its charge is what it has received."""
    was = before.tokens if before is not None else (0, 0, 0, 0)
    if any(now < then for then, now in zip(was, after.tokens, strict=True)):
        yield Problem(f"tokens of lease {after.lease} fell: {was} to {after.tokens}", after.task)
    if before is None:
        return
    if (after.usd or 0) < (before.usd or 0):
        yield Problem(f"cost of lease {after.lease} fell to {after.usd}", after.task)
    used = facts.count_tokens(after.tokens, commit.policy)
    ended = after.ended_at is not None
    received = used if ended else max(used, after.estimate)
    news = after.tokens != before.tokens or (ended and before.ended_at is None)
    if news and after.charged != received:
        problem = f"lease {after.lease} was charged with {after.charged}, it received {received}"
        yield Problem(problem, after.task)


@promise("commit", 2)
def bookings_add_up(commit: Commit) -> Problems:
    """In each scope what was booked is what attempts have used, started and completed since."""
    booked: Counter[tuple[str, str]] = Counter()
    for row in commit.bookings:
        amounts = (*row.tokens, row.usd, row.starts, row.completions)
        for what, amount in zip(COUNTED, amounts, strict=True):
            booked[row.scope, what] += amount
    wanted: Counter[tuple[str, str]] = Counter()
    for before, after in commit.attempts:
        _enter(commit, wanted, before, after)
    for cell in sorted(booked.keys() | wanted.keys()):
        if booked[cell] != wanted[cell]:
            scope, what = cell
            yield Problem(f"booked in {scope}: {booked[cell]} {what}, used {wanted[cell]}")


def _enter(
    commit: Commit, wanted: Counter[tuple[str, str]], before: Attempt | None, after: Attempt
) -> None:
    """What one change of an attempt must book."""
    task = commit.model.task(after.task)
    was, usd = (before.tokens, before.usd or 0) if before is not None else ((0, 0, 0, 0), 0)
    more = [now - then for then, now in zip(was, after.tokens, strict=True)]
    ended = after.outcome if before is None or before.outcome != after.outcome else None
    starts = (before is None) - (ended == "released")
    groups = commit.model.groups
    for scope in facts.budget_names(after.project, task, groups):
        for what, amount in zip(COUNTED, (*more, (after.usd or 0) - usd, starts), strict=False):
            wanted[scope, what] += amount
    for scope in facts.budget_names(task.project, task, groups) if ended == "succeeded" else ():
        wanted[scope, COUNTED[-1]] += 1


@promise("commit", 5)
def clocks_follow(commit: Commit) -> Problems:
    """Share clocks move by charge per weight, once a start, and by the correction at the end."""
    for name in sorted(commit.clocks.keys() | commit.moved.keys()):
        row = commit.model.projects.get(name)
        if row is None or row.clock is None or name not in commit.clocks:
            continue
        wanted = commit.clocks[name] + commit.moved.get(name, 0)
        if abs(wanted) < CLOCK_MAX and row.clock != wanted:
            yield Problem(f"the clock of project {name} is at {row.clock}, it must be at {wanted}")


def clock_moved(commit: Commit, before: Attempt | None, after: Attempt) -> int:
    """By how much one change of an attempt moves the clock of its project."""
    then = 0 if before is None else facts.clock_time(before.charged, after.weight)
    return facts.clock_time(after.charged, after.weight) - then


@promise("commit", 1)
def budgets_watched(commit: Commit) -> Problems:
    """Whatever books usage looks at the budgets: of one that is used up, what runs is stopped."""
    used = set()
    for before, after in commit.attempts:
        if before is not None and (before.tokens, before.usd) != (after.tokens, after.usd):
            task = commit.model.task(after.task)
            used |= set(facts.budget_names(after.project, task, commit.model.groups))
    if not used:
        return
    model = commit.model
    for budget in facts.budgets_of(used, commit.policy, model.projects):
        level = _level(commit, budget)
        yield from _told(commit, budget, level)
        if level == 2 and budget.on_exceeded == "stop":
            yield from _running(commit, budget)


def _level(commit: Commit, budget: Budget) -> int:
    """0: all is well; 1: nearly used up; 2: used up."""
    limit = budget.tokens if budget.tokens is not None else budget.usd or 0
    used = used_of(commit.model, budget, commit.policy, commit.now)
    return 2 if used >= limit else 1 if Fraction(used) >= budget.warn_at * limit else 0


def _told(commit: Commit, budget: Budget, level: int) -> Iterator[Problem]:
    limit = f"{budget.usd} usd" if budget.tokens is None else f"{budget.tokens} tokens"
    name = f"budget:{budget.scope}:{budget.window}:{limit}:{budget.warn_at}"
    kept = commit.model.values.get(name) or {}
    if kept.get("level", 0) != level:
        known = f"it counts as at level {kept.get('level', 0)}, it is at level {level}"
        yield Problem(f"budget of {budget.scope} ({budget.window}) was not looked at: {known}")


def _running(commit: Commit, budget: Budget) -> Iterator[Problem]:
    for attempt, task in commit.model.flying():
        covered = budget.scope in facts.budget_names(attempt.project, task, commit.model.groups)
        if covered and not task.stop_requested:
            yield Problem(f"budget of {budget.scope} is used up, and it was not stopped", task.id)


@promise("commit", 2)
def completions_counted(commit: Commit) -> Problems:
    """A task that becomes done is completed once."""
    for before, after in commit.tasks:
        task: Task = after.task
        if before is None or before.task.status is Status.DONE or task.status is not Status.DONE:
            continue
        ended = [
            row
            for was, row in commit.attempts
            if row.task == task.id and row.outcome == "succeeded"
            and (was is None or was.outcome != "succeeded")
        ]  # fmt: skip
        if len(ended) != 1:
            yield Problem(f"it became done by {len(ended)} attempts", task.id)
