"""What a scenario expects of its plan, and where the plan differs."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from fairlane.model.errors import did_you_mean
from fairlane.model.instant import Instant, show_instant
from fairlane.model.plan import Plan, Reason
from fairlane.model.record import dataclass
from fairlane.model.task import Status
from fairlane.service.scenario.fields import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from fairlane.service.scenario.fields import Table
    from fairlane.service.scenario.read import Scenario

EXPECT_KEYS = (
    "picks",
    "scores",
    "reason",
    "holds",
    "reclaims",
    "wake_at",
    "free",
    "workers",
    "workspaces",
)


@dataclass(frozen=True, slots=True)
class Expect:
    """What is expected; None or empty: anything will do."""

    picks: tuple[str, ...] | None = None
    scores: dict[str, int] = field(default_factory=dict)
    reason: str | None = None
    holds: dict[str, str] = field(default_factory=dict)
    reclaims: dict[str, str] | None = None
    wake_at: Instant | None = None
    free: int | None = None
    workers: dict[str, str] = field(default_factory=dict)
    workspaces: dict[str, str] = field(default_factory=dict)


def read_expect(table: Table, ids: Collection[str]) -> Expect:
    """The table `[expect]`; it speaks only of tasks that the scenario has."""
    picks = table.names("picks")
    _known(table, "picks", picks or (), ids)
    reclaims = _by_id(table, "reclaims", ids) if "reclaims" in table else None
    for status in (reclaims or {}).values():
        if status not in list(Status):
            raise table.error("reclaims", f"{status!r} is no status", did_you_mean(status, Status))
    return Expect(
        picks=picks,
        scores=_scores(table, picks, ids),
        reason=table.choice("reason", [str(each) for each in Reason]),
        holds=_by_id(table, "holds", ids),
        reclaims=reclaims,
        wake_at=table.moment("wake_at"),
        free=table.whole("free"),
        workers=_by_id(table, "workers", ids),
        workspaces=_by_id(table, "workspaces", ids),
    )


def check(scenario: Scenario, plan: Plan) -> list[str]:
    """The differences between what is expected and what was planned, one sentence each."""
    return list(_differences(scenario, plan))


def _differences(scenario: Scenario, plan: Plan) -> Iterator[str]:
    expect = scenario.expect
    picked = {pick.task: pick for pick in plan.picks}
    if expect.picks is not None and expect.picks != tuple(picked):
        yield f"picks: expected {_listed(expect.picks)}, planned {_listed(picked)}"
    for task, score in expect.scores.items():
        planned: object = picked[task].score.total if task in picked else _score(scenario, task)
        yield from _unequal(f"score of {task}", score, planned)
    for task, code in expect.holds.items():
        planned = "picked" if task in picked else _code(scenario, plan, task)
        yield from _unequal(f"hold of {task}", code, planned)
    for task, worker in expect.workers.items():
        planned = picked[task].worker if task in picked else "not picked"
        yield from _unequal(f"worker of {task}", worker, planned)
    for task, workspace in expect.workspaces.items():
        planned = picked[task].workspace if task in picked else "not picked"
        yield from _unequal(f"workspace of {task}", workspace, planned)
    yield from _other_differences(expect, plan)


def _unequal(what: str, expected: object, planned: object) -> Iterator[str]:
    if expected != planned:
        yield f"{what}: expected {expected}, planned {planned}"


def _other_differences(expect: Expect, plan: Plan) -> Iterator[str]:
    if expect.reason is not None:
        yield from _unequal("reason", expect.reason, str(plan.reason))
    reclaims = {each.task: str(each.status) for each in plan.reclaims}
    if expect.reclaims is not None and expect.reclaims != reclaims:
        yield f"reclaims: expected {expect.reclaims}, planned {reclaims}"
    if expect.wake_at is not None and expect.wake_at != plan.wake_at:
        planned = "never" if plan.wake_at is None else show_instant(plan.wake_at)
        yield f"wake_at: expected {show_instant(expect.wake_at)}, planned {planned}"
    if expect.free is not None and expect.free != plan.room.free:
        free = "no limit" if plan.room.free is None else plan.room.free
        yield f"free: expected {expect.free}, planned {free}"


def _code(scenario: Scenario, plan: Plan, task: str) -> str:
    """The code of the first hold of one task; a plan names only the first few of a lane."""
    for held in plan.holds:
        if task in held.tasks:
            return held.hold.code
    from fairlane.planner.why import why

    holds = why(scenario.snapshot, scenario.policy, scenario.now, task).document()["holds"]
    return str(holds[0]["code"]) if holds else "no hold"


def _score(scenario: Scenario, task: str) -> int | None:
    """The score of a task that was not picked."""
    from fairlane.planner.why import why

    score = why(scenario.snapshot, scenario.policy, scenario.now, task).document()["score"]
    return None if score is None else score.get("total")


def _scores(table: Table, picks: tuple[str, ...] | None, ids: Collection[str]) -> dict[str, int]:
    """Scores by id, or as a list beside `picks`."""
    values = table.values.get("scores", {})
    if isinstance(values, list):
        if len(values) != len(picks or ()):
            hint = "Write as many scores as picks, or a table of ids."
            raise table.error("scores", f"{len(values)} scores, {len(picks or ())} picks", hint)
        values = dict(zip(picks or (), values, strict=True))
    if not isinstance(values, dict):
        raise table.error("scores", f"not a table: {values!r}", "Write it as { a = 135 }.")
    _known(table, "scores", values, ids)
    for task, score in values.items():
        if isinstance(score, bool) or not isinstance(score, int):
            raise table.error("scores", f"{task}: not a whole number: {score}")
    return values


def _by_id(table: Table, key: str, ids: Collection[str]) -> dict[str, str]:
    values = table.values.get(key, {})
    if not isinstance(values, dict) or not all(isinstance(each, str) for each in values.values()):
        hint = f'Write it as {key} = {{ a = "word" }}.'
        raise table.error(key, f"not a table of words: {values!r}", hint)
    _known(table, key, values, ids)
    return values


def _known(table: Table, key: str, named: Collection[str], ids: Collection[str]) -> None:
    for each in named:
        if each not in ids:
            raise table.error(key, f"there is no task {each!r}", nearest(each, ids))


def _listed(ids: Collection[str]) -> str:
    return ", ".join(ids) or "nothing"
