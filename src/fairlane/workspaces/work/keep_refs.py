"""Keep references: git keeps what an attempt made, whatever becomes of its branch and folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from fairlane.model.project import Project
from fairlane.workspaces import git
from fairlane.workspaces.place import repo_of

#: Below it TASK/N is the head of an attempt, and TASK/N.start what it started from where git
#: would not keep that otherwise.
PREFIX = "refs/fairlane/keep"
#: Agents can make a reference lead to another one: that stays as it is.
_UPDATE = ("update-ref", "--no-deref")
_NAME = re.compile(rf"{PREFIX}/[\w.-]+/\d+(?:\.start)?", re.ASCII)


def keep(repo: git.Checkout, task: str, attempt: int, start: str, head: str) -> None:
    """From now on git keeps both commits; the caller holds the repository's lock."""
    name = f"{PREFIX}/{task}/{attempt}"
    git.run(repo, *_UPDATE, name, head)
    if git.commit_of(repo, start) and not git.is_ancestor(repo, start, head):
        git.run(repo, *_UPDATE, f"{name}.start", start)


def forget_work(
    home: Path, project: Project, is_over: Callable[[Iterable[str]], set[str]]
) -> set[str]:
    """Let git forget the work of tasks whose history is over; they are returned."""
    repo = repo_of(home, project)
    over = is_over({_task_of(name) for name in _names(repo)})
    if over:
        with git.one_at_a_time(home, repo):
            names = [name for name in _names(repo) if _task_of(name) in over]
            orders = "".join(f"delete {name}\n" for name in names)
            words = (*_UPDATE, "--stdin")
            git.execute(repo.path, words, repo.environment, given=orders.encode())
    return over


def count_kept(home: Path, project: Project) -> int:
    """How many references keep something in the repository of a project."""
    return len(_names(repo_of(home, project)))


def _names(repo: git.Checkout) -> list[str]:
    """Every reference that keeps something; agents can make more, with any name."""
    lines = git.run(repo, "for-each-ref", "--format=%(refname)", f"{PREFIX}/").splitlines()
    return [line for line in lines if _NAME.fullmatch(line)]


def _task_of(name: str) -> str:
    return name.removeprefix(f"{PREFIX}/").partition("/")[0]
