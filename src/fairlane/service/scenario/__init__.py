"""Scenario files: a hand-written situation with a policy, a time, and what is expected."""

from __future__ import annotations

from fairlane.service.scenario.change import apply_change
from fairlane.service.scenario.read import Expect, Scenario, build, check, load, parse, to_mapping

__all__ = ["Expect", "Scenario", "apply_change", "build", "check", "load", "parse", "to_mapping"]
