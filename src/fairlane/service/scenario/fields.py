"""Reading one table of a file strictly: every complaint names file, table, id and key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import Instant, Micros, instant, parse_duration, parse_instant
from fairlane.model.names import check_name

_T = TypeVar("_T")
#: A hint looks through this many ids for the nearest, and lists this many where none is near.
IDS_COMPARED_MAX, IDS_LISTED_MAX = 5000, 10


class Table:
    """One table; `where` says which, in words that a person can search for."""

    def __init__(self, where: str, values: object, known: Sequence[str]) -> None:
        self.where = where
        self.title = ""  # its own name or id, once that was read
        self.number = 0  # its place among those of its sort, from 1
        if not isinstance(values, Mapping):
            raise Invalid(f"{where}: not a table: {values!r}", "Give keys with values.")
        self.values = {key: value for key, value in values.items() if value is not None}
        for key in self.values:
            if key not in known:
                raise Invalid(f"{where}: unknown key {key!r}", did_you_mean(str(key), known))

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def error(self, key: str, message: str, hint: str = "") -> Invalid:
        """A complaint about one key."""
        return Invalid(f"{self.where}: {key}: {message}", hint)

    def text(self, key: str) -> str | None:
        """A string."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(key, f"not a string: {value!r}", "Write it in quotes.")
        return value

    def name(self, key: str) -> str | None:
        """A string that may name a task, project, group or workspace."""
        value = self.values.get(key)
        return None if value is None else self._checked(key, check_name, _noun(key), value)

    def required_name(self, key: str) -> str:
        """A name that must be there."""
        name = self.name(key)
        if name is None:
            raise self.error(key, "missing", f"Give every such table its own {key}.")
        return name

    def word(self, key: str) -> str | None:
        """A string with something in it, free of line breaks."""
        value = self.text(key)
        if value is not None and (not value.strip() or not value.isprintable()):
            raise self.error(key, f"not a name: {value!r}", "Write one line of text.")
        return value

    def whole(self, key: str, least: int | None = 0) -> int | None:
        """A whole number, not below `least`."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, f"not a whole number: {value}")
        if least is not None and value < least:
            raise self.error(key, f"{value} is impossible: it cannot be below {least}")
        return value

    def dollars(self, key: str) -> int | None:
        """An amount of dollars, as micro-dollars."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise self.error(key, f"not an amount: {value!r}", "Write it as 2.50.")
        amount = Decimal(value)
        if not amount.is_finite() or amount < 0 or (amount * 1_000_000) % 1:
            raise self.error(key, f"{value} is not an amount of dollars", "Write it as 2.50.")
        return int(amount * 1_000_000)

    def flag(self, key: str) -> bool | None:
        """true or false."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(key, f"not true or false: {value!r}")
        return value

    def choice(self, key: str, words: Sequence[str]) -> str | None:
        """One of a few words."""
        value = self.text(key)
        if value is not None and value not in words:
            hint = did_you_mean(value, words)
            raise self.error(key, f"{value!r} is none of {', '.join(words)}", hint)
        return value

    def moment(self, key: str) -> Instant | None:
        """A time: a TOML date-time or an RFC 3339 string, with a zone."""
        value = self.values.get(key)
        return None if value is None else self.as_moment(key, value)

    def as_moment(self, key: str, value: object) -> Instant:
        """A value that stands for a time."""
        if isinstance(value, datetime):
            return self._checked(key, instant, value)
        if isinstance(value, str):
            return self._checked(key, parse_instant, value)
        raise self.error(key, f"not a time: {value}", "Write it as 2026-01-30T12:00:00Z.")

    def length(self, key: str) -> Micros | None:
        """A duration such as 5m, never negative."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, str) and value.startswith("-"):
            raise self.error(
                key,
                f"{value!r} is impossible: it cannot be negative",
                "For a clock that went wrong, give `created` a time in the future.",
            )
        if not isinstance(value, str):
            raise self.error(key, f"not a duration: {value}", "Write it as 30s, 5m, 1h30m or 7d.")
        return self._checked(key, parse_duration, value)

    def words(self, key: str) -> tuple[str, ...] | None:
        """A list of strings, each given once."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.error(key, f"not a list of strings: {value!r}", 'Write it as ["a", "b"].')
        for each in value:
            if not each.strip() or not each.isprintable():
                raise self.error(key, f"not a name: {each!r}", "Write one line of text.")
            if value.count(each) > 1:
                raise self.error(key, f"{each!r} appears twice", "Take one out.")
        return tuple(value)

    def names(self, key: str) -> tuple[str, ...] | None:
        """A list of names."""
        words = self.words(key)
        for each in words or ():
            self._checked(key, check_name, _noun(key), each)
        return words

    def list_of(self, key: str) -> list[object]:
        """A list of tables or values."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            raise self.error(key, f"not a list: {value!r}", f"Write [[{key}]] above each table.")
        return value

    def _checked(self, key: str, read: Callable[..., _T], *arguments: object) -> _T:
        """What `read` makes of a value; its complaint is put in this table's words."""
        try:
            return read(*arguments)
        except Invalid as error:
            raise self.error(key, error.message, error.hint) from error


def nearest(word: str, known: Collection[str]) -> str:
    """A hint with the nearest of many ids; a long list of them helps nobody."""
    if len(known) > IDS_COMPARED_MAX:
        return ""
    hint = did_you_mean(word, known)
    return hint if hint.startswith("Did") or len(known) <= IDS_LISTED_MAX else ""


def _noun(key: str) -> str:
    """What a key names, for a sentence."""
    nouns = {"id": "task", "needs": "task", "parent": "task", "picks": "task", "name": "good"}
    return nouns.get(key, key.removesuffix("s"))
