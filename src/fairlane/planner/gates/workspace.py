"""One attempt per workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairlane.model.plan import Hold
from fairlane.planner.rules import LaneRules

if TYPE_CHECKING:
    from fairlane.planner.round import Round

CODES: tuple[str, ...] = ("workspace", "reserved")


def concerns(lane: LaneRules, round: Round) -> bool:
    """Whether it works in a workspace."""
    names = round.snapshot.projects[lane.project].workspaces
    return lane.workspace is not None or names is not None


def check(lane: LaneRules, round: Round) -> Iterable[Hold]:
    """Held when the workspace it prefers is taken, or none of its project's is free."""
    if lane.workspace is not None:
        return _preferred(lane, lane.workspace, round)
    names = round.snapshot.projects[lane.project].workspaces
    return () if names is None or round.free_workspaces(lane) else _none_free(lane, names, round)


def _none_free(lane: LaneRules, names: tuple[str, ...], round: Round) -> Iterator[Hold]:
    taken = {name: round.ledger.workspaces.get((lane.project, name)) for name in names}
    holders = tuple(task for task in taken.values() if task is not None)
    if len(holders) < len(names):
        owners = {round.reserved_workspaces[lane.project, n].task for n in names if not taken[n]}
        text = f"the free workspaces of {lane.project} are reserved for overdue tasks"
        yield Hold("workspace", "reserved", text, None, tuple(sorted(owners)))
    else:
        by = ", ".join(f"{name} by {task}" for name, task in taken.items())
        text = f"no workspace of {lane.project} is free" + (f": {by}" if by else "")
        ends = [round.stale.get((lane.project, name)) for name in names]
        until = min((end for end in ends if end is not None), default=None)
        yield Hold("workspace", "workspace", text, until, holders)


def _preferred(lane: LaneRules, name: str, round: Round) -> Iterator[Hold]:
    place = (lane.project, name)
    holder = round.ledger.workspaces.get(place)
    owner = round.reserved_workspaces.get(place)
    if holder is not None:
        text = f"workspace {name} is taken by {holder}"
        yield Hold("workspace", "workspace", text, round.stale.get(place), (holder,))
    elif owner is not None and owner.lane is not lane:
        text = f"workspace {name} is reserved for {owner.task}, which is overdue"
        yield Hold("workspace", "reserved", text, None, (owner.task,))
