"""Nothing starts where a budget is spent or reserved to its limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlane.lifecycle.usage import window_end
from fairlane.model.instant import Instant, show_instant
from fairlane.model.plan import Hold
from fairlane.planner.rules import BudgetLine, LaneRules

if TYPE_CHECKING:
    from fairlane.planner.round import Round

CODES: tuple[str, ...] = ("budget",)


def concerns(lane: LaneRules, round: Round) -> bool:
    """Whether there is any budget."""
    return bool(round.rules.budgets)


def check(lane: LaneRules, round: Round) -> Iterator[Hold]:
    """Held when spent + reserved reaches the limit of any budget that covers it."""
    for scope in lane.scopes:
        for line in round.rules.budgets.get(scope, ()):
            reserved = reserved_in(line, round)
            if line.spent + reserved >= line.limit:
                until = frees_at(line, reserved, round.now)
                yield Hold("budget", "budget", _sentence(line, reserved, until), until)


def reserved_in(line: BudgetLine, round: Round) -> int:
    """What is in flight may still use of this budget."""
    taken = round.ledger.tokens if line.budget.tokens is not None else round.ledger.usd
    return taken.get(line.budget.scope, 0)


def frees_at(line: BudgetLine, reserved: int, now: Instant) -> Instant | None:
    """When enough of what was spent has left the window; of a calendar window, when it ends."""
    if line.usage is None or not line.usage.leaves:
        return window_end(line.budget.window, now) if reserved < line.limit else None
    spent, part = line.spent, 1 if line.budget.tokens is not None else 2
    for leave in (leave for leave in line.usage.leaves if leave[0] > now):
        spent -= leave[part]
        if spent + reserved < line.limit:
            return leave[0]
    return None


def _sentence(line: BudgetLine, reserved: int, until: Instant | None) -> str:
    and_reserved = f" and {_amount(line, reserved)} reserved" if reserved else ""
    used = f"{_amount(line, line.spent)} used{and_reserved} of {_amount(line, line.limit)}"
    frees = f", frees at {show_instant(until)}" if until is not None else ""
    return f"budget of {line.budget.scope} ({line.budget.window}) is used up: {used}{frees}"


def _amount(line: BudgetLine, number: int) -> str:
    return f"{number} tokens" if line.budget.tokens is not None else f"${number / 1_000_000:.2f}"
