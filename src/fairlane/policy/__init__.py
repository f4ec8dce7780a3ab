"""How to decide, as data: the policy language, its presets, and how files of it are read."""

from __future__ import annotations

from fairlane.policy.policy import Budget, Policy, is_calendar, window_micros

__all__ = ["Budget", "Policy", "is_calendar", "window_micros"]
