"""Backlog.md: one Markdown file a task, with the statuses that `config.yml` names.

Priorities high, medium and low are 50, 100 and
150. A task with subtasks is a group and its last task; a milestone is a group for tasks that are
under none. Its status, `updated_date` and the implementation notes are written back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from fairlane.intake import atomic_write, outline
from fairlane.intake.files import check_inside, decoded, read_text
from fairlane.intake.markdown.frontmatter import split
from fairlane.intake.naming import name_for
from fairlane.intake.sources.base import Collection, Found, LeftOut, Standing, Where, WriteBack
from fairlane.intake.trackers import backlog_folder, backlog_page
from fairlane.intake.trackers.backlog_statuses import Statuses
from fairlane.model.errors import Invalid, Refused
from fairlane.model.record import replace

PRIORITIES = {"high": 50, "medium": 100, "low": 150}
DEFAULT_PREFIX = "task"
#: The statuses that leave a note.
_ENDS = ("done", "parked", "canceled")
_NUMBER = re.compile(r"(\d+(?:\.\d+)*)$")
_READ = (
    "id", "title", "status", "dependencies", "priority", "parent_task_id", "milestone", "subtasks",
    "updated_date", "ordinal", "onStatusChange",
)  # fmt: skip


def read(where: Where) -> Found:
    """Every task of the folder; what lies in `completed` is closed, a draft is no work yet."""
    if where.text is not None:
        return _Board(Path(), {}).found(
            [backlog_folder.TaskFile(Path(where.name), text=where.text)], []
        )
    folder = backlog_folder.folder_of(where)
    board = _Board(
        folder.root, backlog_folder.config_of(folder.tasks), backlog_folder.project_of(folder.tasks)
    )
    return board.found(folder.files, [_draft(path) for path in folder.drafts])


def write(where: Where, updates: Sequence[WriteBack]) -> list[str]:
    """Write the status of its task into each file, unless a person has changed it since."""
    if where.text is not None or not updates:
        return []
    folder = backlog_folder.folder_of(where)
    board = _Board(folder.root, backlog_folder.config_of(folder.tasks))
    files = [file.path for file in folder.files if not file.completed]
    paths = backlog_folder.paths_of({update.id for update in updates}, files)
    written: list[str] = []
    for update in updates:
        if (path := paths.get(update.id)) is None:
            continue
        try:
            changed = atomic_write.change(path, partial(board.updated, update), folder.root)
        except Invalid as error:
            raise Refused(f"{path}: {error.message}", error.hint) from error
        if changed and update.id not in written:
            written.append(update.id)
    return written


def _ended(body: str) -> bool:
    """Whether the last that we wrote is an end that a person can take back."""
    return any(note.startswith(("done", "parked")) for note in backlog_page.notes(body)[-1:])


def _draft(path: Path) -> LeftOut:
    return LeftOut(backlog_folder.id_in_name(path), "it is a draft", str(path))


class _Board:
    """Reads and changes tasks by the statuses of one board."""

    def __init__(self, root: Path, config: dict[str, object], project: str = "") -> None:
        names = [str(status) for status in outline.list_of(config, "statuses")]
        self._statuses = Statuses(names, str(config.get("default_status") or ""))
        self._project = str(config.get("project_name") or "") or project
        self._root = root
        self._titles = backlog_folder.milestones_of(root)
        self._milestones: dict[str, Collection] = {}
        self._ids: dict[str, str] = {}  # id without case, or its number alone -> id

    def found(self, files: Sequence[backlog_folder.TaskFile], drafts: Sequence[LeftOut]) -> Found:
        """The items of these files."""
        rows = [(str(file.path), file) for file in files]
        entries, left_out = outline.each_valid(
            rows, self._entries, lambda f: backlog_folder.id_in_name(f.path)
        )
        for entry in entries:
            self._ids[entry.id.casefold()] = entry.id
            if number := _NUMBER.search(entry.id):
                self._ids.setdefault(number[1], entry.id)
        linked = [self._linked(entry) for entry in entries]
        return outline.Outline(linked, last=True).found(
            self._milestones.values(), [*left_out, *drafts]
        )

    def updated(self, update: WriteBack, content: bytes) -> bytes:
        """The file with the status of its task; itself where nothing is due."""
        text = decoded(content)
        page = split(text)
        if page is None:
            return content
        now = str(page.fields().get("status") or self._statuses.first)
        again = self._put_back(now, page.body) and update.status not in _ENDS
        same = self._statuses.is_as_told(now, update.status)
        if not (same or again or self._statuses.is_as_told(now, update.facts.get("told"))):
            return content
        wanted = self._statuses.said(update.status)
        changed = text if same else backlog_page.with_status(text, wanted)
        if update.status in _ENDS or (update.status == "queued" and _ended(page.body)):
            changed = backlog_page.with_note(changed, update)
        if changed == text:
            return content
        return backlog_page.with_date(changed, update.at).encode()

    def _put_back(self, status: str, body: str) -> bool:
        """Whether a person wants it again: an end is the last that we wrote, and it is gone."""
        return self._statuses.is_open(status) and _ended(body)

    def _entries(self, place: str, file: backlog_folder.TaskFile) -> Iterator[outline.Entry]:
        page = split(self._text(file))
        if page is None:
            raise Invalid("it has no front matter")
        task = page.fields()
        name, title = outline.line_of(task, "id"), outline.line_of(task, "title")
        status = str(task.get("status") or self._statuses.first)
        standing = Standing.CLOSED if file.completed else self._statuses.standing(status)
        record = {
            "id": self._task_id(name),
            "title": title,
            "prompt": outline.prompt_of(title, [("", backlog_page.shown(page.body))]),
            "priority": PRIORITIES.get(str(task.get("priority")).lower(), 100),
            "meta": outline.leftover(task, _READ),
        }
        needs = tuple(str(need) for need in outline.list_of(task, "dependencies"))
        above = task.get("parent_task_id")
        yield outline.Entry(
            name, record, standing, needs, str(above) if above else None,
            self._milestone(task.get("milestone")),
            "", status if standing is not Standing.OPEN else "", place,
            backlog_page.asked(page.body),
            str(len(backlog_page.notes(page.body))) if self._put_back(status, page.body) else "",
        )  # fmt: skip

    def _text(self, file: backlog_folder.TaskFile) -> str:
        if file.text is not None:
            return file.text
        check_inside(file.path, self._root)
        return read_text(file.path, backlog_folder.WHAT)

    def _task_id(self, name: str) -> str:
        """Every new board has a `task-1`: the folder's name distinguishes boards."""
        usual = name.casefold().startswith(f"{DEFAULT_PREFIX}-")
        return name_for(self._project if usual else "", name)

    def _milestone(self, value: object) -> str | None:
        if not value:
            return None
        name = f"milestone:{value}"
        title = self._titles.get(str(value).casefold(), str(value))
        made = Collection(name, name_for(self._project, title), title)
        return self._milestones.setdefault(name, made).id

    def _linked(self, entry: outline.Entry) -> outline.Entry:
        """Ids that it names, as the tasks themselves write them."""
        under = self._known(entry.under) if entry.under else None
        return replace(entry, needs=tuple(map(self._known, entry.needs)), under=under)

    def _known(self, name: str) -> str:
        number = _NUMBER.search(name)
        return self._ids.get(name.casefold()) or self._ids.get(number[1] if number else "") or name
