"""task-master: `tasks.json` with tags, or the older shape; a task with open subtasks is a group.

Priorities critical, high, medium and low are 25, 50, 100 and 150. Task ids get the name of the
folder that holds `.taskmaster` in front, so that two files can be told apart, and the tag where it
is not `master`. Subtasks are known as `5.2`, and are told the text of their task. Statuses are
written back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fairlane.intake import outline
from fairlane.intake.files import locate, parse_json, read_text
from fairlane.intake.naming import name_for
from fairlane.intake.sources.base import (
    Collection,
    Found,
    LeftOut,
    Standing,
    Where,
    WriteBack,
)
from fairlane.intake.trackers import taskmaster_file
from fairlane.intake.trackers.taskmaster_file import DEFAULT_TAG, WHAT, shown_id
from fairlane.model.errors import Invalid
from fairlane.model.record import replace

PLACES = (".taskmaster/tasks/tasks.json", "tasks/tasks.json", "tasks.json")
PRIORITIES = {"critical": 25, "high": 50, "medium": 100, "low": 150}
_DONE = ("done", "completed")
_TAKEN = ("in-progress", "review")
_READ = (
    "id", "title", "description", "status", "dependencies", "priority", "details", "testStrategy",
    "subtasks", "acceptanceCriteria", "updatedAt", "parentId", "parentTaskId",
)  # fmt: skip


def read(where: Where) -> Found:
    """Every task of every tag."""
    if where.text is not None:
        text, folder = where.text, ""
    else:
        path = locate(where, PLACES, WHAT)
        text, folder = read_text(path, WHAT), _project(path)
    entries: list[outline.Entry] = []
    collections: list[Collection] = []
    left_out: list[LeftOut] = []
    for tag, tasks in _tags(parse_json(text, where.name, WHAT), where.name).items():
        reader = _Tag(tag, folder or "tm")
        made, bad = outline.each_valid(
            [(f"{where.name}, task {at} of {tag}", row) for at, row in enumerate(tasks, 1)],
            reader.entries,
        )
        entries += reader.without_dropped(made)
        left_out += bad
        if reader.collection is not None:
            collections.append(reader.collection)
    return outline.Outline(entries).found(collections, left_out)


def _project(path: Path) -> str:
    """The folder whose tasks these are."""
    folder = path.absolute().parent
    while folder.name in ("tasks", ".taskmaster"):
        folder = folder.parent
    return folder.name


def write(where: Where, updates: Sequence[WriteBack]) -> list[str]:
    """Write the status of its task into each item, unless a person has changed it since."""
    if where.text is not None or not updates:
        return []
    path = locate(where, PLACES, WHAT)
    within = where.path if path != where.path else None  # a file that was named may be a link
    return taskmaster_file.change(path, updates, within)


def _tags(document: object, name: str) -> dict[str, list[object]]:
    """Tag -> its tasks, whichever shape the file has."""
    if isinstance(document, list):
        return {DEFAULT_TAG: document}
    if isinstance(document, dict) and isinstance(document.get("tasks"), list):
        return {DEFAULT_TAG: document["tasks"]}
    tags = {
        str(tag): content["tasks"]
        for tag, content in (document if isinstance(document, dict) else {}).items()
        if isinstance(content, dict) and isinstance(content.get("tasks"), list)
    }
    if not tags and document != {}:
        raise Invalid(f"{name}: no tasks in it", f"Give {WHAT}.", code="unreadable")
    return tags


class _Tag:
    """Reads the tasks of one tag."""

    def __init__(self, tag: str, folder: str) -> None:
        usual = tag == DEFAULT_TAG
        self._tag = tag
        self._name = name_for(folder, "" if usual else tag)
        self.collection = None if usual else Collection(tag, self._name, f"tag {tag}")

    def entries(self, place: str, row: object) -> Iterator[outline.Entry]:
        """A task, and its subtasks under it."""
        task = outline.table_of(row)
        name = outline.line_of(task, "id")
        subtasks = [outline.table_of(subtask) for subtask in outline.list_of(task, "subtasks")]
        yield self._entry(task, name, None, place)
        for subtask in subtasks:
            number = outline.line_of(subtask, "id").rpartition(".")[2]
            yield self._entry({"priority": task.get("priority")} | subtask, number, name, place)

    def _entry(
        self, task: Mapping[str, object], name: str, above: str | None, place: str
    ) -> outline.Entry:
        whole = f"{above}.{name}" if above else name
        text = outline.sections_of(
            title := outline.line_of(task, "title"),
            (
                ("", task.get("description")),
                ("Details", task.get("details")),
                ("Acceptance criteria", task.get("acceptanceCriteria")),
                ("How it is tested", task.get("testStrategy")),
            ),
        )
        status = str(task.get("status") or "pending")
        standing, blocked = _standing(status)
        record = {
            "id": name_for(self._name, whole),
            "title": title,
            "prompt": outline.prompt_of(title, [("", text)]),
            "priority": PRIORITIES.get(str(task.get("priority")).lower(), 100),
            "meta": outline.leftover(task, _READ),
        }
        needs = tuple(
            shown_id(self._tag, _whole_id(need, above))
            for need in outline.list_of(task, "dependencies")
        )
        return outline.Entry(
            shown_id(self._tag, whole), record, standing, needs,
            None if above is None else shown_id(self._tag, above),
            self.collection.id if self.collection else None,
            blocked, status if standing is not Standing.OPEN else "", place, text,
        )  # fmt: skip

    def without_dropped(self, entries: list[outline.Entry]) -> list[outline.Entry]:
        """What needs a task that was given up waits: its need will never be met."""
        dropped = {entry.id for entry in entries if entry.why == "cancelled"}
        result = []
        for entry in entries:
            lost = [name for name in entry.needs if name in dropped]
            rest = tuple(name for name in entry.needs if name not in dropped)
            why = "; ".join(filter(None, [entry.blocked, *(f"{n} is cancelled" for n in lost)]))
            result.append(replace(entry, needs=rest, blocked=why) if lost else entry)
        return result


def _standing(status: str) -> tuple[Standing, str]:
    """The standing that a status means, and why the task waits."""
    if status in _DONE or status == "cancelled":
        return Standing.CLOSED, ""
    if status in _TAKEN:
        return Standing.TAKEN, ""
    return Standing.OPEN, "" if status == "pending" else f"its status is {status}"


def _whole_id(need: object, above: str | None) -> str:
    """A dependency: `5.1` as it is; of a subtask `1` is its sibling."""
    name = str(need).strip()
    return f"{above}.{name}" if above and "." not in name else name
