"""What the tests of git share: a yard with a hostile agent, in every mode of workspaces."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fairlane import workspaces
from fairlane.model.errors import FairlaneError
from fairlane.model.task import Status, Task
from tests.workspaces.conftest import hostile, yard
from tests.workspaces.hostile import Hostile

__all__ = ["MERGING", "MODES", "Attack", "hostile", "yard"]

MODES = ("worktree", "pool", "shared", "clone")
MERGING = Task("t1", merge="merge")


class Attack:
    """An agent at work in one mode; afterwards everything that Fairlane does is done."""

    def __init__(self, hostile: Hostile, mode: str) -> None:
        self.hostile, self.yard, self.mode = hostile, hostile.yard, mode
        self.workspace = {"pool": "w1", "shared": "shared"}.get(mode)
        self.yard.workspaces(mode=mode)
        if mode == "pool":
            self.yard.change(workspaces=("w1",))
        self.path: Path = self.yard.work(MERGING, workspace=self.workspace).path
        self.dot = self.path / ".git"
        self.common = self.yard.repo / ".git"

    def go_through(self) -> str:
        """What finishing says; then list, clean, and prepare the next attempts."""
        problem = self.yard.finish(MERGING, self.workspace)
        self.yard.leftovers(t1=Status.PARKED)
        for leftover in self.yard.leftovers(t1=Status.DONE).values():
            if not leftover.keep:
                with suppress(FairlaneError):
                    workspaces.clean(self.yard.home, leftover, self.yard.project)
        for task in ("t1", "t2"):
            with suppress(FairlaneError):
                self.yard.prepare(task, self.workspace)
        return problem

    def assert_refused(self, *words: str) -> None:
        """Finishing names the file, nothing of the agent's ran, no other repository changed."""
        problem = self.go_through()
        for word in words:
            assert word in problem, f"{word!r} is not in {problem!r}"
        self.hostile.assert_harmless()
