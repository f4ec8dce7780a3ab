"""A policy: the rules as one immutable value, equal when the rules are equal."""

from __future__ import annotations

import json
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane.model.instant import show_duration
from fairlane.model.project import Budget
from fairlane.model.record import dataclass
from fairlane.policy import load, schema
from fairlane.policy.sections import (
    Attempt,
    Backpressure,
    Breaker,
    Capacity,
    Cooldown,
    Cycle,
    History,
    LeaseRules,
    Limits,
    Locks,
    Overdue,
    Readiness,
    Recovery,
    Retry,
    Score,
    Share,
    UsageRules,
    is_calendar,
    window_micros,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlane.policy.load import Layer

__all__ = [
    "Attempt",
    "Backpressure",
    "Breaker",
    "Budget",
    "Capacity",
    "Cooldown",
    "Cycle",
    "History",
    "LeaseRules",
    "Limits",
    "Locks",
    "Overdue",
    "Policy",
    "Readiness",
    "Recovery",
    "Retry",
    "Score",
    "Share",
    "UsageRules",
    "is_calendar",
    "window_micros",
]

#: Section of the file -> the value that holds it; `caps`, `order`, `budget` are held as they are.
_SECTIONS: dict[str, Any] = {
    "capacity": Capacity,
    "cycle": Cycle,
    "share": Share,
    "score": Score,
    "overdue": Overdue,
    "attempt": Attempt,
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


@dataclass(frozen=True, slots=True)
class Policy:
    """Every rule that decides what starts; the preset's name is no rule and is not compared."""

    preset_name: str = field(compare=False)
    order: tuple[str, ...]
    capacity: Capacity
    cycle: Cycle
    caps: Mapping[str, int]  # "all", "kind:code", "project:*"; absent = no cap
    share: Share
    score: Score
    overdue: Overdue
    attempt: Attempt
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
        return cls._of(layers[0].preset, load.merge(layers))

    @staticmethod
    def presets() -> dict[str, str]:
        """The shipped policies, each with its one-line description."""
        return load.presets()

    def with_overrides(self, overrides: Mapping[str, object]) -> Policy:
        """This policy with some keys changed; budgets keep the window that they have."""
        layer = load.override_layer(overrides)
        return self._of(self.preset_name, load.overlay(self.values(), [layer]))

    @classmethod
    def _of(cls, preset_name: str, values: Mapping[str, Any]) -> Policy:
        """Put the values of the keys into their sections."""
        sections: dict[str, Any] = {
            name: section(**{f.name: values.get(f"{name}.{f.name}") for f in fields(section)})
            for name, section in _SECTIONS.items()
            if name != "score"
        }
        scores: dict[str, Any] = {f.name: values.get(f"score.{f.name}") for f in fields(Score)}
        scores["kind"] = _named(values, "score.kind.")
        window = show_duration(sections["share"].window)
        budgets = values.get("budget") or ()
        return cls(
            preset_name=preset_name,
            order=values["order"],
            caps=_named(values, "caps."),
            score=Score(**scores),
            budget=tuple(b if b.window else replace(b, window=window) for b in budgets),
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
    def budget_rows(budgets: tuple[Budget, ...]) -> list[dict[str, Any]]:
        """Budgets as the policy file writes them."""
        return [schema.show_budget(budget) for budget in budgets]

    def values(self) -> dict[str, Any]:
        """Every key that is set, as a typed value: `lease.ttl`, `caps.kind:code`."""
        values: dict[str, Any] = {"order": self.order, "budget": self.budget}
        for name, section in _SECTIONS.items():
            held = getattr(self, name)
            values.update({f"{name}.{f.name}": getattr(held, f.name) for f in fields(section)})
        del values["score.kind"]
        values.update({f"score.kind.{kind}": score for kind, score in self.score.kind.items()})
        values.update({f"caps.{name}": cap for name, cap in self.caps.items()})
        return {key: value for key, value in values.items() if value is not None}

    def shown(self) -> dict[str, Any]:
        """Every key in the order of the language, written canonically; "none" where absent."""
        return schema.show_all(self.values())

    def document(self) -> dict[str, Any]:
        """The whole policy as nested tables for JSON; it parses back to an equal policy."""
        return schema.nest(self.shown())

    def digest(self) -> str:
        """SHA-256 over the canonical JSON of the document: one name for one set of rules."""
        if not self._digest:
            from hashlib import sha256  # not every command needs it

            text = json.dumps(
                self.document(), sort_keys=True, separators=(",", ":"), ensure_ascii=False
            )
            self._digest.append(sha256(text.encode()).hexdigest())
        return self._digest[0]


def _named(values: Mapping[str, Any], prefix: str) -> dict[str, int]:
    """The entries of an open table, by name and in the order of the names."""
    found = {key[len(prefix) :]: value for key, value in values.items() if key.startswith(prefix)}
    return dict(sorted(found.items()))
