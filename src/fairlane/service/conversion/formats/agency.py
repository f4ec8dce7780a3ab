"""Agency: `project/config.yaml` becomes serial-lanes rules; cards are imported as they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fairlane.model.errors import Invalid
from fairlane.model.instant import MINUTE, SECOND, Micros, show_duration
from fairlane.model.values import wrong
from fairlane.service.conversion import base
from fairlane.service.conversion.base import Converted, Keys, count, number


def convert(path: Path) -> Converted:
    """A `config.yaml`, or the folder `project` that holds it, or only phases."""
    converted = Converted(preset="serial-lanes")
    if _has_defaults(path):
        converted.note("There is no config.yaml, so Agency's defaults hold; they are the preset's.")
    else:
        for file in base.inside(path, *_FILES):
            _rules(converted, base.read_yaml(file))
    converted.settings["agent"] = "codex"
    converted.called["agent"] = "Agency starts Codex"
    converted.note(
        "A serial card locked its phase and flow when it was queued; here the lock is taken with "
        "the lease, so any number may be queued and a card that waits after a failure holds "
        "nothing."
    )
    converted.note(
        "Cards come in with `fairlane import cards PATH`; `--force` takes those too that Agency "
        "left queued or running. `--write-back` writes their status once; a source with "
        "`write_back = true` in fairlane.toml keeps it up to date."
    )
    return converted


#: Where the configuration lies in a folder that is given.
_FILES = ("config.yaml", "config.yml", "project/config.yaml", "project/config.yml")


def _has_defaults(path: Path) -> bool:
    """Whether it is a folder of phases that nobody has configured."""
    if any((path / name).is_file() for name in _FILES):
        return False
    return any(each.is_dir() for top in ("", "project") for each in (path / top).glob("phase-*"))


def _rules(converted: Converted, keys: Keys) -> None:
    """Each key that is known under one of its spellings; two of them for one rule are refused."""
    for key in keys.unknown():
        rule = _rule(key)
        if rule is None:
            continue
        value = keys.take(key, rule.read)
        if value is not None and rule.ours in converted.policy:
            also = converted.called[rule.ours]
            raise Invalid(f"{keys.origin}: {key} and {also} say the same", base.UNCHANGED)
        converted.rule(rule.ours, value, key)
    converted.note_a_zero()
    converted.unknown += keys.unknown()


class _Rule(NamedTuple):
    ours: str
    read: Callable[[object], object]


#: Where a word of the retry policy, or of locks, may stand.
_SECTIONS = ("agents", "queue", "scheduler", "locks")
_RETRY_SECTIONS = ("retry", "backoff", "retrypolicy")
_FLOW = re.compile(r"agents?\.perflow\.", re.IGNORECASE)
#: What ends the name of a length -> its unit.
_UNITS = {
    "seconds": SECOND, "secs": SECOND, "sec": SECOND, "milliseconds": SECOND // 1000,
    "millis": SECOND // 1000, "ms": SECOND // 1000, "minutes": MINUTE, "mins": MINUTE,
}  # fmt: skip
_BASE = ("base", "basedelay", "basebackoff", "initial", "initialdelay", "delay")
_CAP = ("cap", "capdelay", "maxdelay", "maxbackoff", "maxwait", "maxinterval")
_FACTOR = ("multiplier", "factor", "backoffmultiplier", "backofffactor")
_JITTER = ("jitter", "jitterratio", "jitterfraction", "jitterpercent")
_RETRIES = ("maxretries", "retries", "max", "limit")
_STALE = ("stalelocktimeout", "stalelock")


def _rule(key: str) -> _Rule | None:
    """The rule that a key means, in whatever case and with or without its unit."""
    if flow := _FLOW.match(key.replace("_", "")):
        name = key.split(".", flow[0].count("."))[-1]
        return _Rule(f"caps.kind:{name}", count)
    plain = re.sub(r"[^a-z0-9.]", "", key.lower())
    if plain in _NAMED:
        return _Rule(_NAMED[plain], count)
    *sections, word = plain.split(".")
    if not {*sections} <= {*_SECTIONS, *_RETRY_SECTIONS}:
        return None
    return _retry(word) if {*sections} & {*_RETRY_SECTIONS} else _stale(word)


_NAMED = {
    "agents.maxconcurrent": "caps.all",
    "queue.softlimit": "backpressure.soft",
    "queue.hardlimit": "backpressure.hard",
}


def _retry(word: str) -> _Rule | None:
    name, unit = _measured(word)
    if word in _RETRIES:
        return _Rule("retry.max_attempts", _retries)
    if word == "maxattempts":
        return _Rule("retry.max_attempts", count)
    if name in _BASE:
        return _Rule("retry.base", _length(unit))
    if name in _CAP:
        return _Rule("retry.cap", _length(unit))
    if word in _FACTOR:
        return _Rule("retry.factor", number)
    return _Rule("retry.jitter", _fraction) if word in _JITTER else None


def _stale(word: str) -> _Rule | None:
    name, unit = _measured(word)
    return _Rule("recovery.stale_after", _length(unit)) if name in _STALE else None


def _measured(word: str) -> tuple[str, Micros]:
    """A name without its unit, and the unit; seconds where it says none."""
    for ending, unit in _UNITS.items():
        if word.endswith(ending) and word != ending:
            return word.removesuffix(ending), unit
    return word, SECOND


def _retries(value: object) -> int:
    """Retries come after the first attempt."""
    return count(value) + 1


_WORDS = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)?(?![a-z])"
)
_LENGTHS = {"s": SECOND, "m": MINUTE, "h": 60 * MINUTE}


def _length(unit: Micros) -> Callable[[object], str]:
    """A reader of lengths: a number of the unit, or a text such as `30s` or `5 minutes`."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            return base.span(unit)(value)
        text = value.strip().lower()
        parts = _WORDS.findall(text)
        if not parts or _WORDS.sub("", text).strip():
            raise wrong("a length of time", value, 'Write it as "30s" or in seconds.')
        total = sum(float(size) * _unit(word, unit) for size, word in parts)
        return show_duration(round(total) // 1000 * 1000)

    return read


def _unit(word: str, unit: Micros) -> Micros:
    if word.startswith(("ms", "milli")):
        return SECOND // 1000
    return _LENGTHS[word[0]] if word else unit


def _fraction(value: object) -> float:
    """A share of the wait: 0.1, `10%`, `±10%`, or 10 for percent."""
    if isinstance(value, str):
        share = re.fullmatch(r"(?:±|\+-|\+/-)?\s*(\d+(?:\.\d+)?)\s*(%?)", value.strip())
        if share is None:
            raise wrong("a share", value, 'Write it as 0.1 or "10%".')
        return float(share[1]) / 100 if share[2] else _fraction(float(share[1]))
    share_of = number(value)
    return share_of / 100 if share_of > 1 else share_of
