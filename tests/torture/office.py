"""An office whose commits are checked; what a commit wrote can be altered before it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlane.model.errors import FairlaneError
from fairlane.model.record import changed
from fairlane.model.task import Attempt, Task
from fairlane.settings import host_name
from fairlane.store.memory.store import MemoryStore
from fairlane.testing.torture.ports import Write
from fairlane.testing.torture.promises import PROMISES, Broken, Checker, Party
from tests.torture.watched import WatchedStore
from tests.unit.contexts import NOON, TestContext

Writes = list[Write]
#: Prepares, and returns what breaks a promise.
Case = Callable[["WatchedOffice"], Callable[[], object]]


class Cases:
    """Cases by the name of the promise that each breaks."""

    def __init__(self) -> None:
        self.all: list[tuple[str, Case]] = []

    def breaks(self, name: str) -> Callable[[Case], Case]:
        """Enter a case."""

        def enter(case: Case) -> Case:
            self.all.append((name, case))
            return case

        return enter

    @staticmethod
    def name_of(part: object) -> str:
        """What a test calls it."""
        return str(getattr(part, "__name__", part)).replace(" ", "_")


Alter = Callable[[Writes], Writes]


class WatchedOffice(TestContext):
    """A context on a store in memory; every commit is told to a checker."""

    def __init__(self, home: Path) -> None:
        inner = MemoryStore()
        self.watched = WatchedStore(inner)
        super().__init__(home, store=self.watched)
        self.changes: dict[str, Any] = {}  # of the party
        self.checker = Checker(inner, self.party)
        self.model = self.checker.model
        self.watched.told = self.tell
        self.alter: Alter = lambda writes: writes

    def party(self, process: str) -> Party:
        """By which rules whoever commits goes."""
        try:
            party = Party(self.context.policy(), host_name())
        except FairlaneError:
            party = Party(None, host_name(), broken=True)
        return party._replace(**self.changes)

    def tell(self, writes: Writes) -> None:
        """Tell of a commit, as it was or altered."""
        now = self.clock.at
        self.checker.committed("caller", self.alter(writes), now, now)

    def task(self, name: str) -> Task:
        """As the model has it."""
        return self.model.task(name)

    def write(self, *writes: Write) -> None:
        """Tell of a commit that nobody has made."""
        self.checker.committed("caller", list(writes), NOON, self.clock.at)

    def believe_in_flight(self, name: str, **fields: Any) -> None:
        """The model has a task in flight of which the store knows nothing."""
        task = changed(Task(name, seq=900 + len(self.model.tasks)), status="leased", **fields)
        lease = Attempt(
            f"X{name}", name, task.project, task.kind, task.agent, 1, 0, "elsewhere",
            self.clock.at, self.clock.at + 10**9, workspace=task.workspace,
        )  # fmt: skip
        self.model.put_task(self.model.tasks["a"]._replace(task=task))
        self.model.put_attempts([lease])


def altered(what: str, change: Callable[[Any], Any]) -> Alter:
    """Every value of the writes of one sort is another."""

    def alter(writes: Writes) -> Writes:
        return [
            Write(write.what, tuple(map(change, write.values))) if write.what == what else write
            for write in writes
        ]

    return alter


def without(*sorts: str) -> Alter:
    """No writes of these sorts."""
    return lambda writes: [write for write in writes if write.what not in sorts]


def saved(**fields: Any) -> Alter:
    """The tasks that are saved have these values."""
    return altered("save", lambda row: row._replace(task=changed(row.task, **fields)))


def attempted(**fields: Any) -> Alter:
    """The attempts that are written have these values."""
    return altered("attempts", lambda row: changed(row, **fields))


def only(what: str, keep: Callable[[Any], bool]) -> Alter:
    """Of the writes of one sort the values that are to be kept."""
    return lambda writes: [
        Write(write.what, tuple(filter(keep, write.values))) if write.what == what else write
        for write in writes
    ]


def leased(office: WatchedOffice, **record: Any) -> str:
    """The lease of a new task `a`."""
    office.add({"id": "a", **record})
    return str(office.lease()[0]["lease"])


@contextmanager
def broken(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[None]:
    """The block breaks this promise; no other one is looked at."""
    with monkeypatch.context() as patch:
        for when, promises in PROMISES.items():
            patch.setitem(PROMISES, when, [each for each in promises if each.name == name])
        try:
            yield
        except Broken as error:
            assert error.promise.name == name  # noqa: PT017 - the block is the caller's
            return
        pytest.fail(f"nothing broke {name}")
