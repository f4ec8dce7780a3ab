"""The policy language: one row a key. What is not here is an unknown key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.model.errors import did_you_mean
from fairlane.policy.values import (
    AutoCount,
    Choice,
    Count,
    Duration,
    Flag,
    Ratio,
    Scope,
    Sort,
    Usd,
    Window,
    Words,
    is_name,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlane.model.project import Budget

ORDER_KEYS = ("guarantee", "share", "overdue", "priority", "score", "age")
COUNTERS = ("input", "output", "cache_read", "cache_write")
#: The word that removes what a preset sets.
NONE = "none"

_LONGER_THAN_0 = Duration(positive=True)
_SIGNED = Count(-(10**9), 10**9)
_POINTS = Count(0, 10**9)

#: Every key with a fixed name, in the order of the documentation, and what it accepts.
ROWS: dict[str, Sort] = {
    "order": Words(ORDER_KEYS, ordered=True),
    "capacity.mode": Choice(("deferred", "direct")),
    "capacity.batch": Count(),
    "capacity.spawn_delay": Duration(),
    "cycle.interval": _LONGER_THAN_0,
    "caps.all": Count(),
    "share.mode": Choice(("virtual-time", "deficit", "none")),
    "share.frozen": Flag(),
    "share.window": _LONGER_THAN_0,
    "share.guarantee": Count(),
    "share.guarantee_counts": Choice(("starts", "completions")),
    "share.idle_credit": Count(),
    "share.default_estimate": Count(),
    "score.age_per_minute": _POINTS,
    "score.age_max": _POINTS,
    "score.age_from": Choice(("ready", "created")),
    "score.depth_per_level": _SIGNED,
    "score.retry_penalty": _POINTS,
    "score.retry_penalty_max": _POINTS,
    "overdue.after": Duration(),
    "attempt.timeout": _LONGER_THAN_0,
    "attempt.silence": _LONGER_THAN_0,
    "readiness.parent": Choice(("done", "none")),
    "readiness.upstream": Choice(("hold", "cancel", "run")),
    "locks.serial": Choice(("group+kind", "none")),
    "locks.parallel_default": Flag(),
    "lease.ttl": _LONGER_THAN_0,
    "retry.max_attempts": Count(1, 10**6),
    "retry.base": Duration(),
    "retry.factor": Ratio(1, 1000),
    "retry.cap": Duration(),
    "retry.jitter": Ratio(0, 1),
    "breaker.launch_failures": Count(1),
    "breaker.half_open_after": Duration(),
    "backpressure.soft": AutoCount(),
    "backpressure.hard": AutoCount(),
    "cooldown.base": Duration(),
    "cooldown.exponent_max": Count(1, 32),
    "cooldown.probe": Count(1),
    "limits.children": Count(),
    "limits.depth": Count(),
    "usage.count": Words(COUNTERS, ordered=False),
    "recovery.stale_after": Duration(),
    "history.keep": Duration(),
}

#: Keys that may be absent, and so accept the word that removes them.
OPTIONAL = frozenset(
    {
        "capacity.batch",
        "caps.all",
        "overdue.after",
        "attempt.timeout",
        "attempt.silence",
        "breaker.launch_failures",
        "breaker.half_open_after",
        "backpressure.soft",
        "backpressure.hard",
    }
)

#: Tables whose keys are names: prefix -> what each entry accepts. Every entry may be removed.
OPEN_TABLES: dict[str, Sort] = {"caps.": Count(), "score.kind.": _SIGNED}
#: Kinds that the shipped presets name; a policy without one of them says so in its document.
SCORED_KINDS = ("plan", "spec", "phase", "code", "*")

CAP_NAMES = Scope(("kind", "project", "pool", "agent", "group", "label"), star=True)

#: The keys of one `[[budget]]`.
BUDGET_ROWS: dict[str, Sort] = {
    "scope": Scope(("project", "pool", "group"), star=False),
    "tokens": Count(),
    "usd": Usd(),
    "window": Window(),
    "warn_at": Ratio(0, 1),
    "on_exceeded": Choice(("finish", "stop")),
}

#: Everything that is a table and not a value.
TABLES = frozenset({key.rpartition(".")[0] for key in ROWS} - {""} | {"score.kind"})
#: What may stand at the top of a file.
TOP_KEYS = ("preset", "order", "budget", *sorted(table for table in TABLES if "." not in table))


def sort_of(key: str) -> Sort | None:
    """What a key accepts; None for a key that the language does not have."""
    if key in ROWS:
        return ROWS[key]
    if key.startswith("caps."):
        return OPEN_TABLES["caps."] if ":" in key else None
    if key.startswith("score.kind."):
        return OPEN_TABLES["score.kind."] if is_name(key[len("score.kind.") :]) else None
    return None


def may_be_absent(key: str) -> bool:
    """Whether the word `none` removes a key rather than being its value."""
    return key in OPTIONAL or key == "budget" or (key not in ROWS and sort_of(key) is not None)


def split_key(text: str) -> str:
    """A key as it is written (`caps."kind:code"`, `caps.kind:code`) in its one plain form."""
    parts: list[str] = []
    quote, part = "", ""
    for letter in text.strip():
        if quote:
            quote, part = ("", part) if letter == quote else (quote, part + letter)
        elif letter in "\"'":
            quote = letter
        elif letter == ".":
            parts, part = [*parts, part.strip()], ""
        else:
            part += letter
    return ".".join([*parts, part.strip()])


def key_parts(key: str) -> list[str]:
    """The tables and the name of a plain key: the names in open tables may contain dots."""
    for prefix in OPEN_TABLES:
        if key.startswith(prefix):
            return [*prefix.rstrip(".").split("."), key[len(prefix) :]]
    return key.split(".")


def show_key(key: str) -> str:
    """A plain key as it is written in TOML: `caps."kind:code"`."""
    return ".".join(
        part if part.replace("_", "").replace("-", "").isalnum() and part.isascii() else f'"{part}"'
        for part in key_parts(key)
    )


def nearest(key: str, is_table: bool) -> str:
    """A hint with the nearest known key, or with the keys of the same table."""
    table = key.rpartition(".")[0]
    if table in TABLES:
        return did_you_mean(key, [k for k in (*ROWS, "score.kind") if k.startswith(f"{table}.")])
    if is_table or table:
        return did_you_mean(table or key, TOP_KEYS)
    same = [known for known in ROWS if known.rpartition(".")[2] == key]
    return did_you_mean(same[0], same) if same else did_you_mean(key, TOP_KEYS)


def show_all(values: Mapping[str, Any]) -> dict[str, Any]:
    """Every key of the language in order, written canonically; `none` where it is absent."""
    shown: dict[str, Any] = {}
    for key, sort in ROWS.items():
        shown[key] = sort.show(values[key]) if values.get(key) is not None else NONE
        if key == "caps.all":
            shown.update({name: values[name] for name in sorted(values) if _is_named_cap(name)})
        if key == "share.default_estimate":
            kinds = {name for name in values if name.startswith("score.kind.")}
            kinds.update(f"score.kind.{kind}" for kind in SCORED_KINDS)
            shown.update({name: values.get(name, NONE) for name in sorted(kinds)})
    shown["budget"] = [show_budget(budget) for budget in values.get("budget") or ()]
    return shown


def _is_named_cap(key: str) -> bool:
    return key.startswith("caps.") and key != "caps.all"


def show_budget(budget: Budget) -> dict[str, Any]:
    """One budget, written canonically; what it does not have is left out."""
    held = {name: getattr(budget, name) for name in BUDGET_ROWS}
    return {
        name: BUDGET_ROWS[name].show(value) for name, value in held.items() if value is not None
    }


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Plain keys as nested tables."""
    document: dict[str, Any] = {}
    for key, value in flat.items():
        *tables, leaf = key_parts(key)
        table = document
        for name in tables:
            table = table.setdefault(name, {})
        table[leaf] = value
    return document


def backpressure_limits(
    soft: int | str | None, hard: int | str | None, cap: int | None
) -> tuple[int | None, int | None]:
    """What `auto` means: max(4 * cap, 8) and 2 * soft; without a cap, no limit."""
    auto = None if cap is None else max(4 * cap, 8)
    soft_at = auto if soft == "auto" else soft
    base = soft_at if soft_at is not None else auto
    hard_at = (None if base is None else 2 * int(base)) if hard == "auto" else hard
    return (
        None if soft_at is None else int(soft_at),
        None if hard_at is None else int(hard_at),
    )
