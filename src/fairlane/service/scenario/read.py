"""From the text of a scenario file to a snapshot, a policy, a time, and what is expected."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from fairlane.careful_files import read_file
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import DAY, Instant, show_instant
from fairlane.model.plan import Plan, Reason
from fairlane.model.project import usage_scopes
from fairlane.model.record import dataclass, field, replace
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Status
from fairlane.model.values import COUNT_MAX, name, once, several, shown, whole, wrong
from fairlane.policy.policy import Policy
from fairlane.service.scenario.tasks import read_tasks
from fairlane.service.scenario.world import Table, World, nearest, read_world, with_spent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from fairlane.model.task import Task

EXPECT_KEYS = (
    "picks", "scores", "reason", "holds", "reclaims", "wake_at", "free", "workers", "workspaces",
)  # fmt: skip


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
    picks = table.read("picks", several(name, COUNT_MAX))
    _known(table, "picks", picks or (), ids)
    reclaims = _by_id(table, "reclaims", ids) if "reclaims" in table else None
    for status in (reclaims or {}).values():
        if status not in list(Status):
            raise table.error("reclaims", f"{status!r} is no status", did_you_mean(status, Status))
    return Expect(
        picks=picks,
        scores=_scores(table, picks, ids),
        reason=table.choice("reason", map(str, Reason)),
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
    for what, names in (("worker", expect.workers), ("workspace", expect.workspaces)):
        for task, expected in names.items():
            planned = getattr(picked[task], what) if task in picked else "not picked"
            yield from _unequal(f"{what} of {task}", expected, planned)
    yield from _other_differences(expect, plan)


def _unequal(what: str, expected: object, planned: object) -> Iterator[str]:
    if expected != planned:
        yield f"{what}: expected {expected}, planned {planned}"


def _other_differences(expect: Expect, plan: Plan) -> Iterator[str]:
    if expect.reason is not None:
        yield from _unequal("reason", expect.reason, str(plan.reason))
    reclaims = {reclaim.task: str(reclaim.status) for reclaim in plan.reclaims}
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
    for lane_hold in plan.holds:
        if task in lane_hold.tasks:
            return lane_hold.hold.code
    from fairlane.planner.why import why

    holds = why(scenario.snapshot, scenario.policy, scenario.now, task).document()["holds"]
    return str(holds[0]["code"]) if holds else "no hold"


def _score(scenario: Scenario, task: str) -> int | None:
    """The score of a task that was not picked."""
    from fairlane.planner.why import why

    score = why(scenario.snapshot, scenario.policy, scenario.now, task).document()["score"]
    return None if score is None else score.get("total")


def _scores(table: Table, picks: tuple[str, ...] | None, ids: Collection[str]) -> dict[str, int]:
    """Scores by id, or as a list in the order of `picks`."""
    scores = table.values.get("scores", {})
    if isinstance(scores, list):
        if len(scores) != len(picks or ()):
            hint = "Write as many scores as picks, or a table of ids."
            raise table.error("scores", f"{len(scores)} scores, {len(picks or ())} picks", hint)
        scores = dict(zip(picks or (), scores, strict=True))
    if not isinstance(scores, dict):
        raise table.error("scores", f"not a table: {shown(scores)}", "Write it as { a = 135 }.")
    _known(table, "scores", scores, ids)
    read = whole(-COUNT_MAX)
    return {task: table.typed(f"scores: {task}", score, read) for task, score in scores.items()}


def _by_id(table: Table, key: str, ids: Collection[str]) -> dict[str, str]:
    words = table.values.get(key, {})
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words.values()):
        hint = f'Write it as {key} = {{ a = "word" }}.'
        raise table.error(key, f"not a table of words: {shown(words)}", hint)
    _known(table, key, words, ids)
    return words


def _known(table: Table, key: str, named: Collection[str], ids: Collection[str]) -> None:
    for task_id in named:
        if task_id not in ids:
            raise table.error(key, f"there is no task {task_id!r}", nearest(task_id, ids))


def _listed(ids: Collection[str]) -> str:
    return ", ".join(ids) or "nothing"


TOP_KEYS = (
    "now", "paused", "policy", "project", "task", "worker", "pool", "group", "usage", "agents",
    "batch_started", "expect",
)  # fmt: skip
#: A scenario is written by hand, or by a program for a test; beyond this size it is neither.
FILE_BYTES_MAX = 64_000_000
#: The year 9000: times that follow from `now` can still be written.
NOW_MAX = 7030 * 365 * DAY


@dataclass(frozen=True, slots=True)
class Scenario:
    """A situation to plan: what is known, the rules, the time, and what is expected."""

    snapshot: Snapshot
    policy: Policy
    now: Instant
    tasks: tuple[Task, ...]
    expected: object  # the table `[expect]` as written; read only where it is compared
    origin: str

    @property
    def expect(self) -> Expect:
        """What is expected of the plan."""
        table = Table(f"{self.origin}: expect", self.expected, EXPECT_KEYS)
        return read_expect(table, {task.id for task in self.tasks})


def load(path: str | Path, now: Instant | None = None) -> Scenario:
    """The scenario in a file; `now` replaces the time of the file."""
    try:
        data = read_file(path, FILE_BYTES_MAX)
    except FileNotFoundError as error:
        raise Invalid(f"{path}: there is no such file", "Give the path of a scenario.") from error
    except OSError as error:
        raise Invalid(f"{path}: cannot be read: {error.strerror}") from error
    return parse(data, str(path), now)


def parse(text: str | bytes, origin: str = "scenario", now: Instant | None = None) -> Scenario:
    """The scenario in a text, TOML or JSON; `origin` names it in errors."""
    return build(to_mapping(text, origin), origin, now)


def to_mapping(text: str | bytes, origin: str = "scenario") -> dict[str, object]:
    """The tables of a text, with exact decimals; a mistake is named with its place."""
    if len(text) > FILE_BYTES_MAX:
        hint = f"Use at most {FILE_BYTES_MAX:,} bytes."
        raise Invalid(f"{origin}: {len(text)} bytes are no scenario", hint)
    try:
        plain = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise Invalid(f"{origin}: not UTF-8 text", "Save it as UTF-8.") from error
    try:
        if plain.lstrip()[:1] in ("{", ""):
            return _from_json(plain, origin) if plain.strip() else {}
        return tomllib.loads(plain, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        hint = "A scenario is TOML, or JSON of the same shape."
        raise Invalid(f"{origin}: cannot be parsed: {error}", hint) from error


def build(mapping: Mapping[str, object], origin: str, now: Instant | None = None) -> Scenario:
    """The scenario that tables describe."""
    top = Table(origin, mapping, TOP_KEYS)
    written = top.moment("now")
    base = now if written is None else written
    if base is None:
        raise top.error("now", "missing", "Write it as now = 2026-01-30T12:00:00Z.")
    if not 0 <= base < NOW_MAX:
        raise top.error("now", f"{show_instant(base)} is beyond what can be planned")
    policy = _policy(top)
    world = read_world(top, policy)
    tasks = read_tasks(top, world, policy, base)
    return Scenario(
        snapshot=_snapshot(top, world, tasks),
        policy=policy,
        now=base if now is None else now,
        tasks=tuple(tasks),
        expected=top.values.get("expect", {}),
        origin=origin,
    )


def _from_json(text: str, origin: str) -> dict[str, object]:
    def no_constant(word: str) -> NoReturn:
        raise ValueError(f"{word} is not a number")

    read = json.loads(text, parse_float=Decimal, parse_constant=no_constant, object_pairs_hook=once)
    if not isinstance(read, dict):
        raise Invalid(f"{origin}: not an object", "Give keys with values.")
    return read


def _policy(top: Table) -> Policy:
    rules = top.values.get("policy", {})
    if not isinstance(rules, Mapping):
        hint = "Write a table [policy] with a preset and the keys that differ."
        raise wrong("a table", rules, hint).within(f"{top.where}: policy")
    return Policy.parse(rules, f"{top.where}: policy")


def _snapshot(top: Table, world: World, tasks: list[Task]) -> Snapshot:
    usage = world.usage
    parents = {group.name: group.parent for group in world.groups}
    for task in tasks:
        if task.lease is not None and task.lease.used:
            for scope in usage_scopes(task.project, task.pool, task.group, parents.get):
                usage = with_spent(usage, scope, task.lease.used)
    snapshot = Snapshot.of(
        tasks,
        projects=world.projects.values(),
        workers=world.workers,
        pools=world.pools,
        usage=usage,
        paused=[pause for pause in world.pauses if not pause.scope.startswith("task:")],
        groups=world.groups,
    )
    started, agents = top.whole("batch_started") or 0, top.words("agents")
    return replace(snapshot, batch_started=started, agents=agents)
