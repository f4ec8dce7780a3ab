"""The policy language: one row a key. What is not here is an unknown key."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlane.model import values
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import Micros, parse_duration, show_duration
from fairlane.model.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from fractions import Fraction

    from fairlane.model.project import Budget
    from fairlane.model.values import Reader, Values

#: Windows that begin with the calendar (UTC, weeks from Monday), and the one that never ends.
CALENDAR_WINDOWS = ("day", "week", "month")
TOTAL_WINDOW = "total"
_NAME = r"[^\s\x00-\x1f\x7f]{1,128}"


class Kind(NamedTuple):
    """One kind of value."""

    read: Reader[object]
    show: Callable[[Any], object] = lambda value: value  # the one way to write a typed value


def count(least: int = 0, most: int = values.COUNT_MAX) -> Kind:
    """A whole number."""
    return Kind(values.whole(least, most))


def choice(*words: str) -> Kind:
    """One of a few words."""
    return Kind(values.choice(words))


def ratio(least: int, most: int) -> Kind:
    """A number with at most six decimals, kept exactly."""
    return Kind(values.ratio(least, most), _show_ratio)


def _show_ratio(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _show_dollars(micros: int) -> str:
    whole, rest = divmod(micros, 10**6)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")


def _auto_count(value: object) -> int | str:
    try:
        return "auto" if value == "auto" else values.whole(0)(value)
    except Invalid as error:
        raise Invalid(error.message, f'{error.hint} "auto" derives it from cap all.') from None


def _window(value: object) -> str:
    """A budget's window: rolling, of the calendar, or for ever."""
    fixed = (*CALENDAR_WINDOWS, TOTAL_WINDOW)
    if isinstance(value, str) and value in fixed:
        return value
    try:
        return show_duration(values.positive_duration(value))
    except Invalid as error:
        hint = f"Write a duration such as 5h, 24h or 7d, or one of {', '.join(fixed)}."
        raise Invalid(error.message, hint) from None


def _agents(value: object) -> str | tuple[str, ...]:
    """`same`, `any`, or names."""
    if value in ("same", "any"):
        return str(value)
    try:
        return values.several(values.name)(value)
    except Invalid as error:
        hint = 'Write "same", "any", or names as ["claude", "codex"].'
        raise Invalid(error.message, hint) from None


FLAG = Kind(values.flag)
AGENTS = Kind(_agents, lambda agents: agents if isinstance(agents, str) else list(agents))
DURATION = Kind(values.duration, show_duration)
LONGER_THAN_0 = Kind(values.positive_duration, show_duration)
DOLLARS = Kind(values.dollars(values.COUNT_MAX // 10**6), _show_dollars)
AUTO_COUNT = Kind(_auto_count)
WINDOW = Kind(_window)


def words(known: tuple[str, ...], ordered: bool) -> Kind:
    """One or more of a few words."""
    return Kind(values.some_of(known, ordered), list)


class Scope:
    """`all`, or a name after what it names, such as `project:web`; `project:*` if `star`."""

    def __init__(self, kinds: tuple[str, ...], star: bool) -> None:
        self.kinds = kinds
        self.star = star

    def read(self, value: object) -> str:
        """The scope as it is written."""
        if value == "all":
            return "all"
        kind, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
        if kind in self.kinds and is_name(name) and (name != "*" or self.star):
            return f"{kind}:{name}"
        accepted = ", ".join(("all", *(f"{known}:NAME" for known in self.kinds)))
        raise values.wrong("a scope", value, f"Give one of {accepted}.")


def is_name(value: object) -> bool:
    """Whether something can be the name of a kind or a project: text without spaces."""
    return isinstance(value, str) and bool(re.fullmatch(_NAME, value))


ORDER_KEYS = ("guarantee", "share", "overdue", "priority", "score", "age")
COUNTERS = ("input", "output", "cache_read", "cache_write")
#: The word that removes what a preset sets.
NONE = "none"

_SIGNED = count(-(10**9), 10**9)
_POINTS = count(0, 10**9)

#: Every key with a fixed name, in the order of the documentation, and what it accepts.
ROWS: dict[str, Kind] = {
    "order": words(ORDER_KEYS, ordered=True),
    "carry": choice("needs", "base"),
    "context": choice("needs", "none"),
    "capacity.mode": choice("deferred", "direct"),
    "capacity.batch": count(),
    "capacity.spawn_delay": DURATION,
    "cycle.interval": LONGER_THAN_0,
    "caps.all": count(),
    "share.mode": choice("virtual-time", "deficit", "none"),
    "share.frozen": FLAG,
    "share.window": LONGER_THAN_0,
    "share.guarantee": count(),
    "share.guarantee_counts": choice("starts", "completions"),
    "share.idle_credit": count(),
    "share.default_estimate": count(),
    "score.age_per_minute": _POINTS,
    "score.age_max": _POINTS,
    "score.age_from": choice("ready", "created"),
    "score.depth_per_level": _SIGNED,
    "score.retry_penalty": _POINTS,
    "score.retry_penalty_max": _POINTS,
    "overdue.after": DURATION,
    "attempt.timeout": LONGER_THAN_0,
    "attempt.silence": LONGER_THAN_0,
    "attempt.may_add.agents": AGENTS,
    "attempt.may_add.command": FLAG,
    "attempt.may_add.env": FLAG,
    "checks.rounds": count(0, 1000),
    "readiness.parent": choice("done", "none"),
    "readiness.upstream": choice("hold", "cancel", "run"),
    "locks.serial": choice("group+kind", "none"),
    "locks.parallel_default": FLAG,
    "lease.ttl": LONGER_THAN_0,
    "retry.max_attempts": count(1, 10**6),
    "retry.base": DURATION,
    "retry.factor": ratio(1, 1000),
    "retry.cap": DURATION,
    "retry.jitter": ratio(0, 1),
    "breaker.launch_failures": count(1),
    "breaker.half_open_after": DURATION,
    "backpressure.soft": AUTO_COUNT,
    "backpressure.hard": AUTO_COUNT,
    "cooldown.base": DURATION,
    "cooldown.exponent_max": count(1, 32),
    "cooldown.probe": count(1),
    "limits.children": count(),
    "limits.depth": count(),
    "usage.count": words(COUNTERS, ordered=False),
    "recovery.stale_after": DURATION,
    "history.keep": DURATION,
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

#: Keys that no plan depends on: they are no part of a policy's digest.
UNPLANNED = frozenset(
    key
    for key in ROWS
    if key in ("carry", "context", "checks.rounds") or key.startswith("attempt.may_add.")
)

#: Tables whose keys are names: prefix -> what each entry accepts. Every entry may be removed.
OPEN_TABLES: dict[str, Kind] = {"caps.": count(), "score.kind.": _SIGNED}
#: Kinds that the shipped presets name; the document lists each of them, set or not.
SCORED_KINDS = ("plan", "spec", "phase", "code", "*")

CAP_NAMES = Scope(("kind", "project", "pool", "agent", "group", "label"), star=True)

#: The keys of one `[[budget]]`.
BUDGET_ROWS: dict[str, Kind] = {
    "scope": Kind(Scope(("project", "pool", "group"), star=False).read),
    "tokens": count(),
    "usd": DOLLARS,
    "window": WINDOW,
    "warn_at": ratio(0, 1),
    "on_exceeded": choice("finish", "stop"),
}

#: Everything that is a table and not a value.
TABLES = frozenset({key.rpartition(".")[0] for key in ROWS} - {""} | {"score.kind"})
#: Keys at the top of a file.
TOP_KEYS = (
    "preset",
    "order",
    "carry",
    "context",
    "budget",
    *sorted(table for table in TABLES if "." not in table),
)


def kind_of(key: str) -> Kind | None:
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
    return key in OPTIONAL or key == "budget" or (key not in ROWS and kind_of(key) is not None)


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


def show_all(values: Mapping[str, object], budgets: Iterable[Budget]) -> dict[str, object]:
    """Every key of the language in order, written canonically; `none` where it is absent."""
    shown: dict[str, object] = {}
    for key, kind in ROWS.items():
        shown[key] = kind.show(values[key]) if values.get(key) is not None else NONE
        if key == "caps.all":
            shown.update(
                {name: values[name] for name in sorted(values) if name.startswith("caps.")}
            )
        if key == "share.default_estimate":
            kinds = {name for name in values if name.startswith("score.kind.")}
            kinds.update(f"score.kind.{kind}" for kind in SCORED_KINDS)
            shown.update({name: values.get(name, NONE) for name in sorted(kinds)})
    shown["budget"] = [show_budget(budget) for budget in budgets]
    return shown


def show_budget(budget: Budget) -> dict[str, object]:
    """One budget, written canonically; what it does not have is left out."""
    values = {name: getattr(budget, name) for name in BUDGET_ROWS}
    return {
        name: BUDGET_ROWS[name].show(value) for name, value in values.items() if value is not None
    }


def nest(flat: Mapping[str, object]) -> Values:
    """Plain keys as nested tables."""
    document: Values = {}
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
    return (None if soft_at is None else int(soft_at), None if hard_at is None else int(hard_at))


def is_calendar(window: str) -> bool:
    """Whether a budget's window begins with the day, the week or the month."""
    return window in CALENDAR_WINDOWS


def window_micros(window: str) -> Micros | None:
    """The length of a rolling window; None for calendar windows and `total`."""
    if window == TOTAL_WINDOW or is_calendar(window):
        return None
    return parse_duration(window)
