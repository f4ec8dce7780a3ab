"""What projects and budgets have used, summed up again where something was booked."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.lifecycle import usage as windows
from fairlane.model.instant import Instant, minute_of
from fairlane.model.project import Budget, Project, Tokens, Usage, counted
from fairlane.model.record import changed
from fairlane.policy.policy import Policy
from fairlane.store.base import Booking, Reading

Projects = dict[str, Project]
_EVER: Instant = -(1 << 62)


class Standing:
    """Projects with what they used, started and completed in the share window."""

    def __init__(self) -> None:
        self._since: Instant | None = None
        self._sums: dict[str, Booking] = {}
        self._booked: set[str] = set()  # projects in which something was booked since
        self._stood: tuple[Projects, Projects] = {}, {}  # as they are, and with what they used

    def book(self, reading: Reading, scopes: set[str]) -> None:
        """Something was booked in these scopes."""
        for scope in scopes:
            kind, _, name = scope.partition(":")
            if kind == "project" and self._since is not None:
                booked = reading.usage_sums(scope, self._since).get(scope)
                self._booked.add(name)
                if booked is None:
                    self._sums.pop(scope, None)
                else:
                    self._sums[scope] = booked

    def of(self, reading: Reading, projects: Projects, policy: Policy, now: Instant) -> Projects:
        """These projects; the same objects where nothing changed."""
        if not counts_usage(policy):
            return projects
        since = minute_of(now - policy.share.window)
        if since != self._since:
            self._sums = reading.usage_sums("project:", since)
            self._since = since
            self._booked |= projects.keys()
        before, stood = self._stood
        if projects is not before or self._booked:
            stands = dict(stood)
            for name, project in projects.items():
                if project is not before.get(name) or name in self._booked:
                    stands[name] = self._stand(project, policy, stood.get(name))
            stood = {name: stands[name] for name in projects}
            self._stood, self._booked = (projects, stood), set()
        return stood

    def _stand(self, project: Project, policy: Policy, before: Project | None) -> Project:
        booked = self._sums.get(f"project:{project.name}")
        if booked is None:
            return project
        counts = booked.tokens, booked.starts, booked.completions
        stands = standing_of(project, policy, *counts)
        return before if before == stands else stands


class Budgets:
    """What was spent of every budget, and when it frees."""

    def __init__(self) -> None:
        self._of: tuple[Projects, list[Budget]] | None = None
        self._bookings: dict[str, tuple[Instant, list[Booking]]] = {}  # by scope: since when

    def book(self, scopes: set[str]) -> None:
        """Something was booked in these scopes."""
        for scope in scopes & self._bookings.keys():
            del self._bookings[scope]

    def spent(
        self, reading: Reading, projects: Projects, policy: Policy, now: Instant
    ) -> tuple[Usage, ...]:
        """Of each, what was spent in its window."""
        if self._of is None or self._of[0] is not projects:
            rules = {(rule.scope, rule.window): rule for rule in policy.budget}
            for project in projects.values():
                rules |= {(rule.scope, rule.window): rule for rule in project.budgets}
            self._of = projects, list(rules.values())
        return tuple([self._spent(reading, budget, policy, now) for budget in self._of[1]])

    def _spent(self, reading: Reading, budget: Budget, policy: Policy, now: Instant) -> Usage:
        start = windows.window_start(budget.window, now)
        start = _EVER if start is None else start
        return spent_of(budget, self._since(reading, budget.scope, start), policy, now)

    def _since(self, reading: Reading, scope: str, start: Instant) -> list[Booking]:
        known = self._bookings.get(scope)
        if known is None or start < known[0]:
            known = self._bookings[scope] = start, reading.usage(scope, start)
        return [booking for booking in known[1] if booking.minute >= start]


def counts_usage(policy: Policy) -> bool:
    """Whether a plan depends on what projects used, started and completed."""
    needs_counts = "guarantee" in policy.order and policy.share.guarantee > 0
    return policy.share.mode == "deficit" or needs_counts


def standing_of(
    project: Project, policy: Policy, tokens: Sequence[int], starts: int, completions: int
) -> Project:
    """A project with what it did in the share window."""
    used = counted(tokens, policy.usage.count)
    return changed(project, tokens=used, starts=starts, completions=completions)


def spent_of(budget: Budget, bookings: list[Booking], policy: Policy, now: Instant) -> Usage:
    """What was spent of a budget."""
    buckets = [
        (booking.minute, counted(Tokens(*booking.tokens), policy.usage.count), booking.usd)
        for booking in bookings
    ]
    tokens, usd = windows.spent(buckets, budget.window, now)
    limit, spent = (budget.tokens, tokens) if budget.tokens is not None else (budget.usd, usd)
    near = spent * 2 >= (limit or 0)
    leaves = windows.leaves(buckets, budget.window, now) if near else ()
    return Usage(budget.scope, budget.window, tokens, usd, leaves)
