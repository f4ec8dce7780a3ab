"""Everything else that is kept: the log, the names, the decisions, the counters."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from fairlane.model.errors import Refused
from fairlane.model.event import Event
from fairlane.model.frozen import changed
from fairlane.model.instant import Instant
from fairlane.model.project import Group, Project
from fairlane.model.resources import History, Pause, Pool
from fairlane.store.base import Decision, WorkerRow
from fairlane.store.memory.journal import Journal

_NUMBER = attrgetter("number")


class Kept(Journal):
    """Small tables by name, and the log by number."""

    def __init__(self) -> None:
        super().__init__()
        self._projects = {"default": Project("default", clock=0, present=False)}
        self._groups: dict[str, Group] = {}
        self._pools: dict[str, Pool] = {}
        self._workers: dict[str, WorkerRow] = {}
        self._pauses: dict[str, Pause] = {}
        self._decisions: dict[int, Decision] = {}
        self._policies: dict[str, str] = {}
        self._history: dict[tuple[str, str, str], History] = {}
        self._values: dict[str, str] = {}  # as JSON: what is read is nobody else's
        self._numbers: dict[str, int] = {}
        self._events: list[Event] = []
        self._events_of: dict[str, list[Event]] = {}
        self._events_logged = 0

    # Reading

    def projects(self) -> dict[str, Project]:
        """All, by name."""
        return dict(sorted(self._projects.items()))

    def groups(self) -> dict[str, Group]:
        """All, by name."""
        return dict(sorted(self._groups.items()))

    def pools(self) -> dict[str, Pool]:
        """All, by name."""
        return dict(sorted(self._pools.items()))

    def workers(self) -> list[WorkerRow]:
        """All, by name."""
        return [worker for _, worker in sorted(self._workers.items())]

    def pauses(self) -> list[Pause]:
        """All, by scope."""
        return [pause for _, pause in sorted(self._pauses.items())]

    def history(self) -> list[History]:
        """What ended attempts tell, one row a (project, kind, agent)."""
        return [row for _, row in sorted(self._history.items())]

    def events(
        self, after: int = 0, limit: int = 1000, task: str | None = None, last: bool = False
    ) -> list[Event]:
        """The first events after a number, or the last ones; in their order."""
        held = self._events if task is None else self._events_of.get(task, [])
        start = bisect_right(held, after, key=_NUMBER)
        if last:
            return held[max(start, len(held) - limit) :]
        return held[start : start + limit]

    def decision(self, number: int) -> Decision | None:
        """A recorded decision."""
        return self._decisions.get(number)

    def decisions(self, after: int = 0, limit: int = 1000) -> list[Decision]:
        """The first decisions after a number."""
        numbers = sorted(number for number in self._decisions if number > after)
        return [self._decisions[number] for number in numbers[:limit]]

    def policy_text(self, digest: str) -> str | None:
        """A policy that decisions were made by."""
        return self._policies.get(digest)

    def value(self, name: str) -> Any:
        """A value that was put; None: there is none."""
        text = self._values.get(name)
        return None if text is None else json.loads(text)

    # Writing

    def number(self, name: str, count: int = 1) -> int:
        """The first of some numbers that nobody else gets."""
        last = self._numbers.get(name, 0)
        self._set(self._numbers, name, last + count)
        return last + 1

    def log(self, events: Sequence[Event]) -> int:
        """Appends events; the number of the last."""
        for event in events:
            number = self._events_logged + 1
            self._note(self._unlog, event.task)
            self._append(changed(event, number=number))
        return self._events_logged

    def put_project(self, project: Project) -> None:
        """A project as it is now."""
        self._set(self._projects, project.name, project)

    def drop_project(self, name: str) -> None:
        """Forgets a project."""
        self._set(self._projects, name, None)

    def put_clocks(self, clocks: Mapping[str, tuple[int, bool]]) -> None:
        """The clocks of known projects, and whether they were present."""
        for name, (clock, present) in clocks.items():
            project = self._projects.get(name)
            if project is not None:
                self.put_project(changed(project, clock=clock, present=present))

    def put_history(self, rows: Sequence[History]) -> None:
        """What ended attempts tell now."""
        for row in rows:
            self._set(self._history, (row.project, row.kind, row.agent or ""), row)

    def put_group(self, group: Group) -> None:
        """A group as it is now."""
        self._set(self._groups, group.name, group)

    def put_pool(self, pool: Pool) -> None:
        """A pool as it is now."""
        self._set(self._pools, pool.name, pool)

    def put_worker(self, worker: WorkerRow) -> None:
        """A worker as it is now."""
        self._set(self._workers, worker.name, worker)

    def drop_worker(self, name: str) -> None:
        """Forgets a worker."""
        self._set(self._workers, name, None)

    def put_pause(self, pause: Pause) -> None:
        """One pause a scope."""
        self._set(self._pauses, pause.scope, pause)

    def drop_pause(self, scope: str) -> None:
        """Ends a pause."""
        self._set(self._pauses, scope, None)

    def put_decision(self, decision: Decision) -> None:
        """Records a decision, by a policy that is kept."""
        if decision.number in self._decisions:
            raise Refused(f"decision {decision.number} is recorded already")
        if decision.policy not in self._policies:
            raise Refused(f"decision {decision.number} names a policy that is not kept")
        self._set(self._decisions, decision.number, decision)

    def drop_decisions(self, before: int) -> None:
        """Forgets the decisions below a number."""
        for number in [each for each in self._decisions if each < before]:
            self._set(self._decisions, number, None)

    def put_policy_text(self, digest: str, text: str) -> None:
        """Keeps a policy, once."""
        if digest not in self._policies:
            self._set(self._policies, digest, text)

    def put_value(self, name: str, value: Any) -> None:
        """Keeps a value that JSON has; None removes it."""
        text = None if value is None else json.dumps(value, ensure_ascii=False)
        self._set(self._values, name, text)

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

    def _compact_log(self, before: Instant) -> int:
        """Forgets older events; their numbers do not come back."""
        kept = [event for event in self._events if event.at >= before]
        dropped = len(self._events) - len(kept)
        if dropped:
            kept_of: dict[str, list[Event]] = {}
            for event in kept:
                if event.task is not None:
                    kept_of.setdefault(event.task, []).append(event)
            self._note(self._put_log, self._events, self._events_of)
            self._put_log(kept, kept_of)
        return dropped

    def _put_log(self, events: list[Event], events_of: dict[str, list[Event]]) -> None:
        self._events = events
        self._events_of = events_of

    def _compact_decisions(self, before: Instant) -> int:
        """Forgets older decisions once no younger one is recorded against the same lanes."""
        bases = {each.base for each in self._decisions.values() if each.at >= before}
        old = [number for number, each in self._decisions.items() if each.base not in bases]
        for number in old:
            self._set(self._decisions, number, None)
        used = {each.policy for each in self._decisions.values()} | {self.value("policy")}
        for digest in [each for each in self._policies if each not in used]:
            self._set(self._policies, digest, None)
        return len(old)
