"""Converted: what another scheduler's files amount to here, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlane.model.instant import Instant
from fairlane.model.task import Status


@dataclass(frozen=True, slots=True)
class Brought:
    """One task with its past: what a new task cannot have."""

    record: Mapping[str, Any]  # the model's fields
    status: Status = Status.QUEUED  # queued, done, parked, canceled
    created_at: Instant | None = None  # None: now
    ended_at: Instant | None = None
    failures: int = 0
    reason: str = ""  # why it is parked or canceled
    used: tuple[tuple[Instant, int], ...] = ()  # when, how many tokens


@dataclass(frozen=True, slots=True)
class Paused:
    """A scope in which nothing starts."""

    scope: str = "all"
    by: str = ""
    at: Instant | None = None
    reason: str = ""


@dataclass(slots=True)
class Converted:
    """What follows from the files, and what does not."""

    preset: str | None = None  # None: they hold no rules, so those in force stay
    policy: dict[str, Any] = field(default_factory=dict)  # plain keys: caps.kind:code
    budgets: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)  # agent
    called: dict[str, str] = field(default_factory=dict)  # key here -> what it is called there
    projects: dict[str, dict[str, Any]] = field(default_factory=dict)
    pauses: list[Paused] = field(default_factory=list)
    tasks: list[Brought] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what means something else now, and why
    unknown: list[str] = field(default_factory=list)  # keys without a counterpart

    def rule(self, key: str, value: Any, called: str) -> None:
        """A key of the policy; nothing where the other side is silent."""
        if value is not None:
            self.policy[key] = value
            self.called[key] = called

    def note(self, text: str) -> None:
        """Something that people should know."""
        self.notes.append(text)
