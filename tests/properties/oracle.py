"""The rules once more, told plainly over tasks: it shares no code with the planner."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from fairlane.model.instant import MINUTE, SECOND, Instant
from fairlane.model.project import Budget, Pool, Worker
from fairlane.model.task import Status, Task
from tests.properties.plain import Fact, Flying, Plain, scaled
from tests.properties.strategies import World

PROBE = 60 * SECOND


class Oracle(Plain):
    """What must be true of a world's plan; `play` takes picks until nothing can start."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.flying: list[Flying] = []
        self.picks: list[Flying] = []
        self.lock_owner: dict[str, Task] = {}
        self.space_owner: dict[tuple[str, str], Task] = {}
        live = [worker for worker in world.workers if worker.live]
        self.assumed = not live
        self.workers = live or [Worker("local", self.policy.caps.get("all"))]
        self.lost = [task for task in world.tasks if task.status.in_flight and self.ended(task)]
        for task in world.tasks:
            if task.status.in_flight and task not in self.lost:
                self.flying.append(self.flight(task))
        self.before = list(self.flying)
        queued = [task for task in world.tasks if task.status is Status.QUEUED]
        self.ready = [task for task in queued if not self.waits(task)]
        self.waiting = [task for task in queued if self.waits(task)]
        self.begin_shares()
        if self.policy.overdue.after is not None:
            self.reserve()
        self.arrive()

    # What holds a task.

    def waits(self, task: Task) -> list[Fact]:
        rules, dead = self.policy.readiness, (Status.PARKED, Status.CANCELED)
        needs = [self.by_id[each].status for each in task.needs]
        parents = [self.by_id[task.parent].status] if task.parent else []
        if rules.parent == "none":
            parents = []
        alive = (Status.QUEUED, Status.LEASED, Status.RUNNING)
        paused = task.paused or any(p.scope == f"task:{task.id}" for p in self.world.paused)
        upstream = rules.upstream != "run" and any(s in dead for s in [*needs, *parents])
        backoff, not_before = task.backoff_until, task.not_before
        rows = [
            ("needs", any(status in alive for status in needs), None),
            ("parent", any(status in alive for status in parents), None),
            ("artifact", bool(task.artifacts_missing), None),
            ("backoff", backoff is not None and backoff > self.now, backoff),
            ("not_before", not_before is not None and not_before > self.now, not_before),
            ("source", bool(task.source_hold), None),
            ("upstream", upstream, None),
            ("paused", paused, None),
        ]
        return [Fact("readiness", code, until) for code, true, until in rows if true]

    def holds(self, task: Task, roomy: bool = False) -> list[Fact]:
        """Everything that holds a ready task; `roomy`: as if there were room for everybody."""
        return [
            *self.paused(task),
            *self.cooldown(task),
            *self.budget(task),
            *self.caps(task, roomy),
            *self.locked(task),
            *self.workspace(task),
            *self.worker(task, roomy),
        ]

    def paused(self, task: Task) -> Iterator[Fact]:
        scopes = {pause.scope for pause in self.world.paused}
        scopes |= {f"project:{p.name}" for p in self.projects.values() if p.status != "active"}
        for scope in self.scopes(task):
            if scope in scopes:
                yield Fact("paused", "paused")

    def cooldown(self, task: Task) -> Iterator[Fact]:
        for pool in self.world.pools:
            if pool.name != task.pool:
                continue
            if pool.until is not None and pool.until > self.now:
                yield Fact("cooldown", "cooldown", pool.until)
                continue
            probes = self.probes(pool, self.flying)
            starts = [self.now if each.started is None else each.started for each in probes]
            if not self.is_proved(pool) and len(probes) >= self.policy.cooldown.probe:
                yield Fact("cooldown", "probe", min(starts) + PROBE)

    def probes(self, pool: Pool, among: list[Flying]) -> list[Flying]:
        """Those that began after the cooldown of this pool."""
        mine = [each for each in among if each.task.pool == pool.name]
        return [each for each in mine if each.started is None or each.started >= (pool.until or 0)]

    def is_proved(self, pool: Pool) -> bool:
        """Whether a probe has used something, gone on for a minute, or ends now as failed."""
        over = self.probes(pool, [self.flight(task) for task in self.lost])
        tried = [*self.probes(pool, self.flying), *over]
        used = any(each.used or self.now - (each.started or self.now) >= PROBE for each in tried)
        late = any(each.task.stop_requested == "timeout" for each in over)
        return not pool.hits or used or late

    def budget(self, task: Task) -> Iterator[Fact]:
        budgets = list(self.policy.budget)
        for project in self.projects.values():
            budgets += project.budgets
        for scope in self.scopes(task):
            for budget in budgets:
                if budget.scope == scope:
                    yield from self.overspent(budget)

    def overspent(self, budget: Budget) -> Iterator[Fact]:
        rows = {(row.scope, row.window): row for row in self.world.usage}
        row = rows.get((budget.scope, budget.window)) or rows.get((budget.scope, None))
        in_tokens = budget.tokens is not None
        limit = budget.tokens if budget.tokens is not None else budget.usd or 0
        reserved = sum(
            self.still(each, in_tokens)
            for each in self.flying
            if budget.scope in self.scopes(each.task)
        )
        leaves: list[tuple[Instant, int]] = []
        if row is not None:
            spent = row.tokens if in_tokens else row.usd
            leaves = [(at, tokens if in_tokens else usd) for at, tokens, usd in row.leaves]
            spent -= sum(part for at, part in leaves if at <= self.now)
        else:
            spent = self.used_by(budget.scope) if in_tokens else 0
        if spent + reserved < limit:
            return
        until = None
        for at, part in leaves:
            if at > self.now and until is None:
                spent -= part
                until = at if spent + reserved < limit else None
        yield Fact("budget", "budget", until)

    def used_by(self, scope: str) -> int:
        names = [name for name in self.projects if scope in ("all", f"project:{name}")]
        return sum(self.tokens(name) for name in names)

    def still(self, each: Flying, in_tokens: bool) -> int:
        tokens = max(0, each.estimate - each.used)
        if in_tokens:
            return tokens
        for row in self.world.history:
            key = (each.task.project, each.task.kind, each.task.agent)
            if (row.project, row.kind, row.agent) == key and row.tokens:
                return tokens * row.usd // row.tokens
        return 0

    def cap(self, scope: str) -> int | None:
        caps, (kind, _, name) = self.policy.caps, scope.partition(":")
        own = self.projects[name].max_in_flight if kind == "project" else None
        if own is not None:
            return min(own, caps.get(scope, own))
        return caps.get(scope, caps.get(f"{kind}:*") if name else None)

    def count(self, scope: str, among: list[Flying] | None = None) -> int:
        flying = self.flying if among is None else among
        return sum(1 for each in flying if scope in self.scopes(each.task))

    def caps(self, task: Task, roomy: bool) -> Iterator[Fact]:
        for scope in self.scopes(task):
            cap = self.cap(scope)
            if cap is not None and self.count(scope) >= cap and not (roomy and scope == "all"):
                yield Fact("caps", "cap" if cap else "cap_zero")

    def locked(self, task: Task) -> Iterator[Fact]:
        taken = {lock for each in self.flying for lock in self.locks(each.task)}
        for lock in self.locks(task):
            owner = self.lock_owner.get(lock)
            if lock in taken:
                yield Fact("locks", "lock")
            elif owner is not None and self.lane(owner) != self.lane(task):
                yield Fact("locks", "reserved")

    def taken_spaces(self, project: str) -> set[str | None]:
        return {each.space for each in self.flying if each.task.project == project}

    def free_spaces(self, task: Task) -> list[str]:
        """The workspaces that a task without a preferred one may take, best first."""
        names = self.projects[task.project].workspaces or ()
        free = [name for name in names if name not in self.taken_spaces(task.project)]
        mine = []
        for name in free:
            owner = self.space_owner.get((task.project, name))
            if owner is None or self.lane(owner) == self.lane(task):
                mine.append(name)
        picked = {each.task.id for each in self.picks}
        wanted = [
            each.workspace
            for each in self.ready
            if each.project == task.project and each.id not in picked
        ]
        return sorted(mine, key=lambda name: (wanted.count(name), name))

    def workspace(self, task: Task) -> Iterator[Fact]:
        names = self.projects[task.project].workspaces
        if task.workspace is not None:
            owner = self.space_owner.get((task.project, task.workspace))
            if task.workspace in self.taken_spaces(task.project):
                yield Fact("workspace", "workspace")
            elif owner is not None and self.lane(owner) != self.lane(task):
                yield Fact("workspace", "reserved")
        elif names is not None and not self.free_spaces(task):
            taken = set(names) <= self.taken_spaces(task.project)
            yield Fact("workspace", "workspace" if taken else "reserved")

    def free_slots(self, worker: Worker) -> tuple[bool, int]:
        """(without limit, free slots); of two without limit the less busy has more."""
        busy = sum(1 for each in self.flying if self.assumed or each.worker == worker.name)
        if worker.slots is None:
            return True, -busy
        return False, max(0, worker.slots - busy)

    def worker(self, task: Task, roomy: bool) -> Iterator[Fact]:
        agents = self.world.agents
        if agents is not None and task.agent is not None and task.agent not in agents:
            yield Fact("worker", "unknown_agent")
        needed = set(task.labels)
        fits = [each for each in self.workers if needed <= set(each.labels)]
        if not fits:
            known = any(needed <= set(each.labels) for each in self.world.workers)
            yield Fact("worker", "no_worker" if known else "no_label")
        elif not roomy and not any(self.has_room(each) for each in fits):
            yield Fact("worker", "no_slot")

    def has_room(self, worker: Worker) -> bool:
        unlimited, free = self.free_slots(worker)
        return unlimited or free > 0

    def choose(self, task: Task) -> str:
        needed = set(task.labels)
        fits = [w for w in self.workers if needed <= set(w.labels) and self.has_room(w)]
        most = max(-len(set(each.labels) - needed) for each in fits)
        fits = [each for each in fits if -len(set(each.labels) - needed) == most]
        room = max(self.free_slots(each) for each in fits)
        return min(each.name for each in fits if self.free_slots(each) == room)

    # What is reserved, and whose turn it is.

    def overdue(self, task: Task) -> bool:
        after = self.policy.overdue.after
        return after is not None and self.now - self.since(task) > after

    def reserve(self) -> None:
        late = [task for task in self.ready if self.overdue(task)]
        late.sort(key=lambda task: (self.since(task), task.seq))
        gates = {task.id: {fact.gate for fact in self.holds(task)} for task in late}
        owners: dict[str, Task] = {}
        for task in late:
            if gates[task.id] and gates[task.id] <= {"locks", "workspace"}:
                owners.setdefault(task.project, task)
        for task in owners.values():
            older = [each for each in late[: late.index(task)] if not gates[each.id]]
            mine = [each for each in older if each.project == task.project]
            space = task.workspace
            if space is None and self.projects[task.project].workspaces is not None:
                space = next(iter(self.free_spaces(task)), None)
            if space is not None and all(e.workspace not in (None, space) for e in mine):
                self.space_owner[task.project, space] = task
            for lock in self.locks(task):
                if all(lock not in self.locks(each) for each in older):
                    self.lock_owner.setdefault(lock, task)

    def tokens(self, name: str) -> int:
        """Used in the window, by what is in flight too (also by what is lost now)."""
        flying = [t for t in self.by_id.values() if t.status.in_flight and t.project == name]
        return self.projects[name].tokens + sum(t.lease.used for t in flying if t.lease)

    def begin_shares(self) -> None:
        self.clocks: dict[str, int] = {}
        self.received: dict[str, int] = {}
        for name, project in self.projects.items():
            mine = [each for each in self.flying if each.task.project == name]
            self.received[name] = self.tokens(name)
            if not self.policy.share.frozen:
                self.received[name] += sum(max(0, each.estimate - each.used) for each in mine)
            ended = self.tokens(name) - sum(each.used for each in mine)
            amounts = [ended, *(max(each.used, each.estimate) for each in mine)]
            clock = self.world.clock + sum(scaled(each, project.weight) for each in amounts)
            self.clocks[name] = clock if project.clock is None else project.clock
        self.everyone = self.world.clock
        self.starts = {name: project.starts for name, project in self.projects.items()}
        inactive = {p.scope for p in self.world.paused}
        self.counted = {
            task.project
            for task in self.ready
            if self.projects[task.project].status == "active"
            and f"project:{task.project}" not in inactive
        }

    def arrive(self) -> None:
        found = {task.project for task in self.ready if not self.holds(task, roomy=True)}
        self.present = {name for name in found if self.projects[name].weight}
        for name in self.present:
            project = self.projects[name]
            if not project.present:
                credit = scaled(self.policy.share.idle_credit, project.weight)
                self.clocks[name] = max(self.clocks[name], self.everyone - credit)

    def share(self, name: str) -> tuple[Any, ...]:
        rules, weight = self.policy.share, self.projects[name].weight
        if rules.mode == "none":
            return ()
        if not weight:
            return (1, 0)
        if rules.mode == "virtual-time":
            return (0, self.clocks[name])
        total = sum(self.received[each] for each in self.counted)
        weights = sum(self.projects[each].weight for each in self.counted)
        if not weights:
            return (0, 0)
        return (0, Fraction(self.received[name], total or 1) - Fraction(weight, weights))

    def score(self, task: Task) -> int:
        rules = self.policy.score
        minutes = max(0, self.now - self.since(task)) // MINUTE
        return (
            rules.kind.get(task.kind, rules.kind.get("*", 0))
            + min(minutes * rules.age_per_minute, rules.age_max)
            + self.depths[task.id] * rules.depth_per_level
            - min(task.failures * rules.retry_penalty, rules.retry_penalty_max)
        )

    def place(self, task: Task) -> list[Any]:
        rules, project = self.policy.share, self.projects[task.project]
        had = self.starts[task.project]
        if rules.guarantee_counts == "completions":
            had = project.completions
        values = {
            "guarantee": 0 if project.weight and had < rules.guarantee else 1,
            "share": self.share(task.project),
            "overdue": (0, self.since(task)) if self.overdue(task) else (1, 0),
            "priority": task.priority,
            "score": -self.score(task),
            "age": self.since(task),
        }
        return [*(values[key] for key in self.policy.order), self.since(task), task.seq]

    # The round.

    def batch_left(self) -> int | None:
        batch, since = self.policy.capacity.batch, self.world.batch_since
        if batch is None:
            return None
        over = since is not None and self.now - since >= self.policy.cycle.interval
        return max(0, batch - (0 if over else self.world.batch_started) - len(self.picks))

    def left(self) -> list[Task]:
        picked = {each.task.id for each in self.picks}
        return [task for task in self.ready if task.id not in picked]

    def play(self) -> Oracle:
        while self.batch_left() != 0:
            startable = [task for task in self.left() if not self.holds(task)]
            if not startable:
                break
            self.take(min(startable, key=self.place))
        return self

    def take(self, task: Task) -> None:
        space = task.workspace
        if space is None and self.projects[task.project].workspaces is not None:
            space = self.free_spaces(task)[0]
        estimate = self.estimate(task, task.estimate_tokens)
        pick = Flying(task, self.choose(task), space, estimate, 0, self.now)
        self.picks.append(pick)
        self.flying.append(pick)
        self.starts[task.project] += 1
        weight = self.projects[task.project].weight
        if self.policy.share.mode == "virtual-time" and weight:
            behind = min((self.clocks[name] for name in self.present), default=self.everyone)
            self.everyone = max(self.everyone, behind)
            self.clocks[task.project] += scaled(estimate, weight)
        if not self.policy.share.frozen:
            self.received[task.project] += estimate

    def first_hold(self, task: Task) -> Fact:
        holds = self.holds(task)
        return holds[0] if holds else self.batch_fact()

    def batch_fact(self) -> Fact:
        since, interval = self.world.batch_since, self.policy.cycle.interval
        begun = self.now if since is None or self.now - since >= interval else since
        return Fact("batch", "batch", begun + interval)

    def reason(self) -> str:
        if any(pause.scope == "all" for pause in self.world.paused):
            return "paused"
        if not self.ready:
            return "none"
        if not self.left():
            return "ready"
        cap = self.policy.caps.get("all")
        if cap is not None and len(self.flying) >= cap:
            return "capacity"
        if not any(self.has_room(worker) for worker in self.workers):
            return "capacity"
        return "batch" if self.batch_left() == 0 else "held"

    def wake_at(self) -> Instant | None:
        times = [self.first_hold(task).until for task in self.left()]
        times += [self.waits(task)[0].until for task in self.waiting]
        leases = [task.lease for task in self.by_id.values() if task.status.in_flight]
        times += [lease.expires_at for lease in leases if lease and not lease.alive]
        return min((time for time in times if time is not None and time > self.now), default=None)
