"""The folder of a Backlog.md board: its settings, and the files of its tasks."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fairlane.intake import outline
from fairlane.intake.files import path_of, read_text
from fairlane.intake.markdown.frontmatter import Page, split
from fairlane.intake.sources.base import Where
from fairlane.model.errors import Invalid

WHAT = "the folder backlog of Backlog.md, or a task's file"
CONFIG, ROOT_CONFIG = "config.yml", "backlog.config.yml"
FOLDERS = ("backlog", ".backlog")


class TaskFile(NamedTuple):
    """A task's file; or its text, which came in."""

    path: Path
    completed: bool = False
    text: str | None = None


class Folder(NamedTuple):
    """Where a board is, and the files that were asked for."""

    root: Path  # no file of a task leads out of it
    tasks: Path
    files: list[TaskFile]
    drafts: list[Path]


def folder_of(where: Where) -> Folder:
    """The board that was given: its folder, one that holds it, or the file of one task."""
    path = path_of(where, WHAT)
    if not path.is_dir():
        read_text(path, WHAT)  # one that was named must be there
        return Folder(path.parent, path.parent, [TaskFile(path)], [])
    root = _root(path)
    tasks = root / "tasks" if (root / "tasks").is_dir() else root
    files = [TaskFile(file) for file in _sorted(tasks)]
    files += [TaskFile(file, completed=True) for file in _sorted(root / "completed")]
    if not files and root == tasks:
        raise Invalid(f"{path}: no task in it", f"Give {WHAT}.", code="unreadable")
    return Folder(root, tasks, files, _sorted(root / "drafts"))


def _root(path: Path) -> Path:
    """The board's folder: itself, one of the usual names in it, or as the settings there say."""
    for name in FOLDERS:
        if (path / name).is_dir():
            return path / name
    if (path / ROOT_CONFIG).is_file():
        named = path / str(_fields(path / ROOT_CONFIG).get("backlog_directory") or "")
        if named.is_dir() and named.resolve().is_relative_to(path.resolve()):
            return named
    return path


def _sorted(folder: Path) -> list[Path]:
    """Files by the number in their name: task-10 after task-9."""
    return sorted(folder.glob("*.md"), key=lambda file: (_place(file.name), file.name))


def _place(text: str) -> tuple[int, ...]:
    match = re.search(r"\d{1,18}(?:\.\d{1,18})*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def id_in_name(path: Path) -> str:
    """The id in the name of a file: `task-1 - Title.md`."""
    return path.stem.partition(" - ")[0]


def paths_of(tasks: Collection[str], paths: Sequence[Path]) -> dict[str, Path]:
    """The file of each task: one that is called so, else one that says so."""
    wanted = {name.casefold() for name in tasks}
    likely = [path for path in paths if id_in_name(path).casefold() in wanted]
    found: dict[str, Path] = {}
    for path in (*likely, *paths):
        if len(found) == len(tasks):
            break
        name = _id_in(path)
        if name in tasks:
            found.setdefault(name, path)
    return found


def _id_in(path: Path) -> str:
    """The id that a task's file says; empty where it is broken, which is named when it is read."""
    with suppress(Invalid):
        page = split(read_text(path, WHAT))
        return "" if page is None else outline.line_of(page.fields(), "id")
    return ""


def config_of(tasks: Path) -> dict[str, object]:
    """The board's settings, in its folder or next to it."""
    here = tasks.absolute()
    places = [here / CONFIG, here.parent / CONFIG]
    places += [above / ROOT_CONFIG for above in (here, *here.parents[:3])]
    path = next((path for path in places if path.is_file()), None)
    return {} if path is None else _fields(path)


def _fields(path: Path) -> dict[str, object]:
    """Settings, written as the head of a page is."""
    try:
        return Page("", read_text(path, WHAT), "").fields()
    except Invalid as error:
        message = error.message.replace("front matter", "the file")
        raise Invalid(f"{path}: {message}", error.hint, code="unreadable") from error


def milestones_of(root: Path) -> dict[str, str]:
    """The titles of milestones, by their ids without case; a broken file has none."""
    titles: dict[str, str] = {}
    for path in _sorted(root / "milestones"):
        with suppress(Invalid):
            page = split(read_text(path, WHAT))
            fields = page.fields() if page is not None else {}
            titles[outline.line_of(fields, "id").casefold()] = outline.line_of(fields, "title")
    return titles


def project_of(folder: Path) -> str:
    """The name of the folder that holds the board."""
    while folder.name in ("tasks", "completed", *FOLDERS):
        folder = folder.absolute().parent
    return folder.absolute().name
