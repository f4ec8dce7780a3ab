"""Random worlds: every gate, every order, every share mode, each from a seed and a size."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from fairlane.model.instant import HOUR, MINUTE, SECOND, Instant
from fairlane.model.project import Budget, Group, History, Pause, Pool, Project, Usage, Worker
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Lease, Status, Task
from fairlane.policy.policy import Policy

NOW: Instant = 1_769_774_400 * SECOND
PROJECTS = ("web", "api", "docs", "ops")
KINDS = ("code", "plan", "review")
AGENTS = ("claude", "codex")
POOLS = ("p1", "p2")
GROUPS = ("g1", "g2", "g3")
LOCKS = ("x", "y", "z")
LABELS = ("gpu", "os=linux")
SPACES = ("w1", "w2", "w3")
KEYS = ("guarantee", "share", "overdue", "priority", "score", "age")
FEATURES = (
    "batch", "budgets", "caps", "flights", "locks", "pauses", "pools", "room", "spaces", "waits",
    "workers",
)  # fmt: skip
BALANCED = Policy.preset("balanced")


@dataclass(frozen=True)
class World:
    """Plain objects, the rules and the time; what a plan is made from."""

    tasks: tuple[Task, ...]
    policy: Policy
    now: Instant = NOW
    projects: tuple[Project, ...] = ()
    workers: tuple[Worker, ...] = ()
    pools: tuple[Pool, ...] = ()
    usage: tuple[Usage, ...] = ()
    paused: tuple[Pause, ...] = ()
    groups: tuple[Group, ...] = ()
    history: tuple[History, ...] = ()
    spaces: dict[str, str] = field(default_factory=dict)  # task in flight -> where it works
    clock: int = 0
    batch_started: int = 0
    batch_since: Instant | None = None
    agents: tuple[str, ...] | None = None
    seed: tuple[Any, ...] | None = None  # what a large world was made from

    def __repr__(self) -> str:
        if self.seed is not None:
            return f"seeded{self.seed}"
        shown = {each.name: getattr(self, each.name) for each in fields(self)}
        return f"World({shown})"

    def snapshot(self) -> Snapshot:
        made = Snapshot.of(
            self.tasks, self.projects, self.workers, self.pools, self.usage, self.paused,
            self.groups, self.history,
        )  # fmt: skip
        return replace(
            made,
            in_flight=tuple(
                replace(each, workspace=self.spaces.get(each.task, each.workspace))
                for each in made.in_flight
            ),
            clock=self.clock,
            batch_started=self.batch_started,
            batch_since=self.batch_since,
            agents=self.agents,
        )

    @property
    def args(self) -> tuple[Snapshot, Policy, Instant]:
        return self.snapshot(), self.policy, self.now


class Draw:
    """Draws of one world, from anything that is used like `random.Random`."""

    def __init__(self, random: Random, only: tuple[str, ...] | None = None) -> None:
        self.random = random
        #: Some of what there is, mostly little, so that one rule does not hide another.
        many = min(self.upto(len(FEATURES)), self.upto(len(FEATURES)))
        self.on = set(random.sample(FEATURES, many) if only is None else only)

    def one_in(self, n: int) -> bool:
        return self.random.randrange(n) == n - 1

    def maybe(self, n: int, make: Any, other: Any = None) -> Any:
        return make() if self.one_in(n) else other

    def pick(self, choices: Any) -> Any:
        return choices[self.random.randrange(len(choices))]

    def some(self, choices: Any, n: int) -> tuple[Any, ...]:
        return tuple(each for each in choices if self.one_in(n))

    def upto(self, most: int) -> int:
        return self.random.randrange(most + 1)

    def order(self) -> list[str]:
        return self.random.sample(KEYS, 1 + self.upto(len(KEYS) - 1))


def policies(draw: Draw) -> Policy:
    """A policy that bounds many things, in any order and share mode."""
    keys: dict[str, Any] = {
        "caps.all": draw.pick([0, 1, 3, 6, 9, 12, 20, 40]) if "room" in draw.on else "none",
        "share.mode": draw.pick(["virtual-time", "virtual-time", "deficit", "none"]),
        "share.frozen": draw.one_in(4),
        "share.guarantee": draw.pick([0, 0, 1, 2]),
        "share.guarantee_counts": draw.pick(["starts", "completions"]),
        "share.idle_credit": draw.pick([0, 1_000, 200_000]),
        "share.default_estimate": draw.pick([0, 7, 7, 100_000]),
        "score.age_from": draw.pick(["ready", "created"]),
        "score.age_per_minute": draw.upto(2),
        "readiness.parent": draw.pick(["done", "none"]),
        "readiness.upstream": draw.pick(["hold", "run", "cancel"]),
        "locks.serial": draw.pick(["group+kind", "none"]),
        "locks.parallel_default": not draw.one_in(3),
        "cooldown.probe": draw.upto(1) + 1,
        "retry.max_attempts": draw.upto(2) + 1,
        "overdue.after": draw.pick(["none", "0s", "10m", "10m", "2h"]),
    }
    if draw.one_in(2):
        keys["order"] = draw.order()
    if "batch" in draw.on:
        keys["capacity.batch"] = draw.upto(8)
    for scope in ("kind:code", "kind:*", "project:web", "project:*", "pool:p1", "agent:codex",
                  "group:g1", "group:*", "label:gpu"):  # fmt: skip
        if "caps" in draw.on and draw.one_in(4):
            keys[f"caps.{scope}"] = draw.pick([0, 1, 2, 3, 5, 8])
    if "budgets" in draw.on:
        scopes = ("all", "project:web", "pool:p1", "group:g1")
        keys["budget"] = [budget_row(draw, scope) for scope in draw.some(scopes, 2)]
    return BALANCED.with_overrides(keys)


def budget_row(draw: Draw, scope: str) -> dict[str, Any]:
    limit = draw.pick([0, 50, 200, 300_000, 10**7])
    amount = {"usd": "1.50"} if draw.one_in(4) else {"tokens": limit}
    return {"scope": scope, "window": draw.pick(["24h", "5h", "total"]), **amount}


def projects(draw: Draw) -> tuple[Project, ...]:
    def one(name: str) -> Project:
        budgeted = "budgets" in draw.on and draw.one_in(4)
        stopped = "pauses" in draw.on and draw.one_in(4)
        return Project(
            name,
            weight=draw.pick([1, 1, 2, 3, 20, 0]),
            max_in_flight=draw.upto(5) if "caps" in draw.on and draw.one_in(4) else None,
            budgets=(Budget(f"project:{name}", tokens=60),) if budgeted else (),
            status=draw.pick(["active", "active", "paused", "archived"]) if stopped else "active",
            workspaces=SPACES[: draw.upto(3)] if "spaces" in draw.on and draw.one_in(2) else None,
            tokens=draw.pick([0, 0, 10, 25, 100, 100_000]),
            starts=draw.upto(2),
            completions=draw.upto(2),
            clock=draw.maybe(2, lambda: draw.pick([0, 5 * 10**6, 10**9, 10**11])),
            present=draw.one_in(2),
        )

    return tuple(one(name) for name in PROJECTS[: draw.upto(len(PROJECTS))])


def usages(draw: Draw) -> tuple[Usage, ...]:
    def row(scope: str) -> Usage:
        parts = [(NOW + draw.pick([-MINUTE, 0, MINUTE, HOUR]) + n, 20, 600_000) for n in range(2)]
        leaves = tuple(sorted(parts)) if draw.one_in(2) else ()
        window = draw.pick(["24h", None])
        return Usage(scope, window, draw.pick([40, 60, 299_999]), 1_200_000, leaves)

    return tuple(
        row(scope) for scope in draw.some(("all", "project:web", "pool:p1", "group:g1"), 3)
    )


def pauses(draw: Draw) -> tuple[Pause, ...]:
    scopes = ("kind:plan", "project:docs", "pool:p2", "group:g1", "group:g3", "task:t3")
    if "pauses" not in draw.on:
        return ()
    if draw.one_in(12):
        return (Pause("all", "ann", NOW - HOUR),)
    return tuple(Pause(scope, "ann", NOW - HOUR, "why") for scope in draw.some(scopes, 8))


def pools(draw: Draw) -> tuple[Pool, ...]:
    return tuple(
        Pool(name, draw.pick([None, NOW - HOUR, NOW - MINUTE, NOW, NOW + MINUTE]), draw.upto(2))
        for name in (POOLS if "pools" in draw.on else ())
    )


def workers(draw: Draw) -> tuple[Worker, ...]:
    def one(name: str) -> Worker:
        slots = draw.maybe(4, lambda: None, draw.upto(9))
        return Worker(name, slots, draw.some(LABELS, 2), live=not draw.one_in(5))

    return tuple(
        one(name) for name in draw.some(("box1", "box2", "box3"), 2 if "workers" in draw.on else 99)
    )


def lease(draw: Draw, number: int) -> Lease:
    return Lease(
        f"l{number}",
        number,
        worker=draw.pick([None, "box1", "box2", "local"]),
        expires_at=draw.pick([None, NOW - MINUTE, NOW, NOW + 1, NOW + MINUTE]),
        started_at=draw.pick([None, NOW - 2 * HOUR, NOW - MINUTE, NOW - SECOND, NOW]),
        alive=draw.one_in(3),
        estimate=draw.pick([None, 0, 30, 90_000]),
        used=draw.pick([0, 0, 25, 200_000]),
    )


def task(draw: Draw, number: int, count: int) -> Task:
    status = "queued"
    if "flights" in draw.on and draw.one_in(max(3, count // 6)):
        status = draw.pick(["leased", "running"])
    elif draw.one_in(8):
        status = draw.pick(["done", "done", "parked", "canceled"])
    waits = "waits" in draw.on
    earlier = [f"t{each}" for each in range(max(1, number - 4), number) if waits]
    created = NOW - draw.pick([-MINUTE, 0, 0, SECOND, 5 * MINUTE, HOUR, 30 * HOUR])
    times = [None, NOW - HOUR, NOW, NOW + MINUTE]
    return Task(
        f"t{number}",
        number,
        draw.pick(PROJECTS),
        draw.pick(KINDS),
        priority=draw.pick([100, 100, 10, 200]),
        parent=draw.maybe(8, lambda: draw.pick(earlier)) if earlier else None,
        needs=draw.some(earlier, 8),
        group=draw.maybe(3, lambda: draw.pick(GROUPS)),
        agent=draw.maybe(3, lambda: draw.pick(AGENTS)),
        pool=draw.maybe(2, lambda: draw.pick(POOLS)),
        parallel=draw.pick([None, None, True, False]),
        locks=draw.some(LOCKS, 4) if "locks" in draw.on else (),
        workspace=draw.pick(SPACES) if "spaces" in draw.on and draw.one_in(4) else None,
        labels=draw.some(LABELS, 5) if "workers" in draw.on else (),
        estimate_tokens=draw.pick([None, None, 10, 50_000]),
        max_attempts=draw.pick([None, None, 1, 5]),
        created_at=created,
        ready_since=draw.pick([None, created, created + MINUTE]),
        not_before=draw.pick(times) if waits and draw.one_in(8) else None,
        backoff_until=draw.pick(times) if waits and draw.one_in(8) else None,
        artifacts_missing=("plan.md",) if waits and draw.one_in(12) else (),
        source_hold="blocked by B" if waits and draw.one_in(12) else "",
        paused=waits and draw.one_in(12),
        failures=draw.pick([0, 0, 1, 2]),
        launch_failures=draw.pick([0, 0, 1]),
        stop_requested=draw.maybe(8, lambda: draw.pick(["cancel", "timeout", "budget"]), ""),
        status=Status(status),
        lease=lease(draw, number) if status in ("leased", "running") else None,
    )


def crowd(draw: Draw, like: tuple[Task, ...], count: int) -> tuple[Task, ...]:
    """More tasks in the lanes of those that there are."""
    queued = [each for each in like if each.status is Status.QUEUED][:20]
    if not queued:
        return ()
    first = len(like) + 1
    return tuple(
        replace(
            draw.pick(queued),
            id=f"t{number}",
            seq=number,
            created_at=NOW - draw.upto(6) * HOUR,
            ready_since=None,
            estimate_tokens=draw.pick([None, 10, 50_000]),
        )
        for number in range(first, first + draw.upto(count))
    )


def world(random: Random, tasks_max: int, only: tuple[str, ...] | None = None) -> World:
    draw = Draw(random, only)
    count = draw.upto(tasks_max)
    tasks = tuple(task(draw, number, count) for number in range(1, count + 1))
    if draw.one_in(2):
        tasks += crowd(draw, tasks, tasks_max)
    flying = [each.id for each in tasks if each.status.in_flight and each.workspace is None]
    return World(
        tasks,
        policies(draw),
        projects=projects(draw),
        workers=workers(draw),
        pools=pools(draw),
        usage=usages(draw),
        paused=pauses(draw),
        groups=(Group("g1"), Group("g2", "g1"), Group("g3", "g2")) if draw.one_in(2) else (),
        history=tuple(
            History(project, "code", None, draw.pick([1, 40, 70_000]), 1_000, draw.pick([0, 900]))
            for project in draw.some(PROJECTS, 3)
        ),
        spaces={each: draw.pick(SPACES) for each in flying if draw.one_in(3)},
        clock=draw.pick([0, 10**7, 10**9, 10**10]),
        batch_started=draw.upto(2),
        batch_since=draw.pick([None, NOW - MINUTE, NOW - SECOND, NOW - 1, NOW]),
        agents=draw.maybe(5, lambda: ("claude",)),
    )


def seeded(seed: int, most: int, only: tuple[str, ...] | None = None) -> World:
    return replace(world(Random(seed), most, only), seed=(seed, most, only))


def worlds(most: int = 60, only: tuple[str, ...] | None = None) -> st.SearchStrategy[World]:
    """Worlds of up to so many tasks, and a crowd; a failure shrinks to fewer tasks."""
    return st.builds(seeded, st.integers(0, 2**48), st.integers(0, most), st.just(only))


def with_keys(world: World, **keys: Any) -> World:
    """The same world under other rules: `share__mode="deficit"`."""
    changed = {key.replace("__", "."): value for key, value in keys.items()}
    return replace(world, policy=world.policy.with_overrides(changed), seed=None)
