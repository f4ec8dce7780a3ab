"""Tasks that carry the work of others, in any mode in which tasks have a branch."""

from __future__ import annotations

import pytest

from fairlane.model.task import Task
from fairlane.workspaces import Place, carry
from fairlane.workspaces.place import repo_of
from tests.workspaces.yard import Yard, git

#: What a repository has before any task has worked.
PLAIN = {"README", "src"}


def prepare(yard: Yard, task: str, *starts: tuple[str, str]) -> Place:
    return yard.prepare(task, "desk" if yard.project.workspaces else None, starts)


def finish(yard: Yard, task: Task | str) -> str:
    return yard.finish(task, "desk" if yard.project.workspaces else None)


def done(yard: Yard, name: str, *starts: tuple[str, str], **files: str) -> carry.Carried:
    """A task that has written files; what another one carries of it."""
    place = prepare(yard, name, *starts)
    for file, text in files.items() or {name: f"{name}\n"}.items():
        (place.path / file).write_text(text)
    assert finish(yard, name) == ""
    return carry.Carried(name, head(yard, name))


def head(yard: Yard, task: str) -> str:
    return git(yard.repo, "rev-parse", f"fairlane/{task}")


def start(yard: Yard, task: str) -> carry.Start:
    found = carry.start_of(repo_of(yard.home, yard.project), f"fairlane/{task}")
    assert found is not None
    return found


def own_files(yard: Yard, task: str) -> list[str]:
    """The files that a task has changed itself."""
    since = start(yard, task).commit
    return git(yard.repo, "diff", "--name-only", since, f"fairlane/{task}").split()


def names(place: Place) -> set[str]:
    return {path.name for path in place.path.iterdir()} - {".git"}


class Killed(BaseException):
    """The process is gone."""


def kill_at(monkeypatch: pytest.MonkeyPatch, function: str, call: int) -> None:
    """End at one call of a function of `carry`, before it does anything."""
    real, calls = getattr(carry, function), iter(range(1, 100))

    def killed(*arguments: object) -> object:
        if next(calls) == call:
            raise Killed
        return real(*arguments)

    monkeypatch.setattr(carry, function, killed)
