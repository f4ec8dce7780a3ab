"""Small tables, the event log, decisions, values, counters."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from operator import attrgetter
from typing import Any, cast

from fairlane.model.errors import Refused
from fairlane.model.event import Event
from fairlane.model.project import Droppable, PolicyText, Project, Small, SmallRow, key_of
from fairlane.model.record import changed
from fairlane.store.base import Decision
from fairlane.store.memory.undo_log import UndoLog

_NUMBER = attrgetter("number")


class SmallTables(UndoLog):
    """Small tables by name, and the log by number."""

    def __init__(self) -> None:
        super().__init__()
        self._tables: dict[type[SmallRow], dict[str, SmallRow]] = {
            Project: {"default": Project("default", clock=0, present=False)}
        }
        self._decisions: dict[int, Decision] = {}
        self._values: dict[str, str] = {}  # as JSON: what is read is nobody else's
        self._numbers: dict[str, int] = {}
        self._events: list[Event] = []
        self._events_of: dict[str, list[Event]] = {}
        self._events_logged = 0

    # Reading

    def table(self, kind: type[Small]) -> dict[str, Small]:
        rows = self._tables.get(kind, {})
        return cast("dict[str, Small]", dict(sorted(rows.items())))

    def events(
        self, after: int = 0, limit: int = 1000, task: str | None = None, last: bool = False,
        kind: str | None = None,
    ) -> list[Event]:  # fmt: skip
        log = self._events if task is None else self._events_of.get(task, [])
        log = log if kind is None else [event for event in log if event.kind == kind]
        start = bisect_right(log, after, key=_NUMBER)
        if last:
            return log[max(start, len(log) - limit) :]
        return log[start : start + limit]

    def decisions(self, after: int = 0, limit: int = 1000) -> list[Decision]:
        numbers = sorted(number for number in self._decisions if number > after)
        return [self._decisions[number] for number in numbers[:limit]]

    def value(self, name: str) -> Any:
        text = self._values.get(name)
        return None if text is None else json.loads(text)

    # Writing

    def number(self, name: str, count: int = 1) -> int:
        last = self._numbers.get(name, 0)
        self._set(self._numbers, name, last + count)
        return last + 1

    def log(self, events: Sequence[Event]) -> int:
        for event in events:
            number = self._events_logged + 1
            self._note(self._unlog, event.task)
            self._append(changed(event, number=number))
        return self._events_logged

    def put(self, *rows: SmallRow) -> None:
        for row in rows:
            table, key = self._tables.setdefault(type(row), {}), key_of(row)
            if not isinstance(row, PolicyText) or key not in table:
                self._set(table, key, row)
                self._news.change_row(type(row), key)

    def drop(self, kind: type[Droppable], key: str) -> None:
        self._set(self._tables.get(kind, {}), key, None)
        self._news.change_row(kind, key)

    def put_clocks(self, clocks: Mapping[str, tuple[int, bool]]) -> None:
        projects = self.table(Project)
        for name in clocks.keys() & projects.keys():
            clock, present = clocks[name]
            self.put(changed(projects[name], clock=clock, present=present))

    def put_decision(self, decision: Decision, oldest: int = 0) -> None:
        if decision.number in self._decisions:
            raise Refused(f"decision {decision.number} is recorded already")
        if decision.policy not in self.table(PolicyText):
            raise Refused(f"decision {decision.number} names a policy that is not kept")
        self._set(self._decisions, decision.number, decision)
        for number in [number for number in self._decisions if number < oldest]:
            self._set(self._decisions, number, None)

    def put_value(self, name: str, value: object) -> None:
        text = None if value is None else json.dumps(value, ensure_ascii=False)
        self._set(self._values, name, text)
        self._news.change_value(name)

    # Inside

    def _append(self, event: Event) -> None:
        self._events_logged = event.number
        self._events.append(event)
        if event.task is not None:
            self._events_of.setdefault(event.task, []).append(event)

    def _unlog(self, task: str | None) -> None:
        self._events_logged -= 1
        self._events.pop()
        if task is not None:
            self._events_of[task].pop()
            if not self._events_of[task]:
                del self._events_of[task]

    def _drop_events(self, numbers: Set[int]) -> None:
        """Forgets these; their numbers do not come back."""
        remaining = [event for event in self._events if event.number not in numbers]
        remaining_of: dict[str, list[Event]] = {}
        for event in remaining:
            if event.task is not None:
                remaining_of.setdefault(event.task, []).append(event)
        self._note(self._put_log, self._events, self._events_of)
        self._put_log(remaining, remaining_of)

    def _put_log(self, events: list[Event], events_of: dict[str, list[Event]]) -> None:
        self._events = events
        self._events_of = events_of

    def _drop_unused_policies(self) -> None:
        """Forgets the texts that no decision names and that are not in force."""
        used = {decision.policy for decision in self._decisions.values()} | {self.value("policy")}
        for digest in self.table(PolicyText).keys() - used:
            self._set(self._tables[PolicyText], digest, None)
