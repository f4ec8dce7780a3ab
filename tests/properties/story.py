"""A world to which things happen: adds, plans, ends, pauses, other rules, time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from fairlane.lifecycle.backoff import prove, throttle
from fairlane.lifecycle.step import step
from fairlane.model.event import Happening
from fairlane.model.instant import MINUTE, SECOND
from fairlane.model.plan import Plan
from fairlane.model.project import Pause, Pool, Project, clock_correction
from fairlane.model.task import Lease, Outcome, Status, Task
from fairlane.planner import lanes
from tests.properties.strategies import KINDS, POOLS, PROJECTS, Draw, task, world

ENDS = ("succeeded", "failed", "launch_failed", "lost", "throttled", "environment", "released")


class Story:
    """Plain tasks under the lifecycle; `plan` commits what the planner says."""

    def __init__(self, seed: int, most: int = 8, only: tuple[str, ...] | None = None) -> None:
        self.draw = Draw(Random(seed), only)
        base = world(Random(seed), most, only)
        fresh = [
            replace(each, status=Status.QUEUED, lease=None, stop_requested="", max_attempts=None)
            for each in base.tasks
        ]
        known = {project.name for project in base.projects}
        undeclared = [Project(name) for name in PROJECTS if name not in known]
        self.world = replace(
            base,
            tasks=tuple(fresh),
            projects=(*base.projects, *undeclared),
            pools=tuple(Pool(name) for name in POOLS),
            batch_started=0,
            batch_since=None,
            spaces={},
            seed=None,
        )
        self.fence = 0
        self.weights: dict[str, int] = {}  # lease -> weight that was charged

    def happen(self, event: str) -> None:
        EVENTS[event](self)

    # What there is.

    def change(self, **fields: Any) -> None:
        self.world = replace(self.world, **fields)

    def one(self, *statuses: Status) -> Task | None:
        found = [each for each in self.world.tasks if each.status in statuses]
        return self.draw.pick(found) if found else None

    def in_flight(self) -> Task | None:
        return self.one(Status.LEASED, Status.RUNNING)

    def put(self, changed: Task) -> None:
        self.change(
            tasks=tuple(changed if each.id == changed.id else each for each in self.world.tasks)
        )

    def project(self, name: str) -> Project:
        return next(each for each in self.world.projects if each.name == name)

    def put_project(self, changed: Project) -> None:
        rest = [changed if p.name == changed.name else p for p in self.world.projects]
        self.change(projects=tuple(rest))

    def put_pool(self, changed: Pool) -> None:
        rest = [changed if p.name == changed.name else p for p in self.world.pools]
        self.change(pools=tuple(rest))

    # What happens.

    def add(self) -> None:
        number = len(self.world.tasks) + 1
        new = task(self.draw, number, 100)
        new = replace(
            new, status=Status.QUEUED, lease=None, stop_requested="", created_at=self.world.now,
            ready_since=None, launch_failures=0, failures=0,
        )  # fmt: skip
        self.change(tasks=(*self.world.tasks, new))

    def cancel(self) -> None:
        found = self.one(Status.QUEUED, Status.LEASED, Status.RUNNING, Status.PARKED)
        if found:
            self.put(step(found, Happening.CANCEL, self.world.policy, self.world.now).task)

    def pause(self) -> None:
        scopes = ["all", *(f"project:{p}" for p in PROJECTS), *(f"kind:{k}" for k in KINDS)]
        scopes += [f"pool:{pool}" for pool in POOLS] + ["group:g1", "group:g2"]
        self.change(paused=(*self.world.paused, Pause(self.draw.pick(scopes), "ann")))

    def resume(self) -> None:
        self.change(paused=self.world.paused[1:])

    def weigh(self) -> None:
        chosen = self.project(self.draw.pick(PROJECTS))
        self.put_project(replace(chosen, weight=self.draw.pick([0, 1, 3, 20])))

    def cap(self) -> None:
        scope = self.draw.pick(["caps.all", "caps.kind:code", "caps.project:*", "caps.group:g1"])
        limit = self.draw.pick([0, 1, 2, 4, 8, "none"])
        self.change(policy=self.world.policy.with_overrides({scope: limit}))

    def wait(self) -> None:
        self.change(now=self.world.now + self.draw.pick([1, SECOND, MINUTE, 7 * MINUTE]))

    def start(self) -> None:
        found = self.one(Status.LEASED)
        if found:
            self.put(step(found, Happening.STARTED, self.world.policy, self.world.now).task)

    def beat(self) -> None:
        found = self.in_flight()
        if found and found.lease:
            until = self.world.now + 5 * MINUTE
            self.put(replace(found, lease=replace(found.lease, expires_at=until)))

    def see(self) -> None:
        """Its process is seen alive, or not any more."""
        found = self.in_flight()
        if found and found.lease:
            self.put(replace(found, lease=replace(found.lease, alive=not found.lease.alive)))

    def use(self) -> None:
        found = self.in_flight()
        if found and found.lease:
            self.correct(found, -1)
            more = found.lease.used + self.draw.pick([1, 50, 400_000])
            found = replace(found, lease=replace(found.lease, used=more))
            self.put(found)
            self.correct(found, 1)

    def end(self) -> None:
        found = self.in_flight()
        if found:
            self.ended(found, Happening(self.draw.pick(ENDS)))

    def retry(self) -> None:
        found = self.one(Status.PARKED)
        if found:
            self.put(step(found, Happening.RETRY, self.world.policy, self.world.now).task)

    def again(self) -> None:
        found = self.one(Status.DONE, Status.CANCELED)
        if found:
            self.put(step(found, Happening.AGAIN, self.world.policy, self.world.now).task)

    def appear(self) -> None:
        """Artifacts are written, the source lets go, a task's own pause is lifted."""
        found = self.one(Status.QUEUED)
        if found:
            self.put(replace(found, artifacts_missing=(), source_hold="", paused=False))

    def plan(self) -> Plan:
        """Plan and commit: reclaims first, then the leases, then clocks and the batch."""
        plan = lanes.plan(*self.world.args)
        by_id = {each.id: each for each in self.world.tasks}
        for name, (clock, present) in plan.clocks.projects.items():
            self.put_project(replace(self.project(name), clock=clock, present=present))
        for reclaim in plan.reclaims:
            after = self.ended(by_id[reclaim.task], Happening.LOST)
            assert after.status is reclaim.status
        for pick in plan.picks:
            self.lease(by_id[pick.task], pick.worker, pick.workspace, pick.estimate)
        self.count_batch(len(plan.picks))
        self.change(clock=plan.clocks.everyone)
        return plan

    # How it is kept.

    def lease(self, chosen: Task, worker: str, space: str | None, estimate: int) -> None:
        self.fence += 1
        until = self.world.now + 5 * MINUTE
        given = Lease(f"l{self.fence}", self.fence, 1, worker, until, estimate=estimate)
        now, policy = self.world.now, self.world.policy
        self.put(step(chosen, Happening.LEASED, policy, now, lease=given).task)
        mine = self.project(chosen.project)
        self.weights[given.id] = mine.weight
        self.put_project(replace(mine, starts=mine.starts + 1))
        if space is not None:
            self.change(spaces=self.world.spaces | {chosen.id: space})

    def ended(self, found: Task, happening: Happening) -> Task:
        world, lease = self.world, found.lease
        assert lease is not None
        self.settle(found, happening)
        after = step(found, happening, world.policy, world.now)
        assert not after.task.status.in_flight
        self.put(after.task)
        mine = self.project(found.project)
        done = after.outcome is Outcome.SUCCEEDED
        completions = mine.completions + done
        self.put_project(replace(mine, tokens=mine.tokens + lease.used, completions=completions))
        self.change(spaces={k: v for k, v in self.world.spaces.items() if k != found.id})
        return after.task

    def settle(self, found: Task, happening: Happening) -> None:
        """The clock gets back what was not used; the pool hears how it went."""
        lease, now = found.lease, self.world.now
        assert lease is not None
        self.correct(found, -1)
        self.correct(found, 1, ended=True)
        pool = next((each for each in self.world.pools if each.name == found.pool), None)
        if pool is None or lease.started_at is None:
            return
        if happening is Happening.THROTTLED:
            self.put_pool(throttle(pool, self.world.policy, now, lease.started_at, 30 * SECOND))
        elif happening in (Happening.SUCCEEDED, Happening.FAILED):
            self.put_pool(prove(pool, lease.started_at, Outcome(str(happening)), used=lease.used))

    def correct(self, found: Task, sign: int, ended: bool = False) -> None:
        mine, lease = self.project(found.project), found.lease
        if lease is not None and mine.clock is not None:
            weight, estimate = self.weights[lease.id], lease.estimate or 0
            more = clock_correction(estimate, lease.used, weight, ended)
            self.put_project(replace(mine, clock=mine.clock + sign * more))

    def count_batch(self, picks: int) -> None:
        world = self.world
        since, interval = world.batch_since, world.policy.cycle.interval
        if not picks:
            return
        if since is None or world.now >= since + interval:
            self.change(batch_since=world.now, batch_started=picks)
        else:
            self.change(batch_started=world.batch_started + picks)


EVENTS: dict[str, Callable[[Story], Any]] = {
    name: getattr(Story, name)
    for name in (
        "add", "cancel", "pause", "resume", "weigh", "cap", "wait", "start", "beat", "see", "use",
        "end", "retry", "again", "appear", "plan",
    )
}  # fmt: skip
