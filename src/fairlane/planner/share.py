"""Share: whose turn it is between projects. It orders; it never holds anything."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairlane.model.amounts import clock_after
from fairlane.model.plan import Clocks
from fairlane.model.project import Project, charge
from fairlane.model.snapshot import Snapshot
from fairlane.policy.policy import Policy

#: After all others: weight 0 starts only when nobody else wants the slot.
_LAST = (1, 0)
_EQUAL = (0, 0)


class Flight(NamedTuple):
    """What an attempt in flight means for its project's share."""

    project: str
    estimate: int
    used: int


class Share:
    """What each project has received, as the policy counts it; the smaller the key, the sooner."""

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        flights: list[Flight],
        active: frozenset[str],
    ) -> None:
        self._rules = policy.share
        self._projects = snapshot.projects
        #: Whether one project's pick moves the keys of the others.
        self.moves_all = self._rules.mode == "deficit" and not self._rules.frozen
        self.everyone = snapshot.clock
        self.clocks = {
            name: clock_after(self.everyone, _received_before(project, flights))
            if project.clock is None
            else project.clock
            for name, project in snapshot.projects.items()
        }
        self.present = {name: project.present for name, project in snapshot.projects.items()}
        self.starts = {name: project.starts for name, project in snapshot.projects.items()}
        counted = [snapshot.projects[name] for name in sorted(active)]
        self._weights = sum(project.weight for project in counted)
        self._received = {name: project.tokens for name, project in snapshot.projects.items()}
        if not self._rules.frozen:
            for flight in flights:
                self._received[flight.project] += max(0, flight.estimate - flight.used)
        self._total = sum(self._received[project.name] for project in counted)

    def arrive(self, present: frozenset[str]) -> None:
        """Whoever becomes present returns with no more than the idle credit of catching up."""
        for name in self._projects:
            if name not in present:
                self.present[name] = False
                continue
            weight = self._projects[name].weight
            if weight and not self.present[name]:
                floor = self.everyone - charge(self._rules.idle_credit, weight)
                self.clocks[name] = max(self.clocks[name], floor)
            # Weight 0 has no clock to be behind with: given a weight, it arrives like any other.
            self.present[name] = bool(weight)

    def guarantee(self, name: str) -> int:
        """0 for a project with fewer starts (or completions) than it is owed in the window."""
        project = self._projects[name]
        had = self.starts[name]
        if self._rules.guarantee_counts == "completions":
            had = project.completions
        return 0 if project.weight and had < self._rules.guarantee else 1

    def key(self, name: str) -> tuple[int, int]:
        """The project that is furthest behind its share has the smallest key."""
        if self._rules.mode == "none":
            return _EQUAL
        weight = self._projects[name].weight
        if not weight:
            return _LAST
        if self._rules.mode == "virtual-time":
            return (0, self.clocks[name])
        if not self._weights:
            return _EQUAL
        # received/total - weight/weights, multiplied by both sums: whole numbers, same order.
        return (0, self._received[name] * self._weights - weight * (self._total or 1))

    def take(self, name: str, estimate: int) -> None:
        """A pick of this project: its clock moves, and what it is about to use counts."""
        self.starts[name] += 1
        if self._rules.mode == "none":
            return
        weight = self._projects[name].weight
        if self._rules.mode == "virtual-time" and weight:
            behind = [self.clocks[each] for each, present in self.present.items() if present]
            self.everyone = max(self.everyone, min(behind, default=self.everyone))
            self.clocks[name] = clock_after(self.clocks[name], charge(estimate, weight))
        elif self._rules.mode == "deficit" and not self._rules.frozen:
            self._received[name] += estimate
            self._total += estimate

    def numbers(self, name: str) -> dict[str, Any]:
        """The numbers that decide, as they are shown."""
        shown: dict[str, Any] = {"mode": self._rules.mode, "weight": self._projects[name].weight}
        if self._rules.mode == "virtual-time":
            shown |= {"clock": self.clocks[name], "everyone": self.everyone}
        elif self._rules.mode == "deficit":
            received = {"received": self._received[name], "received_by_all": self._total}
            shown |= received | {"weights": self._weights}
        return shown

    def after(self) -> Clocks:
        """The clocks that commit stores."""
        if self._rules.mode != "virtual-time":
            return Clocks(self.everyone, {})
        rows = {name: (self.clocks[name], self.present[name]) for name in self.clocks}
        return Clocks(self.everyone, rows)


def _received_before(project: Project, flights: list[Flight]) -> int:
    """How far a project without a clock is past `V`: what it used, and what is in flight."""
    mine = [flight for flight in flights if flight.project == project.name]
    before = project.tokens - sum(flight.used for flight in mine)
    received = sum(charge(max(each.used, each.estimate), project.weight) for each in mine)
    return charge(before, project.weight) + received
