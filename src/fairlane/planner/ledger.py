"""Ledger: what is taken, by whom. A pick is entered at once, so a round never takes twice."""

from __future__ import annotations

from collections import defaultdict

from fairlane.model.instant import Instant

WorkspaceName = tuple[str, str]  # (project, workspace)
Probe = tuple[Instant, str]  # (start, task)


class Ledger:
    """What is in flight: by scope, locks, workspaces, slots, and tokens reserved."""

    __slots__ = ("holders", "locks", "probes", "slots", "tokens", "total", "usd", "workspaces")

    def __init__(self) -> None:
        self.total = 0
        self.holders: defaultdict[str, list[str]] = defaultdict(list)  # scope -> tasks in flight
        self.locks: dict[str, str] = {}  # lock -> task
        self.workspaces: dict[WorkspaceName, str] = {}  # workspace -> task
        self.slots: defaultdict[str, list[str]] = defaultdict(list)  # worker -> tasks on it
        self.tokens: dict[str, int] = {}  # scope -> tokens reserved
        self.usd: dict[str, int] = {}  # scope -> micro-dollars reserved
        self.probes: dict[str, list[Probe]] = {}  # unproved pool -> its probes

    def enter(self, task: str, scopes: tuple[str, ...], worker: str | None) -> None:
        """A task is in flight: it counts in every scope, and in its worker's slots."""
        self.total += 1
        holders = self.holders
        for scope in scopes:
            holders[scope].append(task)
        if worker is not None:
            self.slots[worker].append(task)

    def reserve(self, scopes: tuple[str, ...], tokens: int, usd: int) -> None:
        """Tokens and dollars that a task in flight may still use."""
        for scope in scopes:
            self.tokens[scope] = self.tokens.get(scope, 0) + tokens
            if usd:
                self.usd[scope] = self.usd.get(scope, 0) + usd
