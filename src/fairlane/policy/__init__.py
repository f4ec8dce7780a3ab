"""How to decide, as data: the policy language, its presets, and how files of it are read."""

from __future__ import annotations

from fairlane.model.project import Budget
from fairlane.policy.policy import Policy
from fairlane.policy.schema import is_calendar, window_micros

__all__ = ["Budget", "Policy", "is_calendar", "window_micros"]
