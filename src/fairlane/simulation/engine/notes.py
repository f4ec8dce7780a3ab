"""Notes: what a simulation writes down on its way, and the `Run` that it becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from fairlane.engine.context import Context
from fairlane.model.instant import Instant
from fairlane.model.project import Project, Tokens, Usage, counted
from fairlane.model.task import Attempt, Task
from fairlane.policy.policy import Policy
from fairlane.service.reports.fairness import Bound, lags
from fairlane.simulation.report import wait_of
from fairlane.simulation.run import AttemptLine, Run, TaskLine
from fairlane.simulation.world import Act
from fairlane.store.base import Filter, Placed, Reading

#: How many tasks are read at once.
_PAGE = 1_000


class Notes:
    """Everything that cannot be read from the store at the end."""

    def __init__(self, begin: Instant) -> None:
        self.begin, self._last = begin, begin
        self.slots: list[tuple[Instant, int]] = []
        self.came_at: dict[str, Instant] = {}  # of tasks that were deferred first
        self._ready_at: dict[str, Instant] = {}  # of tasks that have started
        self._codes: Mapping[str, int] = {}  # tasks that wait now, by code
        self._held: Counter[str] = Counter()
        self._lag: dict[str, int] = {}
        self._over: dict[str, int] = {}
        self._undone: list[tuple[Instant, str, str]] = []
        self._gone_at: dict[str, Instant] = {}  # by lease

    def pass_time(self, now: Instant) -> None:
        """Nothing has changed since the last instant: whatever waited then has waited until now."""
        for code, count in self._codes.items():
            self._held[code] += count * (now - self._last)
        self._last = now

    def see_waits(self, codes: Mapping[str, int], stranded: int, is_manned: bool) -> None:
        """How many tasks wait from now on, by what they wait for.

        `stranded`: those that could start, but only on a worker that is gone. Where none works
        (`is_manned`), what waits for a slot waits for a worker.
        """
        self._codes = codes
        if not is_manned and "no_slot" in codes:
            stranded += codes["no_slot"]
            self._codes = codes = {code: codes[code] for code in codes if code != "no_slot"}
        if stranded:
            self._codes = {**codes, "no_worker": codes.get("no_worker", 0) + stranded}

    def see_slots(self, slots: int) -> None:
        """How many attempts may run from now on."""
        if not self.slots or self.slots[-1][1] != slots:
            if self.slots and self.slots[-1][0] == self._last:
                self.slots.pop()
            self.slots.append((self._last, slots))

    def see_gone(self, leases: Iterable[str]) -> None:
        """These attempts vanished with their worker; the queue learns of it later."""
        self._gone_at.update(dict.fromkeys(leases, self._last))

    def see_start(self, task: Task) -> None:
        """An attempt of a task has begun: at the first, it is known since when it was ready."""
        if task.id not in self._ready_at and task.ready_since is not None:
            self._ready_at[task.id] = task.ready_since

    def see_act(self, act: Act, refused: str) -> None:
        """Somebody did something; `refused`: why it could not be done, or nothing."""
        if refused:
            self._undone.append((act.at, act.operation, refused))

    def see_add_refused(self, at: Instant, why: str) -> None:
        """Work was refused, and nobody adds it again; the same reason is told once."""
        if all((do, before) != ("add", why) for _, do, before in self._undone):
            self._undone.append((at, "add", why))

    def see_shares(self, projects: Mapping[str, Project], policy: Policy) -> None:
        """How far each project is behind those with whom it shares."""
        for name, lag in lags(projects, policy).items():
            self._lag[name] = max(self._lag.get(name, 0), lag)

    def see_usage(
        self, usage: Iterable[Usage], projects: Mapping[str, Project], policy: Policy
    ) -> None:
        """How far each budget is overspent."""
        spent = {(row.scope, row.window): row for row in usage}
        own = (budget for project in projects.values() for budget in project.budgets)
        for budget in (*policy.budget, *own):
            row = spent.get((budget.scope, budget.window))
            if row is None:
                continue
            is_tokens = budget.tokens is not None
            limit = budget.tokens if is_tokens else budget.usd
            used, unit = (row.tokens, "tokens") if is_tokens else (row.usd, "usd")
            name = f"{budget.scope} {budget.window} {unit}"
            self._over[name] = max(self._over.get(name, 0), used - (limit or 0))

    def run(self, context: Context, name: str, seed: int, refused: int) -> Run:
        """The whole simulation as one value; `refused`: tasks that never came in."""
        policy = context.policy()
        with context.store.read() as reading:
            rows = [row for row in _every(reading) if not self._was_over(row.task)]
            tried = {row.task.id: reading.attempts(row.task.id) for row in rows}
            projects = reading.table(Project)
        tasks = tuple(self._task_line(row.task, tried[row.task.id]) for row in rows)
        made = sorted(
            (attempt for attempts in tried.values() for attempt in attempts),
            key=lambda attempt: attempt.fence,
        )
        return Run(
            policy=name,
            seed=seed,
            begin=self.begin,
            end=self._last,
            tasks=tasks,
            attempts=tuple(
                _attempt_line(attempt, policy, self._gone_at.get(attempt.lease))
                for attempt in made
                if attempt.ended_at is None or attempt.ended_at >= self.begin
            ),
            slots=tuple(self.slots),
            held={code: self._held[code] for code in sorted(self._held)},
            weights={name: projects[name].weight for name in sorted(projects)},
            lag=dict(sorted(self._lag.items())),
            bound=self._bound(projects, policy, made),
            overshoot=dict(sorted(self._over.items())),
            late=_late(tasks, self._last),
            undone=tuple(self._undone),
            refused=refused,
        )

    def _was_over(self, task: Task) -> bool:
        return task.ended_at is not None and task.ended_at < self.begin

    def _task_line(self, task: Task, attempts: list[Attempt]) -> TaskLine:
        started_at = min((attempt.leased_at for attempt in attempts), default=None)
        ready_at = self._ready_at.get(task.id, task.ready_since)
        came_at = self.came_at.get(task.id, task.created_at)
        if ready_at == task.created_at:
            ready_at = came_at  # it could have started while the queue was full
        if ready_at is not None and started_at is not None:
            ready_at = min(ready_at, started_at)  # one that had begun before the simulation
        return TaskLine(
            task=task.id,
            project=task.project,
            kind=task.kind,
            group=task.group,
            arrived_at=came_at,
            ready_at=ready_at,
            started_at=started_at,
            ended_at=task.ended_at,
            status=str(task.status),
        )

    def _bound(
        self, projects: Mapping[str, Project], policy: Policy, made: Iterable[Attempt]
    ) -> int:
        """The bound for the two projects that may be furthest apart."""
        costs = (max(attempt.estimate, _tokens(attempt, policy)) for attempt in made)
        room = max((slots for _, slots in self.slots), default=0)
        bound = Bound.of(policy, projects, max(costs, default=None), room)
        shared = [projects[name] for name in self._lag if name in projects]
        parts = sorted(bound.part(project) for project in shared if project.weight)
        return sum(parts[-2:])


def _tokens(attempt: Attempt, policy: Policy) -> int:
    return counted(Tokens(*attempt.tokens), policy.usage.count)


def _attempt_line(attempt: Attempt, policy: Policy, gone_at: Instant | None) -> AttemptLine:
    return AttemptLine(
        task=attempt.task,
        number=attempt.number,
        worker=attempt.worker,
        leased_at=attempt.leased_at,
        ended_at=attempt.ended_at,
        outcome=attempt.outcome,
        tokens=_tokens(attempt, policy),
        usd=attempt.usd or 0,
        gone_at=gone_at,
    )


def _every(reading: Reading) -> Iterator[Placed]:
    """Every task, in the order of arrival."""
    after = 0
    while page := reading.listing(Filter(), after, _PAGE):
        yield from page
        after = page[-1].task.seq


def _late(tasks: Iterable[TaskLine], end: Instant) -> dict[str, int]:
    """The longest wait to start, by project."""
    late: dict[str, int] = {}
    for task in tasks:
        wait = wait_of(task, end)
        if wait is not None:
            late[task.project] = max(late.get(task.project, 0), wait)
    return dict(sorted(late.items()))
