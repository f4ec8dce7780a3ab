"""From the text of a scenario file to a snapshot, a policy and a time."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane.model.errors import Invalid
from fairlane.model.instant import DAY, show_instant
from fairlane.model.record import dataclass
from fairlane.model.snapshot import Snapshot
from fairlane.policy.policy import Policy
from fairlane.service.scenario.expect import EXPECT_KEYS, Expect, read_expect
from fairlane.service.scenario.fields import Table
from fairlane.service.scenario.tasks import read_tasks
from fairlane.service.scenario.world import World, read_world, with_spent

if TYPE_CHECKING:
    from fairlane.model.instant import Instant
    from fairlane.model.task import Task

TOP_KEYS = (
    "now",
    "paused",
    "policy",
    "project",
    "task",
    "worker",
    "pool",
    "group",
    "usage",
    "agents",
    "batch_started",
    "expect",
)
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
    expected: Any  # the table `[expect]` as it stands there; read only where it is compared
    origin: str

    @property
    def expect(self) -> Expect:
        """What is expected of the plan."""
        table = Table(f"{self.origin}: expect", self.expected, EXPECT_KEYS)
        return read_expect(table, {task.id for task in self.tasks})


def load(path: str | Path, now: Instant | None = None) -> Scenario:
    """The scenario in a file; `now` plans it at another time than the file says."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise Invalid(f"{path}: there is no such file", "Give the path of a scenario.") from error
    except OSError as error:
        raise Invalid(f"{path}: cannot be read: {error.strerror}") from error
    return parse(data, str(path), now)


def parse(text: str | bytes, origin: str = "scenario", now: Instant | None = None) -> Scenario:
    """The scenario in a text, TOML or JSON; `origin` names it in errors."""
    return build(to_mapping(text, origin), origin, now)


def to_mapping(text: str | bytes, origin: str = "scenario") -> dict[str, Any]:
    """The tables of a text, with exact decimals; a mistake is named with its place."""
    if len(text) > FILE_BYTES_MAX:
        raise Invalid(f"{origin}: {len(text)} bytes is no scenario", "Make it smaller.")
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


def build(mapping: Mapping[str, Any], origin: str, now: Instant | None = None) -> Scenario:
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


def _from_json(text: str, origin: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"key {twice!r} appears twice in one object")
        return table

    def no_constant(word: str) -> Any:
        raise ValueError(f"{word} is not a number")

    read = json.loads(text, parse_float=Decimal, parse_constant=no_constant, object_pairs_hook=once)
    if not isinstance(read, dict):
        raise Invalid(f"{origin}: not an object", "Give keys with values.")
    return read


def _policy(top: Table) -> Policy:
    rules = top.values.get("policy", {})
    if not isinstance(rules, Mapping):
        hint = "Write a table [policy] with a preset and the keys that differ."
        raise top.error("policy", f"not a table: {rules!r}", hint)
    return Policy.parse(rules, f"{top.where}: policy")


def _snapshot(top: Table, world: World, tasks: list[Task]) -> Snapshot:
    usage = world.usage
    parents = {group.name: group.parent for group in world.groups}
    for task in tasks:
        if task.lease is not None and task.lease.used:
            for scope in scopes_of(task, parents):
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


def scopes_of(task: Task, parents: Mapping[str, str | None]) -> list[str]:
    """Where a budget may count what a task uses."""
    scopes = ["all", f"project:{task.project}"]
    if task.pool is not None:
        scopes.append(f"pool:{task.pool}")
    group = task.group
    while group is not None:
        scopes.append(f"group:{group}")
        group = parents.get(group)
    return scopes
