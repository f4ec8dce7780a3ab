"""What happens to tasks within one transaction, with everything that follows from it."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.lifecycle.backoff import half_open_at
from fairlane.lifecycle.step import Step, step
from fairlane.lifecycle.transitions import IllegalTransition
from fairlane.model.event import Event, Happening
from fairlane.model.instant import Instant
from fairlane.model.project import Group, groups_under
from fairlane.model.record import changed
from fairlane.model.snapshot import waits_of
from fairlane.model.task import Lease, Status, Task
from fairlane.planner import readiness
from fairlane.policy.policy import Policy
from fairlane.store.base import Filter, Placed, Reading, Writing

#: How many of a task's last events an error tells.
STORY_LENGTH = 10
_ENDED = (Status.DONE, Status.PARKED, Status.CANCELED)
_DEAD = (Status.PARKED, Status.CANCELED)
_OPEN = (Status.QUEUED, Status.LEASED, Status.RUNNING, Status.PARKED)
#: The rules of readiness by which tasks are placed until a round has seen others.
_FIRST_RULES = ["done", "hold"]
_MIXED = ["mixed"]


def place(reading: Reading, task: Task, policy: Policy, now: Instant) -> Placed:
    """Where a task stands now: in a lane, waiting for what, or neither."""
    if task.status is Status.PARKED:
        return Placed(task, "", half_open_at(task, policy))
    if task.status is not Status.QUEUED:
        return Placed(task)
    named = (*task.needs, task.parent) if task.parent else task.needs
    waiting = waits_of(task, reading.statuses(named) if named else {})
    hold = next(readiness.waits(waiting, policy, now), None) if waiting else None
    if hold is None:
        return Placed(task)
    timers = (task.backoff_until, task.not_before)
    due = min((timer for timer in timers if timer is not None and timer > now), default=None)
    return Placed(task, hold.code, due)


class TaskChanges:
    """Collects changes and events; `close` writes them and follows what depends on them."""

    def __init__(self, tx: Writing, policy: Policy, now: Instant, actor: str = "") -> None:
        self.tx, self.policy, self.now, self.actor = tx, policy, now, actor
        self._saves: dict[str, Task] = {}
        self._events: list[Event] = []
        self._ended: list[Task] = []  # or returned: others may depend on that
        self._ruled = False  # whether the rules of readiness were looked at

    def happen(
        self,
        task: Task,
        happening: Happening,
        *,
        detail: str = "",
        lease: Lease | None = None,
        park: bool = False,
        asked_until: Instant | None = None,
        resumes: bool = False,
        check: str = "",
    ) -> Step:
        """One happening, by the transition table; refused with the task's story."""
        try:
            after = step(
                task, happening, self.policy, self.now, detail=detail, lease=lease, park=park,
                asked_until=asked_until, resumes=resumes, check=check,
            )  # fmt: skip
        except IllegalTransition as error:
            story = self.tx.events(task=task.id, limit=STORY_LENGTH, last=True)
            raise error.with_story(story) from None
        self._saves[task.id] = after.task
        for kind, data in after.events:
            self.note(kind, after.task, **data)
        statuses = {task.status, after.task.status}
        if len(statuses) > 1 and not statuses.isdisjoint(_ENDED):
            self._ended.append(after.task)
        return after

    def park(self, task: Task, reason: str) -> None:
        """Its source parked a task that has not started."""
        parked = changed(task, status=Status.PARKED, reason=reason, parked_at=self.now)
        self._saves[task.id] = parked
        self.note("parked", parked, reason=reason)
        self._ended.append(parked)

    def keep(self, task: Task) -> None:
        """A change that is no happening."""
        self._saves[task.id] = task

    def note(self, kind: str, task: Task | None = None, **data: object) -> None:
        """A line for the event log; it is of the task's project, or of the one in `data`."""
        owner = task.project if task else data.pop("project", None)
        if self.actor and "by" not in data:
            data["by"] = self.actor
        self._events.append(
            Event(0, self.now, kind, task.id if task else None, str(owner) if owner else None, data)
        )

    def close(self) -> None:
        """Write everything; tasks that waited for what has ended are placed anew."""
        self._write()
        grouped: list[str] = []
        while self._ended:
            ended, self._ended = self._ended, []
            for task in ended:
                self._follow(task.id)
            self._write()
            grouped += [task.id for task in ended if task.group]
        if grouped:
            self._tell_groups(grouped)

    def _tell_groups(self, ended: list[str]) -> None:
        """Groups that are done now, each once, and after those under it."""
        tasks = self.tx.tasks(ended).values()
        touched = {task.group for task in tasks if task.group and task.status.final}
        for group in groups_done(self.tx, sorted(filter(None, touched))):
            data = {"group": group.name, "title": group.title}
            self.tx.log([Event(0, self.now, "group_done", data=data)])

    def settle(self, task: Task) -> Placed:
        """Place a queued task; one that has just become ready is ready since now, or its timer."""
        if not self._ruled and (task.needs or task.parent):
            self._ruled = True
            note_rules(self.tx, self.policy)
        placed = place(self.tx, task, self.policy, self.now)
        if task.status is Status.QUEUED and not placed.wait and task.ready_since is None:
            placed = Placed(ready_at(task, self.now))
        return placed

    def _write(self) -> None:
        if self._saves:
            self.tx.save([self.settle(task) for task in self._saves.values()])
            self._saves = {}
        if self._events:
            self.tx.log(self._events)
            self._events = []

    def _follow(self, name: str) -> None:
        """A task has ended, or returned: what needs it may be ready, or held, or end with it."""
        for stored in self.tx.tasks(self.tx.dependents(name)).values():
            task = self._saves.get(
                stored.id, stored
            )  # another one that it needs may have ended too
            if task.status is Status.QUEUED:
                self.reconsider(task)

    def reconsider(self, task: Task) -> None:
        """Place a queued task anew; what needs something that is dead may end with it."""
        rules = self.policy.readiness
        if rules.upstream == "cancel":
            parents = (task.parent,) if task.parent and rules.parent == "done" else ()
            for name, status in self.tx.statuses((*task.needs, *parents)).items():
                if status in _DEAD:
                    self.happen(task, Happening.CANCEL, detail=f"upstream {name} is {status}")
                    return
        self.keep(task)


def groups_done(reading: Reading, names: Iterable[str]) -> list[Group]:
    """Of these groups and those above them: of which all is over, and something was done."""
    done: dict[str, Group] = {}
    for name in names:
        if not reading.listing(Filter(status=_OPEN, group=name), limit=1):
            groups = reading.table(Group)
            here = groups.get(name)
            while here is not None and here.name not in done:
                under = groups_under(groups, here.name)
                if _any_of(reading, under, _OPEN):
                    break
                if _any_of(reading, under, (Status.DONE,)):
                    done[here.name] = here
                here = groups.get(here.parent or "")  # done, though here all was canceled
    return list(done.values())


def _any_of(reading: Reading, groups: Iterable[str], statuses: tuple[Status, ...]) -> bool:
    """Whether any task of these groups has one of these statuses."""
    return any(reading.listing(Filter(status=statuses, group=name), limit=1) for name in groups)


def ready_at(task: Task, now: Instant) -> Task:
    """A task that has just become ready: since its last timer, if that is what it waited for."""
    named = task.needs or task.parent or task.artifacts or task.source_hold
    timers = max(task.created_at, task.not_before or 0, task.backoff_until or 0)
    return changed(task, ready_since=now if named else timers)


def note_rules(tx: Writing, policy: Policy) -> None:
    """Tasks that need others are placed now: if by other rules than before, a round must know."""
    if has_other_rules(tx, policy):
        tx.put_value("readiness", _MIXED)


def follow_policy(task_changes: TaskChanges) -> None:
    """Readiness has other rules than when tasks were placed: those that need others are again."""
    tx = task_changes.tx
    if not has_other_rules(tx, task_changes.policy):
        return
    tx.put_value("readiness", _rules(task_changes.policy))
    after, queued = 0, Filter(status=(Status.QUEUED,))
    while page := tx.listing(queued, after):
        after = page[-1].task.seq
        for task, _, _ in page:
            if task.needs or task.parent:
                task_changes.reconsider(task)
        task_changes.close()


def _rules(policy: Policy) -> list[str]:
    return [policy.readiness.parent, policy.readiness.upstream]


def has_other_rules(reading: Reading, policy: Policy) -> bool:
    """Whether tasks were placed by other rules of readiness than the policy has."""
    return bool((reading.value("readiness") or _FIRST_RULES) != _rules(policy))


def bring_in(task_changes: TaskChanges, limit: int = 10_000) -> int:
    """Tasks whose timer has passed: waiting ones become ready, parked ones try once more."""
    brought = 0
    while rows := task_changes.tx.due(task_changes.now, limit):
        for task, _, _ in rows:
            opens_at = half_open_at(task, task_changes.policy)
            if (
                task.status is Status.PARKED
                and opens_at is not None
                and opens_at <= task_changes.now
            ):
                task_changes.happen(task, Happening.HALF_OPEN)
            else:
                task_changes.keep(task)
        brought += len(rows)
        task_changes.close()
    return brought
