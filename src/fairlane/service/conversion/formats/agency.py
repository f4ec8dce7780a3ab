"""Agency: `project/config.yaml` becomes serial-lanes rules; cards are imported as they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from fairlane.model.errors import Invalid
from fairlane.model.instant import MINUTE, SECOND, Micros, parse_duration, show_duration
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
    """Each key that is known; two of them for one rule are refused."""
    for key in keys.unknown():
        found = _rule(key)
        if found is None:
            continue
        rule, read = found
        value = keys.take(key, read)
        if value is not None and rule in converted.policy:
            also = converted.called[rule]
            raise Invalid(f"{keys.origin}: {key} and {also} say the same", base.UNCHANGED)
        converted.rule(rule, value, key)
    converted.note_a_zero()
    converted.unknown += keys.unknown()


def _length(unit: Micros) -> Callable[[object], str]:
    """A reader of lengths: a number of the unit, or a text such as `30s` or `5 minutes`."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            return base.span(unit)(value)
        return show_duration(parse_duration(_WORDS.sub(r"\1", value.strip().lower())))

    return read


#: A unit in words; its first letter is how a duration is written here.
_WORDS = re.compile(r"(?<=\d)\s*(s|m|h)(?:ec(?:ond)?s?|in(?:ute)?s?|ours?)?(?![a-z])\s*")


def _share(value: object) -> float:
    """A share of the wait: 0.1, `10%` or `±10%`."""
    if not isinstance(value, str):
        return number(value)
    share = re.fullmatch(r"±?\s*(\d+(?:\.\d+)?)\s*%", value.strip())
    if share is None:
        raise wrong("a share", value, 'Write it as 0.1 or "10%".')
    return number(float(share[1])) / 100


def _retries(value: object) -> int:
    """Retries come after the first attempt."""
    return count(value) + 1


#: What ends the name of a length -> its unit.
_UNITS = {"": SECOND, "seconds": SECOND, "ms": SECOND // 1000, "minutes": MINUTE}
#: Lengths, and everything else, by the key without case and underscores.
_LENGTHS = {
    "retry.base": "retry.base",
    "retry.basedelay": "retry.base",
    "retry.initialdelay": "retry.base",
    "retry.cap": "retry.cap",
    "retry.maxdelay": "retry.cap",
    "stalelocktimeout": "recovery.stale_after",
}
_RULES: dict[str, tuple[str, Callable[[object], object]]] = {
    "agents.maxconcurrent": ("caps.all", count),
    "queue.softlimit": ("backpressure.soft", count),
    "queue.hardlimit": ("backpressure.hard", count),
    "retry.multiplier": ("retry.factor", number),
    "retry.factor": ("retry.factor", number),
    "retry.jitter": ("retry.jitter", _share),
    "retry.maxretries": ("retry.max_attempts", _retries),
    "retry.maxattempts": ("retry.max_attempts", count),
    **{
        key + ending: (rule, _length(unit))
        for key, rule in _LENGTHS.items()
        for ending, unit in _UNITS.items()
    },
}
_FLOWS = "agents.perflow."


def _rule(key: str) -> tuple[str, Callable[[object], object]] | None:
    """The rule that a key means, in camel or snake case; `agents` and `queue` may hold any."""
    plain = key.lower().replace("_", "").replace("retrypolicy.", "retry.")
    if plain.startswith(_FLOWS):
        return f"caps.kind:{key.split('.', 2)[2]}", count
    inner = plain.removeprefix("agents.").removeprefix("queue.")
    return _RULES.get(plain) or _RULES.get(inner)
