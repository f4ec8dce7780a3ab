"""Backlog.md: one Markdown file a task; the first status is open, the last is closed.

The names of statuses are those of `config.yml`. Priorities high, medium and low are 50, 100 and
150. A task with open subtasks is a group; a milestone is one for tasks that are under none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from fairlane.intake import outline
from fairlane.intake.files import path_of, read_text
from fairlane.intake.frontmatter import Page, split
from fairlane.intake.sources.base import Collection, Found, Standing, Where
from fairlane.model.errors import Invalid

WHAT = "the folder backlog of Backlog.md, or a task's file"
STATUSES = ("To Do", "In Progress", "Done")
PRIORITIES = {"high": 50, "medium": 100, "low": 150}
CONFIG = "config.yml"
DEFAULT_PREFIX = "task"
_COMMENT = re.compile(r"[ \t]*<!--.*?-->[ \t]*\n?", re.DOTALL)
_NUMBER = re.compile(r"(\d+(?:\.\d+)*)$")
_READ = (
    "id", "title", "status", "dependencies", "priority", "parent_task_id", "milestone",
    "updated_date", "ordinal", "onStatusChange",
)  # fmt: skip


def read(where: Where) -> Found:
    """Every task of the folder; what lies in `completed` is closed."""
    if where.text is not None:
        return _Board(STATUSES, "").found([(where.name, where.text, False)])
    path = path_of(where, WHAT)
    if not path.is_dir():
        return _board(path.parent).found([(str(path), read_text(path, WHAT), False)])
    root = path / "backlog" if (path / "backlog").is_dir() else path
    tasks = root / "tasks" if (root / "tasks").is_dir() else root
    files = [(file, False) for file in _sorted(tasks)]
    files += [(file, True) for file in _sorted(root / "completed")]
    if not files and root == tasks:
        raise Invalid(f"{path}: no task in it", f"Give {WHAT}.", code="unreadable")
    texts = [(str(file), read_text(file, WHAT), over) for file, over in files]
    return _board(tasks).found(texts)


def _sorted(folder: Path) -> list[Path]:
    """Files by the number in their name: task-10 after task-9."""
    return sorted(folder.glob("*.md"), key=lambda file: (_place(file.name), file.name))


def _place(text: str) -> tuple[int, ...]:
    match = re.search(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _board(folder: Path) -> _Board:
    """The statuses that the board's configuration names, in its folder or next to it."""
    above = folder.absolute().parent
    for path in (folder / CONFIG, above / CONFIG, above.parent / f"backlog.{CONFIG}"):
        if path.is_file():
            config = Page("", read_text(path, WHAT), "").fields()  # as the head of a page
            statuses = [str(status) for status in outline.list_of(config, "statuses")]
            project = str(config.get("project_name") or "")
            return _Board(statuses or STATUSES, project or _project(folder))
    return _Board(STATUSES, _project(folder))


def _project(folder: Path) -> str:
    while folder.name in ("tasks", "completed", "backlog", ".backlog"):
        folder = folder.absolute().parent
    return folder.absolute().name


class _Board:
    """Reads tasks by the statuses of one board."""

    def __init__(self, statuses: Sequence[str], project: str) -> None:
        self._statuses = [status.casefold() for status in statuses]
        self._project = project
        self._milestones: dict[str, Collection] = {}
        self._ids: dict[str, str] = {}  # id without case, or its number alone -> id

    def found(self, texts: Sequence[tuple[str, str, bool]]) -> Found:
        """The items of these files."""
        entries, left_out = outline.each_valid(
            [(place, (text, over)) for place, text, over in texts], self._entries
        )
        for entry in entries:
            self._ids[entry.id.casefold()] = entry.id
            if number := _NUMBER.search(entry.id):
                self._ids.setdefault(number[1], entry.id)
        linked = [self._linked(entry) for entry in entries]
        return outline.Outline(linked).found(self._milestones.values(), left_out)

    def _entries(self, place: str, row: tuple[str, bool]) -> Iterator[outline.Entry]:
        text, over = row
        page = split(text)
        if page is None:
            raise Invalid("it has no front matter")
        task = page.fields()
        name, title = outline.line_of(task, "id"), outline.line_of(task, "title")
        status = str(task.get("status") or self._statuses[0])
        standing = Standing.CLOSED if over else self._standing(status)
        record = {
            "id": self._task_id(name),
            "title": title,
            "prompt": outline.prompt_of(title, [("", _COMMENT.sub("", page.body))]),
            "priority": PRIORITIES.get(str(task.get("priority")).lower(), 100),
            "meta": outline.leftover(task, _READ),
        }
        needs = tuple(str(need) for need in outline.list_of(task, "dependencies"))
        above = task.get("parent_task_id")
        yield outline.Entry(
            name, record, standing, needs, str(above) if above else None,
            self._milestone(task.get("milestone")),
            "", status if standing is not Standing.OPEN else "", place,
        )  # fmt: skip

    def _standing(self, status: str) -> Standing:
        folded = status.casefold()
        if folded not in self._statuses:
            raise Invalid(f"no status of this board: {status!r}")
        if folded == self._statuses[-1]:
            return Standing.CLOSED
        return Standing.OPEN if folded == self._statuses[0] else Standing.TAKEN

    def _task_id(self, name: str) -> str:
        """Every new board has a `task-1`: the folder's name distinguishes boards."""
        usual = name.casefold().startswith(f"{DEFAULT_PREFIX}-")
        return outline.as_name(self._project if usual else "", name)

    def _milestone(self, value: object) -> str | None:
        if not value:
            return None
        name = f"milestone:{value}"
        made = Collection(name, outline.as_name(self._project, value), str(value))
        return self._milestones.setdefault(name, made).id

    def _linked(self, entry: outline.Entry) -> outline.Entry:
        """Ids that it names, as the tasks themselves write them."""
        under = self._known(entry.under) if entry.under else None
        return replace(entry, needs=tuple(map(self._known, entry.needs)), under=under)

    def _known(self, name: str) -> str:
        number = _NUMBER.search(name)
        return self._ids.get(name.casefold()) or self._ids.get(number[1] if number else "") or name
