"""A home folder with one git repository, in which tasks find their places."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlane import workspaces
from fairlane.model.errors import FairlaneError
from fairlane.model.project import Project
from fairlane.model.task import Status, Task
from fairlane.settings import Settings, WorkspaceSettings
from fairlane.workspaces import Leftover, Place, WorkRecord


def git(folder: Path, *words: str) -> str:
    """What git prints; whatever this user has configured does not count."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_repository(folder: Path, somebody: bool = True) -> Path:
    """A repository with one commit on `main`, and perhaps somebody who commits there."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    who = ("user.name", "Ada"), ("user.email", "ada@example.org")
    for name, value in who if somebody else ():
        git(folder, "config", name, value)
    (folder / "README").write_text("one\n")
    (folder / "src").mkdir()
    (folder / "src" / "code").write_text("code\n")
    commit(folder, "first")
    return folder


def commit(folder: Path, message: str) -> str:
    """Commit whatever is there; the commit."""
    git(folder, "add", "-A")
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    git(folder, *author, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def look(folder: Path) -> dict[str, Any]:
    """All that must not change in a checkout: its branch, its commit, its files."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }
    status = git(folder, "status", "--porcelain", "--untracked-files=all")
    return {
        "head": (folder / ".git" / "HEAD").read_text(),
        "commit": git(folder, "rev-parse", "HEAD"),
        "status": status,
        "files": files,
    }


class Yard:
    """One home, one repository, one project `web`."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.home.mkdir()
        self.repo = make_repository(root / "web")
        self.project = Project("web", repo=str(self.repo))
        self.settings = Settings()

    def workspaces(self, **values: Any) -> None:
        """Other settings of workspaces."""
        self.settings = replace(self.settings, workspaces=WorkspaceSettings(**values))

    def change(self, **values: Any) -> None:
        """Another project."""
        self.project = replace(self.project, **values)

    def prepare(
        self,
        task: Task | str,
        workspace: str | None = None,
        starts: Sequence[tuple[str, str]] = (),
        sandboxed: bool = False,
    ) -> Place:
        return workspaces.prepare(
            self.home, self.settings, self.project, _task(task), workspace, sandboxed, starts
        )

    def finish(self, task: Task | str, workspace: str | None = None) -> str:
        """Keep the work of a success, then deliver it; the problem, if there is one."""
        whose = (self.home, self.settings, self.project, _task(task), workspace, False)
        try:
            work = workspaces.keep_work(*whose, attempt=1, success=True)
        except FairlaneError as error:
            return error.in_full(_task(task).id)
        return "" if work is None else workspaces.problem_of(workspaces.deliver(*whose, work))

    def keep(
        self, task: Task | str, workspace: str | None = None, attempt: int = 1, success: bool = True
    ) -> WorkRecord:
        """The end of an attempt, without a merge."""
        record = workspaces.keep_work(
            self.home, self.settings, self.project, _task(task), workspace,
            attempt=attempt, success=success,
        )  # fmt: skip
        assert record is not None
        return record

    def work(self, task: Task | str, *lines: str, workspace: str | None = None) -> Place:
        """An attempt that writes a file and leaves it uncommitted."""
        place = self.prepare(task, workspace)
        (place.path / _task(task).id).write_text("\n".join(lines) or "work\n")
        return place

    def leftovers(self, **statuses: Status) -> dict[str, Leftover]:
        """What `fairlane workspaces` lists, by name."""
        projects = {self.project.name: self.project}
        rows = workspaces.leftovers(self.home, self.settings, projects, statuses)
        return {each.name: each for each in rows}

    def files(self, commit: str) -> list[str]:
        """The files of a commit."""
        return git(self.repo, "ls-tree", "-r", "--name-only", commit).splitlines()

    def log(self, commit: str, form: str = "%s") -> list[str]:
        return git(self.repo, "log", f"--format={form}", commit).splitlines()

    def branches(self) -> list[str]:
        return git(self.repo, "branch", "--format=%(refname:short)").splitlines()


def _task(task: Task | str) -> Task:
    return Task(task) if isinstance(task, str) else task
