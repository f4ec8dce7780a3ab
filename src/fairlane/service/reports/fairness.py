"""Fairness: how far projects are behind each other, and the bound of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fairlane.model.project import CLOCK_SCALE, Project
from fairlane.model.record import dataclass
from fairlane.planner.rules import Caps
from fairlane.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Bound:
    """What the published bound is made of."""

    cost: int  # C: the largest estimate or cost of one attempt
    most: Mapping[str, int]  # k: most tasks in flight, by project
    guarantee: int  # starts that the guarantee may add

    @classmethod
    def of(
        cls, policy: Policy, projects: Mapping[str, Project], cost: int | None, room: int
    ) -> Bound:
        """`cost`: as above, if any attempt was made; `room`: slots where there is no cap `all`."""
        caps = Caps(policy, projects)
        room = room if caps["all"] is None else caps["all"]
        most = {}
        for name in projects:
            own = caps[f"project:{name}"]
            most[name] = room if own is None else min(own, room)
        owed = policy.share.guarantee if "guarantee" in policy.order else 0
        return cls(policy.share.default_estimate if cost is None else cost, most, owed)

    def part(self, project: Project) -> int:
        """One project's part: (k + 1 + guaranteed) · C / w."""
        starts = self.most[project.name] + 1 + self.guarantee
        return starts * self.cost // project.weight


class Gap(NamedTuple):
    """How far a project is behind the present one that is furthest ahead."""

    lag: int  # in weighted tokens
    ahead: Project


def behind(project: Project, projects: Mapping[str, Project], policy: Policy) -> Gap | None:
    """How far a project is behind; None where nobody shares with it now."""
    sharing = _sharing(projects, policy)
    own = sharing.pop(project.name, None)
    if own is None or not sharing:
        return None
    ahead = max(sharing, key=lambda name: (sharing[name], name))
    return Gap(max(0, sharing[ahead] - own) // CLOCK_SCALE, projects[ahead])


def lags(projects: Mapping[str, Project], policy: Policy) -> dict[str, int]:
    """How far each project is behind, as `behind` says it of one; empty where nobody shares."""
    sharing = _sharing(projects, policy)
    if len(sharing) < 2:
        return {}
    ahead = max(sharing.values())
    return {name: (ahead - clock) // CLOCK_SCALE for name, clock in sharing.items()}


def _sharing(projects: Mapping[str, Project], policy: Policy) -> dict[str, int]:
    """The clocks of the projects that share now.

    Clocks stop while a project is not present, so only time present together counts.
    """
    if policy.share.mode != "virtual-time":
        return {}
    return {
        name: project.clock
        for name, project in projects.items()
        if project.present and project.weight and project.clock is not None
    }
