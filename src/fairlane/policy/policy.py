"""A policy: the rules as one immutable value, equal when the rules are equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fairlane.model.instant import Micros
from fairlane.model.project import Budget
from fairlane.model.record import dataclass, field, names, replace
from fairlane.policy import load, schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from fairlane.model.values import Values
    from fairlane.policy.load import Layer


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many start, and when."""

    mode: str  # deferred: a cycle starts them; direct: `add` does
    batch: int | None  # most starts in one cycle.interval
    spawn_delay: Micros  # between two starts of one cycle


@dataclass(frozen=True, slots=True)
class Cycle:
    """How often the daemon looks when nothing wakes it."""

    interval: Micros


@dataclass(frozen=True, slots=True)
class Share:
    """Whose turn it is between projects."""

    mode: str  # virtual-time, deficit, none
    frozen: bool  # deficit only: nothing moves inside a round
    window: Micros  # rolling window of usage, starts and completions
    guarantee: int
    guarantee_counts: str  # starts, completions
    idle_credit: int  # tokens that a project may catch up after an absence
    default_estimate: int  # tokens, until there is history


@dataclass(frozen=True, slots=True)
class Score:
    """The terms of the score; all whole numbers."""

    kind: Mapping[str, int]  # "*": every kind without its own entry
    age_per_minute: int
    age_max: int
    age_from: Literal["ready", "created"]
    depth_per_level: int
    retry_penalty: int
    retry_penalty_max: int

    def base(self, kind: str) -> int:
        """The score that a kind starts with: its own, else that of `*`, else 0."""
        own = self.kind.get(kind)
        return self.kind.get("*", 0) if own is None else own


@dataclass(frozen=True, slots=True)
class Overdue:
    """The age at which a ready task is first in line; absent = never."""

    after: Micros | None


@dataclass(frozen=True, slots=True)
class MayAdd:
    """What the tasks that an attempt adds may have beyond their parent."""

    agents: tuple[str, ...] | Literal["same", "any"]
    command: bool
    env: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """When a running attempt is stopped, and what it may add."""

    timeout: Micros | None  # after this long
    silence: Micros | None  # after this long without output
    may_add: MayAdd


@dataclass(frozen=True, slots=True)
class Checks:
    """What follows when a check fails."""

    rounds: int  # resumed attempts in a row that use up none


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a task waits for."""

    parent: Literal["done", "none"]
    upstream: Literal["hold", "cancel", "run"]


@dataclass(frozen=True, slots=True)
class Locks:
    """What a task that is not parallel locks."""

    serial: Literal["group+kind", "none"]
    parallel_default: bool


@dataclass(frozen=True, slots=True)
class LeaseRules:
    """How long a lease lasts without renewal."""

    ttl: Micros


@dataclass(frozen=True, slots=True)
class Retry:
    """Wait = min(cap, base * factor^(n-1) * (1 +- jitter)) after failure n."""

    max_attempts: int
    base: Micros
    factor: Fraction
    cap: Micros
    jitter: Fraction


@dataclass(frozen=True, slots=True)
class Breaker:
    """Launch failures in a row that park a task, and whether it is tried again by itself."""

    launch_failures: int | None
    half_open_after: Micros | None


@dataclass(frozen=True, slots=True)
class Backpressure:
    """Queue depths that warn and that refuse; see `Policy.backpressure_limits`."""

    soft: int | Literal["auto"] | None
    hard: int | Literal["auto"] | None


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Wait = max(the provider's wait, base * 2^(hits-1)), hits counted to exponent_max."""

    base: Micros
    exponent_max: int
    probe: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What one attempt may add."""

    children: int
    depth: int


@dataclass(frozen=True, slots=True)
class UsageRules:
    """Which counters make up "tokens"."""

    count: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recovery:
    """When something whose holder is unknown is cleared."""

    stale_after: Micros


@dataclass(frozen=True, slots=True)
class History:
    """How long finished tasks, decisions and events are kept."""

    keep: Micros


#: Section of the file -> the value that holds it; `caps`, `order`, `budget` are held as they are.
SECTIONS: dict[str, type[Any]] = {
    "capacity": Capacity,
    "cycle": Cycle,
    "share": Share,
    "score": Score,
    "overdue": Overdue,
    "attempt": Attempt,
    "checks": Checks,
    "readiness": Readiness,
    "locks": Locks,
    "lease": LeaseRules,
    "retry": Retry,
    "breaker": Breaker,
    "backpressure": Backpressure,
    "cooldown": Cooldown,
    "limits": Limits,
    "usage": UsageRules,
    "recovery": Recovery,
    "history": History,
}


def _keys(section: type[Any], prefix: str) -> tuple[tuple[str, str], ...]:
    """The fields of a section, each with the key that sets it."""
    return tuple((each, f"{prefix}.{each}") for each in names(section))


_KEYS = {name: _keys(section, name) for name, section in SECTIONS.items()}
_MAY_ADD = _keys(MayAdd, "attempt.may_add")


@dataclass(frozen=True, slots=True)
class Policy:
    """Every rule that decides what starts; the preset's name is no rule and is not compared."""

    preset_name: str = field(compare=False)
    order: tuple[str, ...]
    carry: Literal["needs", "base"]  # what tasks start from
    context: Literal["needs", "none"]  # whether prompts say what came before
    capacity: Capacity
    cycle: Cycle
    caps: Mapping[str, int]  # "all", "kind:code", "project:*"; absent = no cap
    share: Share
    score: Score
    overdue: Overdue
    attempt: Attempt
    checks: Checks
    readiness: Readiness
    locks: Locks
    lease: LeaseRules
    retry: Retry
    breaker: Breaker
    backpressure: Backpressure
    budget: tuple[Budget, ...]
    cooldown: Cooldown
    limits: Limits
    usage: UsageRules
    recovery: Recovery
    history: History
    _digest: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def preset(cls, name: str, overrides: Mapping[str, object] | None = None) -> Policy:
        """A shipped policy, with overrides as nested tables or dotted keys."""
        layers = [load.preset_layer(name)]
        if overrides:
            layers.append(load.override_layer(overrides))
        return cls.of_layers(layers)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """The policy of a file; a file that is not there is the preset `balanced`."""
        return cls.of_layers(load.file_layers(Path(path)))

    @classmethod
    def parse(cls, mapping: Mapping[str, object], origin: str = "policy.toml") -> Policy:
        """The policy that a table of settings describes; `origin` names it in errors."""
        return cls.of_layers(load.mapping_layers(mapping, origin))

    @classmethod
    def of_layers(cls, layers: Sequence[Layer]) -> Policy:
        """The policy of a preset with layers on top, the last one deciding."""
        return cls._of(layers[0].preset, load.overlay({}, layers))

    @staticmethod
    def presets() -> dict[str, str]:
        """The shipped policies, each with its one-line description."""
        return load.presets()

    def with_overrides(self, overrides: Mapping[str, object]) -> Policy:
        """This policy with some keys changed; budgets keep the window that they have."""
        layer = load.override_layer(overrides)
        return self._of(self.preset_name, load.overlay(self.values(), [layer]))

    @classmethod
    def _of(cls, preset_name: str, values: Values) -> Policy:
        """Put the values of the keys into their sections."""
        sections: Values = {
            name: section(**{field: values.get(key) for field, key in _KEYS[name]})
            for name, section in SECTIONS.items()
            if name != "score"
        }
        scores: Values = {field: values.get(key) for field, key in _KEYS["score"]}
        scores["kind"] = _named(values, "score.kind.")
        may_add = MayAdd(**{field: values[key] for field, key in _MAY_ADD})
        sections["attempt"] = replace(sections["attempt"], may_add=may_add)
        return cls(
            preset_name=preset_name,
            order=values["order"],
            carry=values["carry"],
            context=values["context"],
            caps=_named(values, "caps."),
            score=Score(**scores),
            budget=load.with_windows(values.get("budget") or (), sections["share"].window),
            **sections,
        )

    def backpressure_limits(self) -> tuple[int | None, int | None]:
        """Soft and hard queue depth; `auto` is max(4 * cap all, 8) and twice the soft one.

        Without a cap `all` there is nothing to derive `auto` from: no limit.
        """
        return schema.backpressure_limits(
            self.backpressure.soft, self.backpressure.hard, self.caps.get("all")
        )

    @staticmethod
    def budget_rows(budgets: tuple[Budget, ...]) -> list[dict[str, object]]:
        """Budgets as the policy file writes them."""
        return [schema.show_budget(budget) for budget in budgets]

    def values(self) -> dict[str, object]:
        """Every key that is set, as a typed value: `lease.ttl`, `caps.kind:code`."""
        values: dict[str, object] = {"order": self.order, "budget": self.budget}
        values |= {"carry": self.carry, "context": self.context}
        for name, section in SECTIONS.items():
            part = getattr(self, name)
            values.update({f"{name}.{each}": getattr(part, each) for each in names(section)})
        del values["score.kind"], values["attempt.may_add"]
        may_add = self.attempt.may_add
        values.update({f"attempt.may_add.{each}": getattr(may_add, each) for each in names(MayAdd)})
        values.update({f"score.kind.{kind}": score for kind, score in self.score.kind.items()})
        values.update({f"caps.{name}": cap for name, cap in self.caps.items()})
        return {key: value for key, value in values.items() if value is not None}

    def shown(self) -> dict[str, object]:
        """Every key in the order of the language, written canonically; "none" where absent."""
        return schema.show_all(self.values(), self.budget)

    def document(self) -> Values:
        """The whole policy as nested tables for JSON; it parses back to an equal policy."""
        return schema.nest(self.shown())

    def digest(self) -> str:
        """SHA-256 over the canonical JSON of what the planner reads: one name for one set of rules.

        Keys that no plan depends on are left out, so that older decisions keep their digest.
        """
        if not self._digest:
            from hashlib import sha256  # not every command needs it

            planned = {
                key: value for key, value in self.shown().items() if key not in schema.UNPLANNED
            }
            text = json.dumps(
                schema.nest(planned), sort_keys=True, separators=(",", ":"), ensure_ascii=False
            )
            self._digest.append(sha256(text.encode()).hexdigest())
        return self._digest[0]


def _named(values: Values, prefix: str) -> dict[str, int]:
    """The entries of an open table, by name and in the order of the names."""
    entries = {key[len(prefix) :]: value for key, value in values.items() if key.startswith(prefix)}
    return dict(sorted(entries.items()))
