"""Pauses as every interface shows them."""

from __future__ import annotations

from typing import Any

from fairlane.model.resources import Pause
from fairlane.service.reports.documents import shown
from fairlane.store.base import Reading


def pause_document(held: Pause) -> dict[str, Any]:
    """A pause as every interface shows it."""
    told = {"scope": held.scope, "by": held.by, "since": shown(held.since)}
    return told | {"reason": held.reason}


def live_pauses(reading: Reading) -> list[Pause]:
    """What is paused; a task that has ended since is no longer worth telling."""
    pauses = reading.pauses()
    names = [each.scope[5:] for each in pauses if each.scope.startswith("task:")]
    statuses = reading.statuses(names) if names else {}
    over = {f"task:{name}" for name, status in statuses.items() if status.final}
    return sorted((each for each in pauses if each.scope not in over), key=lambda each: each.scope)
