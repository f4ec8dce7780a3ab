"""A queue in a folder of its own, called in this process as the console script calls it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fairlane.cli.main import run
from fairlane.model.instant import SECOND, parse_instant, show_instant
from tests.acceptance.commands import Said

START = "2026-01-30T12:00:00Z"


class Home:
    """A home folder and a clock that stands where it was set."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.now = parse_instant(START)
        self._capsys = capsys

    def run(self, *words: object) -> Said:
        """One command, as people call it."""
        self._capsys.readouterr()
        first, *rest = map(str, words)
        common = ["--home", str(self.folder), "--now", show_instant(self.now)]
        code = run([*common, first, *rest])
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)

    def ask(self, *words: object, code: int = 0) -> dict[str, Any]:
        """One command with `--json`; its exit code must be this."""
        said = self.run("--json", *words)
        assert said.code == code, said
        return said.document

    def error(self, *words: object, code: int = 1) -> dict[str, Any]:
        """A command that is refused, and says why on standard output alone."""
        said = self.run("--json", *words)
        assert (said.code, said.err) == (code, ""), said
        assert list(said.document) == ["schema", "error"]
        found: dict[str, Any] = said.document["error"]
        assert list(found) == ["code", "message", "hint"]
        return found

    def later(self, seconds: float) -> None:
        """Time passes."""
        self.now += round(seconds * SECOND)

    def policy(self, preset: str, *settings: str) -> None:
        """Rules for this home."""
        self.ask("policy", "use", preset)
        if settings:
            self.ask("policy", "set", *settings)

    def add(self, *words: object) -> str:
        """One task; its id."""
        task: str = self.ask("add", "work", *words)["tasks"][0]["id"]
        return task

    def lease(self, *words: object) -> dict[str, str]:
        """Take what may start: task -> lease."""
        return {row["task"]: row["lease"] for row in self.ask("lease", *words)["leases"]}

    def picks(self) -> list[str]:
        """What a cycle would start now."""
        return [pick["task"] for pick in self.ask("plan")["picks"]]

    def tasks(self, *words: object) -> dict[str, dict[str, Any]]:
        """The list, by id."""
        return {row["id"]: row for row in self.ask("list", *words)["tasks"]}

    def task(self, name: str) -> dict[str, Any]:
        """One task, whole."""
        found: dict[str, Any] = self.ask("show", name)["task"]
        return found

    def hold(self, name: str) -> str | None:
        """The code of what holds a task."""
        hold = self.tasks()[name]["hold"]
        return None if hold is None else str(hold["code"])

    def wait(self, name: str) -> float:
        """For how many seconds a task waits after a failure."""
        return (parse_instant(self.task(name)["backoff_until"]) - self.now) / SECOND

    def dump(self) -> list[str]:
        """Everything that is kept."""
        connection = sqlite3.connect(self.folder / "fairlane.db")
        try:
            return list(connection.iterdump())
        finally:
            connection.close()

    def facts(self) -> list[str]:
        """The same without records of decisions: these name what one process recorded before."""
        records = ('INSERT INTO "decisions"', """INSERT INTO "key_values" VALUES('decision',""")
        return [line for line in self.dump() if not line.startswith(records)]
