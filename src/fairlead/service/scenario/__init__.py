"""Scenario files: a hand-written situation with a policy, a time, and what is expected."""

from __future__ import annotations

from fairlead.service.scenario.change import apply_change
from fairlead.service.scenario.expect import Expect, check
from fairlead.service.scenario.read import Scenario, build, load, parse, to_mapping

__all__ = [
    "Expect",
    "Scenario",
    "apply_change",
    "build",
    "check",
    "load",
    "parse",
    "to_mapping",
]
