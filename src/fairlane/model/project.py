"""Project, group and budget: who the work is for, and what it may use."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from fairlane.model.record import dataclass

#: Clocks count tokens per unit of weight in millionths, so that every quotient is whole.
CLOCK_SCALE = 1_000_000


@dataclass(frozen=True, slots=True)
class Budget:
    """Most tokens or dollars in a window for a scope."""

    scope: str  # all, project:P, pool:P, group:G
    tokens: int | None = None
    usd: int | None = None  # micro-dollars
    window: str = "24h"
    warn_at: Fraction = Fraction(4, 5)
    on_exceeded: str = "finish"


@dataclass(frozen=True, slots=True)
class Project:
    """Who the work is for. The numbers below `template` are what planning knows of it."""

    name: str
    weight: int = 1  # 0: only when nobody else wants the slot
    max_in_flight: int | None = None
    budgets: tuple[Budget, ...] = ()
    status: str = "active"  # active, paused, archived
    workspaces: tuple[str, ...] | None = None  # None: not needed
    repo: str | None = None
    base: str | None = None
    prefix: str | None = None
    agent: str | None = None
    template: str | None = None
    pr: tuple[str, ...] = ()  # the command that opens a pull request from a branch

    tokens: int = 0  # used in the share window; in a snapshot with what is in flight, else without
    starts: int = 0  # in the share window
    completions: int = 0  # in the share window
    clock: int | None = None  # v, in CLOCK_SCALE; None: follows from `tokens`
    present: bool = True  # could start something when last planned


@dataclass(frozen=True, slots=True)
class Group:
    """Tasks followed together; done when all are done."""

    name: str
    parent: str | None = None
    priority: int | None = None  # of its tasks that name none, and of groups under it
    title: str = ""


def groups_under(groups: Mapping[str, Group], name: str) -> list[str]:
    """A group and all groups under it."""
    below: dict[str, list[str]] = {}
    for each in groups.values():
        if each.parent is not None:
            below.setdefault(each.parent, []).append(each.name)
    found = [name]
    for above in found:
        found += [each for each in below.get(above, ()) if each not in found]
    return found


def charge(tokens: int, weight: int) -> int:
    """What tokens add to a project's clock; weight 0 moves no clock."""
    return tokens * CLOCK_SCALE // weight if weight else 0
