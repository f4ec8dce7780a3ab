"""The sorts of value that a key may have: each says what it accepts, reads it, and shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Protocol

from fairlane.model.errors import Invalid
from fairlane.model.instant import DAY, DURATION_MAX, Micros, parse_duration, show_duration
from fairlane.policy.sections import CALENDAR_WINDOWS, TOTAL_WINDOW

#: Largest count: exact in JSON, in SQLite and in a float.
COUNT_MAX = 10**15
#: Text longer than this is cut in error messages.
SHOWN_MAX = 60

_USD = re.compile(r"\d{1,12}(\.\d+)?", re.ASCII)
_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,128}")


class NotAccepted(ValueError):
    """A value that a key does not accept; the text, if any, says more than `accepts`."""


class Sort(Protocol):
    """One sort of value."""

    @property
    def accepts(self) -> str:
        """What may be written, for errors and documentation."""

    def read(self, value: object) -> Any:
        """The typed value, or `NotAccepted`."""

    def show(self, value: Any) -> Any:
        """The one canonical way to write a typed value."""


class Count:
    """A whole number."""

    def __init__(self, least: int = 0, most: int = COUNT_MAX) -> None:
        self.least = least
        self.most = most

    @property
    def accepts(self) -> str:
        if self.most == COUNT_MAX:
            return f"a whole number, {self.least} or more"
        return f"a whole number from {self.least} to {self.most}"

    def read(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise NotAccepted
        if not self.least <= value <= self.most:
            raise NotAccepted
        return value

    def show(self, value: int) -> int:
        return value


class Ratio:
    """A number with at most six decimals, kept exactly."""

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most

    @property
    def accepts(self) -> str:
        return f"a number from {self.least} to {self.most} with at most six decimals"

    def read(self, value: object) -> Fraction:
        number = exact(value)
        if (number * 10**6).denominator != 1 or not self.least <= number <= self.most:
            raise NotAccepted
        return number

    def show(self, value: Fraction) -> int | float:
        return value.numerator if value.denominator == 1 else float(value)


class Usd:
    """Dollars, exact to a millionth, kept as micro-dollars."""

    accepts = 'dollars as a number or text such as "12.50", exact to a millionth, 0 or more'

    def read(self, value: object) -> int:
        if isinstance(value, str) and not _USD.fullmatch(value):
            raise NotAccepted
        micros = exact(Decimal(value) if isinstance(value, str) else value) * 10**6
        if micros.denominator != 1 or not 0 <= micros <= COUNT_MAX:
            raise NotAccepted
        return micros.numerator

    def show(self, value: int) -> str:
        whole, rest = divmod(value, 10**6)
        return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")


class Duration:
    """A length of time."""

    def __init__(self, positive: bool = False) -> None:
        self.positive = positive

    @property
    def accepts(self) -> str:
        least = "longer than 0s" if self.positive else "0s or longer"
        return f"a duration such as 30s, 5m, 1h30m or 7d, {least}, at most {DURATION_MAX // DAY}d"

    def read(self, value: object) -> Micros:
        if not isinstance(value, str) or len(value) > SHOWN_MAX:
            raise NotAccepted
        try:
            length = parse_duration(value)
        except Invalid as error:
            raise NotAccepted from error
        if self.positive and not length:
            raise NotAccepted
        return length

    def show(self, value: Micros) -> str:
        return show_duration(value)


class Flag:
    """True or false."""

    accepts = "true or false"

    def read(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise NotAccepted
        return value

    def show(self, value: bool) -> bool:
        return value


class Choice:
    """One of some words."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    @property
    def accepts(self) -> str:
        return "one of " + ", ".join(f'"{word}"' for word in self.words)

    def read(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise NotAccepted
        return value

    def show(self, value: str) -> str:
        return value


class AutoCount:
    """A whole number, or `auto`."""

    accepts = 'a whole number, 0 or more, or "auto"'

    def read(self, value: object) -> int | str:
        return "auto" if value == "auto" else Count().read(value)

    def show(self, value: int | str) -> int | str:
        return value


class Words:
    """Some of some words, none twice: a list, or text with spaces; kept as written if `ordered`."""

    def __init__(self, words: tuple[str, ...], ordered: bool) -> None:
        self.words = words
        self.ordered = ordered

    @property
    def accepts(self) -> str:
        return f"a list of one or more of {', '.join(self.words)}, none twice"

    def read(self, value: object) -> tuple[str, ...]:
        found = value.replace(",", " ").split() if isinstance(value, str) else value
        if not isinstance(found, list | tuple) or not found:
            raise NotAccepted
        for word in found:
            if not isinstance(word, str) or word not in self.words:
                raise NotAccepted(f"{show_raw(word)} is not known")
            if list(found).count(word) > 1:
                raise NotAccepted(f"{show_raw(word)} is there twice")
        return tuple(found) if self.ordered else tuple(sorted(found, key=self.words.index))

    def show(self, value: tuple[str, ...]) -> list[str]:
        return list(value)


class Window:
    """A budget's window: rolling, of the calendar, or for ever."""

    @property
    def accepts(self) -> str:
        fixed = ", ".join((*CALENDAR_WINDOWS, TOTAL_WINDOW))
        return f"a duration longer than 0s such as 5h, 24h or 7d, or one of {fixed}"

    def read(self, value: object) -> str:
        if isinstance(value, str) and value in (*CALENDAR_WINDOWS, TOTAL_WINDOW):
            return value
        return show_duration(Duration(positive=True).read(value))

    def show(self, value: str) -> str:
        return value


class Scope:
    """`all`, or a name with its sort in front, such as `project:web`; `project:*` if `star`."""

    def __init__(self, sorts: tuple[str, ...], star: bool) -> None:
        self.sorts = sorts
        self.star = star

    @property
    def accepts(self) -> str:
        names = ", ".join(f'"{sort}:NAME"' for sort in self.sorts)
        return f'"all", {names}' + ("; NAME may be *" if self.star else "")

    def read(self, value: object) -> str:
        if value == "all":
            return "all"
        if not isinstance(value, str):
            raise NotAccepted
        sort, _, name = value.partition(":")
        if sort not in self.sorts:
            raise NotAccepted(f"{show_raw(sort)} is no sort of name")
        if not name:
            raise NotAccepted(f"no name after {sort}:")
        if not _NAME.fullmatch(name):
            raise NotAccepted(f"{show_raw(name)} is no name")
        if name == "*" and not self.star:
            raise NotAccepted(f"name one {sort}: * is for caps")
        return value

    def show(self, value: str) -> str:
        return value


def exact(value: object) -> Fraction:
    """A number as it is written: 0.1 is one tenth, not the nearest float."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise NotAccepted
    try:
        number = Decimal(repr(value)) if isinstance(value, float) else value
        if isinstance(number, Decimal) and (not number.is_finite() or abs(number.adjusted()) > 30):
            raise NotAccepted
        return Fraction(number)
    except (InvalidOperation, OverflowError) as error:
        raise NotAccepted from error


def is_name(value: object) -> bool:
    """Whether something can be the name of a kind or a project: text without spaces."""
    return isinstance(value, str) and bool(_NAME.fullmatch(value))


def show_raw(value: object) -> str:
    """A value as a user wrote it, cut when it is long."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        text = "[" + ", ".join(show_raw(each) for each in value) + "]"
    elif isinstance(value, str | bool):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = str(value)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"
