"""Changes: what could be different, so that a task would start; each can be tried by planning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from fairlane.lifecycle.backoff import prove
from fairlane.model.instant import Instant, show_instant
from fairlane.model.plan import Hold
from fairlane.model.project import Budget, Pool
from fairlane.model.record import NamedTuple, dataclass, replace
from fairlane.model.snapshot import Snapshot, Waiting
from fairlane.model.task import Lane, LaneKey, Outcome, Status
from fairlane.planner.gates.budget import reserved_in
from fairlane.planner.gates.paused import scope_words
from fairlane.planner.lanes import WindowUsedUp
from fairlane.planner.round import Round
from fairlane.planner.rules import LaneRules
from fairlane.policy.policy import Policy

if TYPE_CHECKING:
    from fairlane.model.documents.reports import ChangeDocument

#: What is tried at most: tasks that end, and how far a cap is raised.
ENDS_MAX = 20
RAISE_MAX = 64

World = tuple[Snapshot, Policy, Instant]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that could be different."""

    sentence: str
    apply: dict[str, object]
    to: Callable[[World], World]

    def document(self) -> ChangeDocument:
        """As every interface shows it."""
        return {"change": self.sentence, "apply": self.apply}


class Limit(NamedTuple):
    """A limit that could be raised: how, from where, in what steps."""

    raised_to: Callable[[int], Change]
    base: int
    step: int


def both(first: Change, second: Change) -> Change:
    """Two changes as one, the second made for the world after the first.

    Where both end or resume something, the two are listed.
    """
    apply = dict(first.apply)
    for form, value in second.apply.items():
        before = apply.get(form)
        if isinstance(before, dict) and isinstance(value, dict):  # settings of the policy
            apply[form] = before | value
        else:
            apply[form] = value if before is None else [before, value]
    sentence = f"{first.sentence}, and {second.sentence}"
    return Change(sentence, apply, lambda world: second.to(first.to(world)))


def wait_until(time: Instant) -> Change:
    """Time passes and nothing else happens."""
    shown = show_instant(time)
    return Change(f"it is {shown}", {"at": shown}, lambda world: (world[0], world[1], time))


def end(task: str, lane: LaneKey | None) -> Change:
    """A task ends, done; `lane`: where it is ready."""
    return Change(
        f"{task} is done", {"end": task}, lambda world: (_without(world[0], task, lane), *world[1:])
    )


def appear(artifacts: tuple[str, ...]) -> Change:
    """Files appear; whoever waits for them waits for others only."""
    verb = "exists" if len(artifacts) == 1 else "exist"
    return Change(
        f"{' and '.join(artifacts)} {verb}",
        {"exist": list(artifacts)},
        lambda world: (_with_files(world[0], artifacts), *world[1:]),
    )


def resume(scope: str) -> Change:
    """A pause is lifted."""
    return Change(
        f"{scope_words(scope)} is resumed",
        {"resume": scope},
        lambda world: (_resumed(world[0], scope), *world[1:]),
    )


def raise_cap(scope: str, limit: int, value: int) -> Change:
    """A cap is raised."""
    key = f'caps."{scope}"' if ":" in scope else f"caps.{scope}"
    return _set(f"cap {scope} is raised from {limit} to {value}", key, value)


def raise_batch(limit: int, value: int) -> Change:
    """More may start in one interval."""
    return _set(f"the batch is raised from {limit} to {value}", "capacity.batch", value)


def raise_budget(policy: Policy, budget: Budget, value: int) -> Change:
    """A budget of the policy is raised."""
    unit = "tokens" if budget.tokens is not None else "usd"
    higher = replace(budget, tokens=value) if unit == "tokens" else replace(budget, usd=value)
    raised = [higher if other is budget else other for other in policy.budget]
    shown = f"{value} tokens" if unit == "tokens" else f"${value / 1_000_000:.2f}"
    rows = policy.budget_rows(tuple(raised))
    return _set(f"the budget of {budget.scope} is raised to {shown}", "budget", rows)


def of_time_and_tasks(
    subject: Waiting, holds: list[Hold], now: Instant, lane_of: Mapping[str, LaneKey]
) -> Iterator[Change]:
    """Time, tasks that end, files that appear, pauses that are lifted: as the holds name them."""
    for time in sorted({hold.until for hold in holds if hold.until is not None}):
        if time > now:
            yield wait_until(time)
    holders = dict.fromkeys(task for hold in holds for task in hold.holders)
    for task in list(holders)[:ENDS_MAX]:
        if task != subject.entry.task:
            yield end(task, lane_of.get(task))
    if subject.artifacts:
        yield appear(subject.artifacts)
    if subject.paused:
        yield resume(f"task:{subject.entry.task}")


def of_pauses(lane: LaneRules, round: Round) -> Iterator[Change]:
    """Every pause that covers the lane, lifted."""
    for scope in lane.scopes:
        if scope in round.rules.pauses:
            yield resume(scope)


def of_limits(lane: LaneRules, round: Round) -> Iterator[Limit]:
    """Caps, batch and budgets that hold the lane."""
    for scope, limit in lane.caps:
        taken = len(round.ledger.holders.get(scope, ()))
        if taken >= limit and round.policy.caps.get(scope, limit) == limit:
            yield Limit(partial(raise_cap, scope, limit), taken, 1)
    batch = round.policy.capacity.batch
    if batch is not None and round.batch_left == 0:
        yield Limit(partial(raise_batch, batch), max(batch, round.snapshot.batch_started), 1)
    for scope in lane.scopes:
        for line in round.rules.budgets.get(scope, ()):
            reserved = reserved_in(line, round)
            if line.in_policy and line.spent + reserved >= line.limit:
                step = max(1, round.policy.share.default_estimate)
                raised = partial(raise_budget, round.policy, line.budget)
                yield Limit(raised, line.spent + reserved + 1 - step, step)  # first: one more


def _set(sentence: str, key: str, value: object) -> Change:
    return Change(
        sentence,
        {"policy": {key: value}},
        lambda world: (world[0], world[1].with_overrides({key: value}), world[2]),
    )


def _without(snapshot: Snapshot, task: str, lane: LaneKey | None) -> Snapshot:
    lanes = snapshot.lanes
    if lane is not None:
        lanes = tuple(_lane_without(each, task) if each.key == lane else each for each in lanes)
    waiting = (_waiting_without(row, task) for row in snapshot.waiting if row.entry.task != task)
    return replace(
        snapshot,
        lanes=tuple(each for each in lanes if each.count),
        waiting=tuple(waiting),
        in_flight=tuple(row for row in snapshot.in_flight if row.task != task),
        pools=_proved(snapshot, task),
        ended=snapshot.ended | {task: Status.DONE},
    )


def _waiting_without(row: Waiting, task: str) -> Waiting:
    is_child = row.parent is not None and row.parent[0] == task
    if not is_child and all(pair[0] != task for pair in row.needs):
        return row
    needs = tuple(pair for pair in row.needs if pair[0] != task)
    return replace(row, needs=needs, parent=None if is_child else row.parent)


def _with_files(snapshot: Snapshot, artifacts: tuple[str, ...]) -> Snapshot:
    rows = [
        replace(row, artifacts=tuple(name for name in row.artifacts if name not in artifacts))
        for row in snapshot.waiting
    ]
    return replace(snapshot, waiting=tuple(rows))


def _lane_without(lane: Lane, task: str) -> Lane:
    by_ready = tuple(entry for entry in lane.by_ready if entry.task != task)
    by_created = tuple(entry for entry in lane.by_created if entry.task != task)
    if lane.count > 1 and not (by_ready and by_created):
        raise WindowUsedUp(frozenset({lane.key}))
    return Lane(lane.key, lane.count - 1, by_ready, by_created)


def _proved(snapshot: Snapshot, task: str) -> dict[str, Pool]:
    """The pools after a task has succeeded: a probe proves its pool healthy."""
    pools = dict(snapshot.pools)
    for flight in snapshot.in_flight:
        name = flight.lane.pool
        if flight.task == task and name in pools and flight.lease.started_at is not None:
            pools[name] = prove(pools[name], flight.lease.started_at, Outcome.SUCCEEDED)
    return pools


def _resumed(snapshot: Snapshot, scope: str) -> Snapshot:
    kind, _, name = scope.partition(":")
    projects = snapshot.projects
    if kind == "project" and name in projects:
        projects = projects | {name: replace(projects[name], status="active")}
    waiting = snapshot.waiting
    if kind == "task":
        waiting = tuple(
            replace(row, paused=False) if row.entry.task == name else row for row in waiting
        )
    paused = tuple(pause for pause in snapshot.paused if pause.scope != scope)
    return replace(snapshot, paused=paused, projects=projects, waiting=waiting)
