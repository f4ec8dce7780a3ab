"""Fail closed; and nothing is launched that no durable lease asks for."""

from __future__ import annotations

from fairlane.executors.base import Orders
from fairlane.testing.torture.model import Model
from fairlane.testing.torture.promises.base import Commit, Problem, Problems, promise


@promise("commit", 8)
def fails_closed(commit: Commit) -> Problems:
    """By a policy file that cannot be read nothing starts, and nothing is accepted."""
    if not commit.party.broken:
        return
    started = commit.started()
    if started and (not commit.party.daemon or commit.party.policy is None):
        names = ", ".join(row.task for row in started)
        yield Problem(f"{commit.process} started {names} though its policy file is broken")
    new = [after.task.id for before, after in commit.tasks if before is None]
    if new:
        yield Problem(f"{commit.process} accepted {new[0]} though its policy file is broken")


class Launches:
    """What was launched: the agent of each lease once."""

    def __init__(self) -> None:
        self._begun: dict[str, str] = {}  # lease: who launched it

    def check(self, model: Model, process: str, orders: Orders) -> Problems:
        """A launch that is about to happen."""
        lease = orders.env.get("FAIRLANE_LEASE")
        if lease is None or ".check." in orders.folder.name:
            return  # a check, which may run again
        row = model.attempts.get(lease)
        if row is None:
            yield Problem(f"{process} launches lease {lease}, which is not durable")
            return
        if str(row.fence) != orders.env.get("FAIRLANE_FENCE"):
            yield Problem(f"{process} launches lease {lease} with another fence", row.task)
        if lease in self._begun:
            yield Problem(
                f"{process} launches lease {lease}, which {self._begun[lease]} has launched",
                row.task,
            )
        self._begun[lease] = process


@promise("launch", 9)
def launches(begun: Launches, model: Model, process: str, orders: Orders) -> Problems:
    """Nothing is launched without a durable lease of that fence, nor twice for one lease."""
    yield from begun.check(model, process, orders)
