"""Shares: what each project used of everything, beside what its weight asks for."""

from __future__ import annotations

from typing import Any

from fairlane.lifecycle.usage import Tokens, counted, minute_of
from fairlane.model.instant import Instant
from fairlane.policy.policy import Policy
from fairlane.service.reports.documents import dollars
from fairlane.service.reports.status import round_to
from fairlane.store.base import Booking, Reading


def share_rows(reading: Reading, policy: Policy, now: Instant) -> list[dict[str, Any]]:
    """Each project that used anything in the share window, or could start something now."""
    sums = reading.usage_sums("project:", minute_of(now - policy.share.window))
    projects = reading.projects()
    used = {name: sums.get(f"project:{name}") for name in projects}
    named = sorted(name for name in projects if used[name] or projects[name].present)
    tokens = {name: _tokens(used[name], policy) for name in named}
    total = sum(tokens.values())
    weights = sum(projects[name].weight for name in named)
    return [
        {
            "project": name,
            "weight": projects[name].weight,
            "tokens": tokens[name],
            "usd": dollars((used[name] or Booking("", 0)).usd),
            "share": round_to(tokens[name] / total) if total else 0.0,
            "target": round_to(projects[name].weight / weights) if weights else 0.0,
        }
        for name in named
    ]


def _tokens(booked: Booking | None, policy: Policy) -> int:
    return counted(Tokens(*booked.tokens), policy.usage.count) if booked else 0
