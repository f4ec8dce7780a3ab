"""Tells a task what happens to it, one thing after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairlane.lifecycle.step import step
from fairlane.model.event import Happening
from fairlane.model.instant import MINUTE, Instant
from fairlane.model.task import Lease, Task
from fairlane.policy.policy import Policy

START: Instant = 1_000 * MINUTE
STEADY = {"retry.jitter": 0}  # waits without jitter can be read


@dataclass
class Told:
    """A task with a policy and a time of its own."""

    policy: Policy
    task: Any = field(default_factory=lambda: Task("t1", seq=1, created_at=START))
    now: Instant = START
    fence: int = 0
    last: Any = None

    def happens(self, *happenings: Happening | str, detail: str = "", **options) -> Any:
        for happening in map(Happening, happenings):
            self.last = step(self.task, happening, self.policy, self.now, detail=detail, **options)
            self.task = self.last.task
        return self.task

    def leased(self) -> Any:
        self.fence += 1
        lease = Lease(f"l{self.fence}", self.fence, expires_at=self.now + 5 * MINUTE)
        return self.happens("leased", lease=lease)

    def attempt(self, *ends: Happening | str, detail: str = "", **options) -> Any:
        """Wait for any backoff, lease, start, and end so, once for each end."""
        for end in ends:
            self.now = max(self.now, self.task.backoff_until or 0)
            self.leased()
            if end != Happening.LAUNCH_FAILED:
                self.happens("started")
            self.happens(end, detail=detail, **options)
        return self.task

    @property
    def wait(self) -> int:
        """What it waits from now, in seconds."""
        until = self.task.backoff_until
        return 0 if until is None else (until - self.now) // 1_000_000


def told(preset: str = "balanced", task: Task | None = None, **overrides) -> Told:
    """A new task under a preset; `retry__base="0s"` is the key `retry.base`."""
    keys = {key.replace("__", "."): value for key, value in overrides.items()}
    policy = Policy.preset(preset, STEADY | keys)
    return Told(policy) if task is None else Told(policy, task)
