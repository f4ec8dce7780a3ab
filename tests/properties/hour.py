"""An hour of use: deeds drawn at random, done at a context where time stands still between them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlane.clock import FixedClock
from fairlane.engine import attempts, compaction
from fairlane.engine.attempts import Progress
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Ending, Report
from fairlane.engine.look.workers import Asker
from fairlane.engine.task_changes import place
from fairlane.model.errors import FairlaneError
from fairlane.model.event import Happening
from fairlane.model.instant import DAY, SECOND, Instant, show_instant
from fairlane.model.task import Status, Task
from fairlane.service import projects, queue, tasks
from fairlane.settings import Settings
from fairlane.store.base import Filter, Store
from tests import holder

START: Instant = 20_000 * DAY
PROJECTS = ("default", "web", "ops")
KINDS = ("code", "review", "plan")
SCOPES = ("all", "project:web", "kind:review", "group:g", "task:t1", "task:t3", "pool:anthropic")
OUTCOMES = ("failed", "launch_failed", "throttled", "environment", "released", "canceled")
ENDS = (
    Happening.FAILED, Happening.LAUNCH_FAILED, Happening.THROTTLED, Happening.ENVIRONMENT,
    Happening.RELEASED, Happening.STOPPED,
)  # fmt: skip
POLICIES = (
    'caps."all" = 2', 'caps."all" = 5', 'caps."kind:review" = 1', 'caps."project:*" = 1',
    'caps."label:gpu" = 1', 'caps."pool:anthropic" = 1', 'score.age_from = "created"',
    'overdue.after = "30s"', 'share.mode = "deficit"', 'share.mode = "none"',
    'order = ["priority", "score"]', 'readiness.upstream = "cancel"', "capacity.batch = 1",
    'readiness.upstream = "run"', 'readiness.parent = "none"', 'locks.serial = "none"',
    'history.keep = "1m"', 'retry.base = "0s"', "retry.max_attempts = 1", "share.guarantee = 0",
    'backpressure.hard = 30',
)  # fmt: skip
LEGAL = {
    Status.QUEUED: {Status.LEASED, Status.DONE, Status.CANCELED},
    Status.LEASED: {*Status},
    Status.RUNNING: {*Status} - {Status.LEASED},
    Status.PARKED: {Status.QUEUED, Status.LEASED, Status.CANCELED, Status.DONE},
    Status.DONE: {Status.QUEUED},
    Status.CANCELED: {Status.QUEUED},
}
#: What has passed stays passed, though the clock goes back.
TIMERS = ("backoff", "not_before")
Deed = tuple[str, int, int]


class Hour:
    """A context, the deeds, and what must hold after each of them."""

    policies: tuple[str, ...] = POLICIES

    def __init__(
        self, home: Path, store: Store, other: Store | None = None, workspaces: bool = True
    ) -> None:
        """`other`: the same store, as a second process has it; they take turns."""
        self.clock = FixedClock(START)
        self.context = Context(home, store, Settings(), self.clock, "tester")
        self.other = Context(home, other or store, Settings(), self.clock, "another")
        self.rules: list[str] = []
        self.changes = 0
        self.known: dict[str, Task] = {}
        self.fence = 0
        self.refusals: Counter[str] = Counter()
        self.rule(0, 1)
        for weight, name in enumerate(PROJECTS[1:]):
            projects.add_project(self.context, name, {"weight": weight + 1})
        if workspaces:
            projects.set_project(self.context, "web", {"workspaces": ["w1", "w2"]})

    def do(self, deed: Deed) -> None:
        """One deed; a refusal is an answer, anything else is a fault."""
        name, one, two = deed
        act: Callable[[int, int], object] = getattr(self, name)
        try:
            act(one, two)
        except FairlaneError as error:
            if error.error_code in ("corrupt", "store", "internal"):
                raise
            self.refusals[error.error_code] += 1
        self.hold(name)

    # Deeds

    def turn(self, one: int, two: int) -> None:
        """Another process goes on."""
        self.context, self.other = self.other, self.context

    def add(self, one: int, two: int) -> None:
        records = [self.record(one + n, two + 7 * n) for n in range(1 + one % 3)]
        tasks.add(self.context, records, again=two % 5 == 0)

    def record(self, one: int, two: int) -> dict[str, Any]:
        made: dict[str, Any] = {"project": PROJECTS[one % 3], "kind": KINDS[two % 3]}
        known = list(self.known)
        extra: list[dict[str, Any]] = [
            {}, {"locks": ["x"]}, {"locks": ["x", "y"]}, {"group": "g", "parallel": False},
            {"group": "h"}, {"agent": "claude"}, {"labels": ["gpu"]}, {"priority": one % 4},
            {"not_before": None}, {"max_attempts": 1},
            {"estimate_tokens": two * 1000}, {"project": "web", "workspace": "w1"},
            {"needs": known[-2:]}, {"parent": known[two % len(known)]} if known else {},
            {"id": known[one % len(known)]} if known else {},
        ]  # fmt: skip
        made |= extra[(one * 31 + two) % len(extra)]
        if "not_before" in made:
            made["not_before"] = show_instant(self.clock.at + two % 90 * SECOND)
        return made

    def lease(self, one: int, two: int) -> None:
        labels = ("gpu",) if two % 2 else ()
        limit = None if one % 4 == 0 else one % 4
        holder.lease(self.context, limit, f"worker{two % 3}", labels)

    def heartbeat(self, one: int, _: int) -> None:
        holder.heartbeat(self.context, self.some_lease(one))

    def report(self, one: int, two: int) -> None:
        holder.report(self.context, self.some_lease(one), self.told(two), note="on it")

    def start(self, one: int, two: int) -> None:
        handle = f"{two} 1" if two % 3 else None
        attempts.start(self.context, {self.some_lease(one): handle, self.some_lease(two): None})

    def renew(self, one: int, two: int) -> None:
        leases = [self.some_lease(one), self.some_lease(two)]
        renewed = attempts.renew(self.context, leases)
        assert renewed.tasks.keys() | renewed.lost.keys() == set(leases)
        assert attempts.stops(self.context, leases) == renewed.stop

    def progress(self, one: int, two: int) -> None:
        news = Progress(self.told(two).tokens, two, "S", "on it")
        attempts.progress(self.context, dict.fromkeys(map(self.some_lease, (one, two)), news))

    def finish(self, one: int, two: int) -> None:
        """Several ends at once, as the runtime takes them in."""
        happening = (*ENDS, Happening.SUCCEEDED, Happening.LOST)[one % 8]
        ending = Ending(happening, self.told(two), "S", park=two % 7 == 0)
        leases = [self.some_lease(number) for number in (one, two, one + two)]
        attempts.finish(self.context, dict.fromkeys(leases, ending))

    def direct(self, one: int, two: int) -> None:
        asker = Asker("worker0", None, "process", "elsewhere")
        attempts.lease(self.context, asker, only=[self.some_task(one), self.some_task(two)])

    def complete(self, one: int, two: int) -> None:
        held = [self.some_lease(one)] if two % 3 else [self.some_lease(one), self.some_lease(two)]
        holder.complete(self.context, held, self.told(two))

    def release(self, one: int, two: int) -> None:
        holder.release(self.context, self.some_lease(one), OUTCOMES[two % 6], self.told(two))

    def cancel(self, one: int, two: int) -> None:
        tasks.cancel(self.context, [self.some_task(one)], tree=two % 2 == 0)

    def retry(self, one: int, _: int) -> None:
        tasks.retry(self.context, [self.some_task(one)])

    def edit(self, one: int, two: int) -> None:
        changes: list[dict[str, Any]] = [
            {"priority": two % 3},
            {"kind": KINDS[two % 3]},
            {"locks": ["y"]},
        ]
        tasks.edit(self.context, [self.some_task(one)], changes[two % 3])

    def pause(self, one: int, _: int) -> None:
        queue.pause(self.context, SCOPES[one % len(SCOPES)])

    def resume(self, one: int, _: int) -> None:
        queue.resume(self.context, SCOPES[one % len(SCOPES)])

    def weight(self, one: int, two: int) -> None:
        projects.set_project(self.context, PROJECTS[one % 3], {"weight": two % 4})

    def rule(self, one: int, two: int) -> None:
        """The policy file says something else from here on."""
        self.rules = [*self.rules, self.policies[one % len(self.policies)]][-(1 + two % 4) :]
        said = {line.split(" = ")[0]: line for line in self.rules}
        self.changes += 1
        file = self.context.policy_file
        file.write_text("\n".join(said.values()), encoding="utf-8")
        os.utime(file, ns=(self.changes, self.changes))

    def jump(self, one: int, two: int) -> None:
        """Time goes on, by seconds or by minutes; one time in nine it goes back."""
        by = one % 60 if two % 3 else 60 * (one % 20)
        self.clock.at += SECOND * (-by if two % 9 == 0 else by)

    def reclaim(self, _: int, __: int) -> None:
        holder.reclaim(self.context)

    def compact(self, _: int, __: int) -> None:
        compaction.compact(self.context)

    def told(self, number: int) -> Report:
        return Report(
            tokens=(number * 37, number, 0, number % 5), usd=number if number % 2 else None
        )

    def some_lease(self, number: int) -> str:
        """One that was given out, the newest most often; or one that never was."""
        return f"L{max(0, self.fence - number % 7)}"

    def some_task(self, number: int) -> str:
        return list(self.known)[number % len(self.known)] if self.known else "nobody"

    # What must hold

    def hold(self, deed: str) -> None:
        assert self.context.store.check() == []
        policy, now = self.context.policy(), self.clock.at
        with self.context.store.read() as reading:
            listed = reading.listing(Filter(), limit=10_000)
            flying = {task.id: task for task in reading.in_flight()}
            leased = reading.open_attempts()
            for placed in listed:
                meant = place(reading, placed.task, policy, now)
                if deed == "lease" and meant.wait not in TIMERS:  # a round brings everything in
                    assert placed.wait == meant.wait, (now, placed)
        found = {placed.task.id: placed.task for placed in listed}
        assert sorted(each.task for each in leased) == sorted(flying)
        for attempt in leased:
            lease = flying[attempt.task].lease
            assert lease is not None
            assert (lease.fence, lease.id) == (attempt.fence, attempt.lease)
        new = [name for name in flying if name not in self.known or self.is_new(flying[name])]
        self.hold_statuses(found)
        if new:
            assert deed in ("lease", "direct")
            if deed == "lease":
                self.hold_ceilings(flying, {each.task: each.workspace for each in leased}, new)
            fences = sorted(each.fence for each in leased if each.task in new)
            assert fences[0] > self.fence
            self.fence = fences[-1]
        self.known = found

    def is_new(self, task: Task) -> bool:
        return self.known[task.id].attempts != task.attempts

    def hold_statuses(self, found: dict[str, Task]) -> None:
        assert self.known.keys() <= found.keys()
        for name, before in self.known.items():
            after = found[name]
            assert after.attempts >= before.attempts
            assert after.seq == before.seq
            if after.status is not before.status:
                assert after.status in LEGAL[before.status], (before.status, after)

    def hold_ceilings(
        self, flying: dict[str, Task], places: dict[str, str | None], new: list[str]
    ) -> None:
        """What was started last broke no ceiling of the policy in force."""
        policy = self.context.policy()
        counts = Counter(cap for task in flying.values() for cap in caps_of(task))
        for name in new:
            for cap in caps_of(flying[name]):
                limit = policy.caps.get(cap)
                if limit is None and cap.startswith("project:"):
                    limit = policy.caps.get("project:*")
                assert limit is None or counts[cap] <= limit, (cap, name)
            for other, task in flying.items():
                if other != name:
                    serial = policy.locks.serial != "none"
                    both = locks_of(flying[name], serial) & locks_of(task, serial)
                    assert not both, (name, other, both)
                    assert places[name] is None or places[name] != places[other]


def caps_of(task: Task) -> set[str]:
    found = {"all", f"kind:{task.kind}", f"project:{task.project}", f"pool:{task.pool}"}
    return found | {f"agent:{task.agent}", f"group:{task.group}"} | {
        f"label:{label}" for label in task.labels
    }  # fmt: skip


def locks_of(task: Task, serial: bool) -> set[str]:
    alone = task.parallel is False and task.group is not None and serial
    return {*task.locks, *([f"{task.group}+{task.kind}"] if alone else [])}
