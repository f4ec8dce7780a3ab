"""Budgets: whoever books usage closes here, so that every budget it counts in is watched."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from fairlane.lifecycle.stops import Stop, request_stop
from fairlane.lifecycle.usage import Tokens, counted, window_start
from fairlane.model.project import Budget
from fairlane.model.task import Task
from fairlane.service.booking import Books, scopes_of
from fairlane.service.journal import Journal


def close(journal: Journal, books: Books) -> dict[str, Task]:
    """Write what happened and what was used; the tasks that a budget stops now, by id."""
    watching = _watching(journal, books)
    journal.close()  # first: what has ended is no longer in flight, and nobody stops it
    books.close()
    stopped: dict[str, Task] = {}
    for budget in watching:
        if _exceeded(journal, budget) and budget.on_exceeded == "stop":
            stopped |= _stop_all(journal, budget.scope, stopped)
    journal.close()
    return stopped


def _watching(journal: Journal, books: Books) -> Iterable[Budget]:
    """The budgets in which something counts that was booked."""
    projects = journal.tx.projects().values() if books.used else ()
    budgets = [*journal.policy.budget, *(each for one in projects for each in one.budgets)]
    scopes = books.scopes_used() if budgets else set()
    return [each for each in budgets if each.scope in scopes]


def _exceeded(journal: Journal, budget: Budget) -> bool:
    """Whether a budget is used up; that, and that it nearly is, is told once a window."""
    tx, policy = journal.tx, journal.policy
    rows = tx.usage(budget.scope, window_start(budget.window, journal.now))
    limit = budget.tokens if budget.tokens is not None else budget.usd or 0
    if budget.tokens is not None:
        used = sum(counted(Tokens(*row.tokens), policy.usage.count) for row in rows)
    else:
        used = sum(row.usd for row in rows)
    level = 2 if used >= limit else 1 if Fraction(used) >= budget.warn_at * limit else 0
    name = f"budget:{budget.scope}:{budget.window}"
    before = (tx.value(name) or {}).get("level", 0)
    if level != before:
        tx.put_value(name, {"level": level})
    if level > before:
        kind = "budget_exceeded" if level == 2 else "budget_warning"
        told = {"scope": budget.scope, "window": budget.window, "used": used, "limit": limit}
        journal.note(kind, None, **told)
    return level == 2


def _stop_all(journal: Journal, scope: str, stopped: dict[str, Task]) -> dict[str, Task]:
    """Ask for the stop of everything in flight in a scope, but of what is being stopped."""
    found = {}
    for task in journal.tx.in_flight():
        known = task.stop_requested or task.id in stopped
        if not known and scope in scopes_of(journal.tx, task):
            asked = request_stop(task, Stop.BUDGET, f"budget of {scope} is used up")
            journal.keep(asked)
            journal.note("stop_requested", asked, stop=asked.stop_requested)
            found[asked.id] = asked
    return found
