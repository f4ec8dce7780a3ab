"""`tasks.json` of task-master, changed as the program itself does: with its lock, and atomically.

A status is written where it stands; every other byte is kept. A parent follows its subtasks: done
when all are, in progress when one is or some are done, pending when all are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fairlane.clock import SYSTEM, poll
from fairlane.intake import atomic_write
from fairlane.intake.files import parse_json
from fairlane.intake.sources.base import WriteBack
from fairlane.intake.trackers.json_places import Edit, Place, applied, places, set_value
from fairlane.model.errors import Invalid, Refused, TryLater
from fairlane.model.instant import SECOND, Instant, show_milliseconds

WHAT = "a tasks.json of task-master, or the folder that holds .taskmaster"
DEFAULT_TAG = "master"
PENDING, BUSY, DONE = "pending", "in-progress", ("done", "completed")
#: What the program calls the status of a task.
SAID = {
    "queued": PENDING, "leased": BUSY, "running": BUSY, "done": DONE[0], "parked": "blocked",
    "canceled": "cancelled",
}  # fmt: skip
#: How long the program's lock is waited for, how often it is looked at, and when it is left over.
LOCK_SECONDS, LOOK_SECONDS, STALE = 5.0, 0.05, 10 * SECOND
_BOM = "\ufeff"


class _Task(NamedTuple):
    """A task or subtask in the text."""

    place: Place
    parent: Place | None = None


def shown_id(tag: str, task: object, subtask: object = None) -> str:
    """How an item is known: `2`, `2.1`, `tag:2.1`."""
    number = "" if subtask is None else "." + str(subtask).rpartition(".")[2]
    return f"{'' if tag == DEFAULT_TAG else f'{tag}:'}{task}{number}"


def change(path: Path, updates: Sequence[WriteBack], within: Path | None = None) -> list[str]:
    """Write what became of these items; the ids of those that changed.

    `within`: a link that leads out of this folder is refused.
    """
    written: list[str] = []

    def turn(content: bytes) -> bytes:
        text = _decoded(content, path)
        parse_json(text.removeprefix(_BOM), str(path), WHAT)
        mark, text = text[: text.startswith(_BOM)], text.removeprefix(_BOM)
        try:
            document = _Document(text)
        except RecursionError as error:
            raise Refused(f"{path}: nested too deeply", "Nothing was changed.") from error
        written[:] = [update.id for update in updates if document.tell(update)]
        return (mark + document.changed()).encode()

    with _locked(path):
        atomic_write.change(path, turn, within)
    return list(dict.fromkeys(written))


def _decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"{path}: not UTF-8 text", f"Give {WHAT}.", code="unreadable") from error


class _Document:
    """The text, and the statuses that are to be set in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tasks = _tasks(places(text))
        self._new: dict[int, tuple[Place, str, Instant]] = {}  # by the start of the place
        self._parents: dict[int, tuple[Place, Instant]] = {}  # of those, the same

    def tell(self, update: WriteBack) -> bool:
        """Whether the status of an item is another now; what others have set stays."""
        task = self._tasks.get(update.id)
        if task is None:
            return False
        now, wanted = self._status(task.place), SAID[update.status]
        if now == wanted or now != SAID.get(str(update.facts.get("told")), PENDING):
            return False
        self._new[task.place.start] = task.place, wanted, update.at
        if task.parent is not None:
            self._parents[task.parent.start] = task.parent, update.at
        return True

    def _follow(self, parent: Place, at: Instant) -> None:
        statuses = [self._status(row) for row in _rows(parent, "subtasks")]
        before = self._status(parent)
        followed = _followed(statuses, before)
        if followed != before:
            self._new[parent.start] = parent, followed, at

    def changed(self) -> str:
        """The text with all of it, and what follows for parents."""
        for parent, when in self._parents.values():
            self._follow(parent, when)
        edits: list[Edit] = []
        for place, status, at in self._new.values():
            edits.append(set_value(self._text, place, "status", status))
            if place.table and "updatedAt" in place.table:
                edits.append(set_value(self._text, place, "updatedAt", show_milliseconds(at)))
        return applied(self._text, edits)

    def _status(self, place: Place) -> str:
        new = self._new.get(place.start)
        return new[1] if new else _scalar(place, "status") or PENDING


def _followed(statuses: Sequence[str], now: str) -> str:
    """The status of a parent, by those of its subtasks."""
    if all(status in DONE for status in statuses):
        return now if now in DONE else DONE[0]
    if any(status == BUSY or status in DONE for status in statuses):
        return BUSY
    return PENDING if all(status == PENDING for status in statuses) else now


def _tasks(document: Place) -> dict[str, _Task]:
    """Every task and subtask by its id; the first of an id counts."""
    found: dict[str, _Task] = {}
    for tag, task in _tagged(document):
        name = _scalar(task, "id")
        found.setdefault(shown_id(tag, name), _Task(task))
        for subtask in _rows(task, "subtasks"):
            found.setdefault(shown_id(tag, name, _scalar(subtask, "id")), _Task(subtask, task))
    return found


def _tagged(document: Place) -> Iterator[tuple[str, Place]]:
    if document.rows is not None:
        yield from ((DEFAULT_TAG, row) for row in document.rows if row.table is not None)
        return
    tags: Mapping[str, Place] = document.table or {}
    if "tasks" in tags and tags["tasks"].rows is not None:
        tags = {DEFAULT_TAG: document}
    for tag, content in tags.items():
        yield from ((tag, row) for row in _rows(content, "tasks"))


def _rows(place: Place, key: str) -> list[Place]:
    rows = (place.table or {}).get(key)
    return [row for row in (rows.rows if rows and rows.rows else ()) if row.table is not None]


def _scalar(place: Place, key: str) -> str:
    found = (place.table or {}).get(key)
    return "" if found is None else " ".join(str(found.value).split())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock that the program takes: a folder beside the file."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        if not poll(partial(_made, lock), LOCK_SECONDS, LOOK_SECONDS):
            hint = "The next sync makes up for it."
            raise TryLater(f"{lock} is held by another program", hint, code="busy")
    except OSError as error:
        hint = "Nothing was changed; check the folder's permissions and free space."
        raise Refused(f"{lock}: cannot be made: {error.strerror}", hint) from error
    try:
        yield
    finally:
        with suppress(OSError):
            lock.rmdir()


def _made(lock: Path) -> bool:
    """Whether the lock is ours now; one that was left over is taken away."""
    try:
        lock.mkdir()
    except FileExistsError:
        with suppress(OSError):
            if SYSTEM.now() - lock.stat().st_mtime_ns // 1000 > STALE:
                lock.rmdir() if lock.is_dir() else lock.unlink()
        return False
    return True
