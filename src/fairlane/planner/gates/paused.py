"""Nothing starts in a scope that is paused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlane.model.instant import show_instant
from fairlane.model.plan import Hold
from fairlane.model.project import Pause
from fairlane.planner.rules import LaneRules

if TYPE_CHECKING:
    from fairlane.planner.round import Round

CODES: tuple[str, ...] = ("paused",)


def concerns(lane: LaneRules, round: Round) -> bool:
    """Whether anything is paused."""
    return bool(round.rules.pauses)


def check(lane: LaneRules, round: Round) -> Iterator[Hold]:
    """Held when everything, its project, kind, pool or group is paused."""
    pauses = round.rules.pauses
    for scope in lane.scopes:
        if scope in pauses:
            yield Hold("paused", "paused", sentence(pauses[scope]))


def scope_words(scope: str) -> str:
    """A scope as people read it."""
    return "everything" if scope == "all" else scope.replace(":", " ", 1)


def sentence(pause: Pause) -> str:
    """Who paused what, since when."""
    what = scope_words(pause.scope)
    if pause.reason == "archived":
        return f"{what} is archived"
    text = f"{what} is paused"
    text += f" by {pause.by}" if pause.by else ""
    text += f" since {show_instant(pause.since)}" if pause.since is not None else ""
    return text + (f": {pause.reason}" if pause.reason not in ("", "paused") else "")
