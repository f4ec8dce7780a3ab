"""What a hostile agent can do to git: programs that leave a witness, and a second repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.workspaces.yard import Yard, git, look, make_repository

HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-checkout", "post-commit",
    "post-index-change", "post-merge", "post-rewrite", "pre-auto-gc", "pre-commit",
    "pre-merge-commit", "prepare-commit-msg", "reference-transaction",
)  # fmt: skip


class Hostile:
    """A yard with a program that must not run and a repository that must not change."""

    def __init__(self, yard: Yard, root: Path) -> None:
        self.yard = yard
        self.witness = root / "witness"
        self.program = root / "hostile"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> "{self.witness}"\ncat\n')
        self.program.chmod(0o755)
        self.other = make_repository(root / "other")
        (self.other / "README").write_text("half done\n")
        (self.other / "new").write_text("not added\n")
        self.before = self.look()

    @property
    def common(self) -> Path:
        return self.yard.repo / ".git"

    def look(self) -> dict[str, Any]:
        """All that must not change in the other repository."""
        refs = git(self.other, "for-each-ref", "--format=%(refname) %(objectname)")
        return {**look(self.other), "refs": refs}

    def hooks(self, folder: Path) -> None:
        """Every hook there is."""
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            (folder / name).write_text(self.program.read_text())
            (folder / name).chmod(0o755)

    def config(self, *pairs: str) -> Callable[[], None]:
        """Write `name=value` into the repository's own configuration."""

        def write() -> None:
            for pair in pairs:
                name, _, value = pair.partition("=")
                git(self.yard.repo, "config", name, value or str(self.program))

        return write

    def assert_harmless(self) -> None:
        """No program of the agent ran, and the other repository is as it was."""
        assert not self.witness.exists(), self.witness.read_text()
        assert self.look() == self.before
        assert not self.witness.exists(), "looking ran it"
