"""The fields that callers may give a task: one reader each, and nothing else is accepted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from fairlane.model.amounts import TOKENS_MAX
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.frozen import filled, layout
from fairlane.model.instant import (
    DURATION_MAX,
    Instant,
    Micros,
    instant,
    parse_duration,
    parse_instant,
)
from fairlane.model.names import check_name, is_name
from fairlane.model.task import Task

#: Longest text of one field, in characters.
TEXT_MAX = 1_000_000
#: Longest list of one field.
LIST_MAX = 1_000
#: Priorities and counts beyond this are mistakes.
NUMBER_MAX = 10**9

MERGES = ("keep", "merge", "pr")
SESSIONS = ("resume", "fresh")

Reader = Callable[[Any], Any]


def text(value: object) -> str:
    """Text that a file, a process and a database can hold."""
    if not isinstance(value, str):
        raise Invalid(f"not text: {value!r}", "Write it in quotes.")
    if len(value) > TEXT_MAX:
        raise Invalid(f"{len(value)} characters are too many", f"Use at most {TEXT_MAX}.")
    if "\0" in value:
        raise Invalid("text with a zero byte", "Take it out.")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Invalid("text that is not Unicode", "Write it as UTF-8.") from error
    return value


def word(value: object) -> str:
    """One line with something in it."""
    line = text(value)
    if not line.strip() or not line.isprintable():
        raise Invalid(f"not a name: {value!r}", "Write one line of text.")
    return line


def name(value: object) -> str:
    """What may name a task, project, group or workspace."""
    return value if is_name(value) else check_name("proper", value)  # type: ignore[return-value]


def whole(least: int, most: int) -> Reader:
    """A whole number."""

    def read(value: object) -> int:
        if type(value) is not int:
            hint = f"Give a number from {least} to {most}."
            raise Invalid(f"not a whole number: {value!r}", hint)
        if not least <= value <= most:
            raise Invalid(f"{value} is out of range", f"Give a number from {least} to {most}.")
        return value

    return read


def choice(words: tuple[str, ...]) -> Reader:
    """One of a few words."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            hint = did_you_mean(str(value), words)
            raise Invalid(f"{value!r} is none of {', '.join(words)}", hint)
        return value

    return read


def several(read_one: Reader) -> Reader:
    """A list in which nothing appears twice."""

    def read(value: object) -> tuple[Any, ...]:
        found = _list(value)
        read_all = tuple([read_one(each) for each in found])
        for each in read_all if len(set(read_all)) < len(read_all) else ():
            if read_all.count(each) > 1:
                raise Invalid(f"{each!r} appears twice", "Take one out.")
        return read_all

    return read


def command(value: object) -> tuple[str, ...]:
    """An argument vector."""
    if isinstance(value, str):
        hint = 'Write it as ["make", "test"]; for a shell: ["sh", "-c", "…"].'
        raise Invalid(f"not a list of arguments: {value!r}", hint)
    found = tuple([text(each) for each in _list(value)])
    if found and not found[0]:
        raise Invalid("a command without a program", "Give the program first.")
    return found


def artifact(value: object) -> str:
    """A relative path that stays where it is."""
    path = word(value)
    parts = PurePosixPath(path).parts
    if path.startswith(("/", "~")) or ".." in parts or not parts:
        raise Invalid(f"{path!r} leaves its folder", "Give a relative path without '..'.")
    return str(PurePosixPath(path))


def label(value: object) -> str:
    """What a worker must have: `gpu`, `os=linux`."""
    found = word(value)
    if any(letter.isspace() or letter == "," for letter in found):
        raise Invalid(f"not a label: {found!r}", "Write it as gpu or os=linux.")
    return found


def flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise Invalid(f"not true or false: {value!r}")
    return value


def length(value: object) -> Micros:
    """A duration as text, or whole microseconds."""
    found = value if type(value) is int else parse_duration(value)  # type: ignore[arg-type]
    if found <= 0:
        raise Invalid(f"{value!r} is no time at all", "Write it as 30s, 5m, 1h30m or 7d.")
    if found > DURATION_MAX:
        raise Invalid(f"not a duration: {value!r}", "Write it as 30s, 5m, 1h30m or 7d.")
    return found


def moment(value: object) -> Instant:
    """A time with a zone, as text, as a datetime, or as an instant."""
    if isinstance(value, str):
        return parse_instant(value)
    if isinstance(value, datetime) or type(value) is int:
        return instant(value)
    raise Invalid(f"not a time: {value!r}", "Write it as 2026-01-30T12:00:00Z.")


def variables(value: object) -> dict[str, str]:
    """Names with text or numbers."""
    found = _mapping(value)
    for key, each in found.items():
        if not isinstance(each, str | int | float):
            raise Invalid(f"{key}: not text: {each!r}", "Give text or a number.")
    return {text(key): text(str(each)) for key, each in found.items()}


def environment(value: object) -> dict[str, str]:
    """Names of environment variables with text; values are never told."""
    found = _mapping(value)
    for key, each in found.items():
        if not key or "=" in key or "\0" in key:
            raise Invalid(f"not the name of a variable: {key!r}")
        if not isinstance(each, str) or "\0" in each:
            raise Invalid(f"{key}: its value is not text", "Write it in quotes.")
    return dict(found)


def meta(value: object) -> dict[str, Any]:
    """The caller's own: whatever JSON has."""
    found = _mapping(value)
    try:
        written = json.dumps(found, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"not JSON: {error}") from error
    if len(written) > TEXT_MAX:
        raise Invalid(f"{len(written)} bytes are too many", f"Use at most {TEXT_MAX}.")
    return dict(found)


_NAMES = several(name)
_WORDS = several(word)

#: Every field that a caller may give.
READERS: dict[str, Reader] = {
    "id": name,
    "project": name,
    "kind": name,
    "title": text,
    "prompt": text,
    "template": name,
    "base": word,
    "merge": choice(MERGES),
    "session": choice(SESSIONS),
    "agent": name,
    "command": command,
    "priority": whole(-NUMBER_MAX, NUMBER_MAX),
    "parent": name,
    "needs": _NAMES,
    "artifacts": several(artifact),
    "group": name,
    "parallel": flag,
    "locks": _WORDS,
    "workspace": name,
    "pool": name,
    "labels": several(label),
    "estimate_tokens": whole(0, TOKENS_MAX),
    "timeout": length,
    "max_attempts": whole(1, 10**6),
    "not_before": moment,
    "vars": variables,
    "env": environment,
    "meta": meta,
}
#: Fields that only Fairlane sets.
_OURS = frozenset(each.name for each in fields(Task)) - frozenset(READERS)


def read(record: Mapping[str, Any]) -> dict[str, Any]:
    """The typed values of a record; null is the same as absent."""
    values = {}
    for key, value in record.items():
        if value is None:
            continue
        reader = READERS.get(key)
        if reader is None:
            raise _unknown(key)
        try:
            values[key] = reader(value)
        except Invalid as error:
            raise Invalid(f"{key}: {error.message}", error.hint) from None
    return values


def defaults(names: Iterable[str]) -> dict[str, Any]:
    """What these fields are when nobody gives them."""
    found = {}
    for key in names:
        if key not in READERS:
            raise _unknown(key)
        found[key] = _LAYOUT.blank[_LAYOUT.places[key]]
    return found


def _unknown(key: object) -> Invalid:
    if key in _OURS:
        return Invalid(f"field {key!r} is not for callers: Fairlane sets it", "Take it out.")
    return Invalid(f"unknown field {key!r}", did_you_mean(str(key), READERS))


def _list(value: object) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise Invalid(f"not a list: {value!r}", 'Write it as ["a", "b"].')
    if len(value) > LIST_MAX:
        raise Invalid(f"{len(value)} entries are too many", f"Use at most {LIST_MAX}.")
    return value


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise Invalid(f"not a table of names: {value!r}", 'Write it as {"name": "value"}.')
    return value


_LAYOUT = layout(Task)


def new_task(values: Mapping[str, Any]) -> Task:
    """`Task(**values)` for values that are typed already: a large file is mostly this line."""
    row = _LAYOUT.blank.copy()
    for key, value in values.items():
        row[_LAYOUT.places[key]] = value
    return filled(Task, row)
