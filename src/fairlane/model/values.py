"""Values from outside: one reader for each kind of value, one error text for each fault.

A reader takes what a file, a caller or a command line gave and returns the typed value, or raises
`Invalid`: the message says what is wrong, the hint what to write. Callers add the name of the key
with `FairlaneError.within`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import (
    WRITE_DURATION,
    WRITE_INSTANT,
    Instant,
    Micros,
    checked_instant,
    instant,
    parse_duration,
    parse_instant,
)

if TYPE_CHECKING:
    from fractions import Fraction

_T = TypeVar("_T")
Reader: TypeAlias = Callable[[object], _T]
#: Values by key, each of the type that its reader returns: for the `**` of a constructor.
Values: TypeAlias = dict[str, Any]

#: Largest count: exact in JSON, in SQLite and in a float.
COUNT_MAX = 10**15
#: Largest priority.
NUMBER_MAX = 10**9
#: Longest text of one field, in characters.
TEXT_MAX = 1_000_000
#: Longest list of one field.
LIST_MAX = 1_000
#: Error messages cut a value after this many characters.
SHOWN_MAX = 60

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_DIGITS = r"-?[0-9][0-9_]{0,39}"
_DOLLARS = r"[0-9]{1,12}(\.[0-9]+)?"


def shown(value: object) -> str:
    """A value as an error message shows it, cut when it is long."""
    try:
        text = str(value) if isinstance(value, Decimal | date) else repr(value)
    except ValueError:  # Python refuses to write thousands of digits
        return "a huge number"
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"


def wrong(what: str, value: object, hint: str = "") -> Invalid:
    """A value of another kind: `not a whole number: 'x'`."""
    return Invalid(f"not {what}: {shown(value)}", hint)


def out_of_range(value: float | Fraction, least: float, most: float) -> Invalid:
    """A number below the least or above the most that is accepted."""
    number = shown(value) if isinstance(value, int | float) else f"{float(value):g}"
    kind = "whole number" if isinstance(value, int) else "number"
    accepted = _range(least, most) if value < least else f" from {least} to {most}"
    return Invalid(f"{number} is out of range", f"Give a {kind}{accepted}.")


def none_of(value: object, words: Iterable[str]) -> Invalid:
    """A word that is not among those that are accepted."""
    known = tuple(words)
    return Invalid(f"{shown(value)} is none of {', '.join(known)}", did_you_mean(str(value), known))


def unknown(what: str, key: object, known: Iterable[str]) -> Invalid:
    """A key, field or argument that does not exist: `unknown key 'x'`."""
    return Invalid(f"unknown {what} {key!r}", did_you_mean(str(key), known))


def twice(value: object) -> Invalid:
    """An entry of a list, or a name, that appears again."""
    return Invalid(f"{shown(value)} appears twice", "Take one out.")


def _range(least: float, most: float) -> str:
    return f", {least} or more" if most >= COUNT_MAX else f" from {least} to {most}"


def text(value: object) -> str:
    """Text that a file, a process and a database can hold."""
    if not isinstance(value, str):
        raise wrong("text", value, "Write it in quotes.")
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


def line(value: object) -> str:
    """One printable line that is not blank."""
    written = text(value)
    if not written.strip() or not written.isprintable():
        raise wrong("a line of text", value, "Write one line of text.")
    return written


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object whose keys appear once each: the `object_pairs_hook` for input."""
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} is given twice")
    return table


def is_name(value: object) -> TypeGuard[str]:
    """Whether this may name a task, project, group or workspace: it becomes a path and a branch."""
    return (
        isinstance(value, str)
        and _NAME.fullmatch(value) is not None
        and ".." not in value
        and not value.endswith((".", ".lock"))
    )


def check_name(what: str, value: object) -> str:
    """The name itself; the hint of the error explains names."""
    if is_name(value):
        return value
    raise wrong(
        f"a {what} name",
        value,
        "Use 1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit, "
        "without '..' and not ending in '.' or '.lock'.",
    )


def name(value: object) -> str:
    """The name of a task, project, group or workspace."""
    return value if is_name(value) else check_name("proper", value)


def flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong("true or false", value, "Write true or false.")
    return value


def whole(least: int, most: int = COUNT_MAX) -> Reader[int]:
    """A whole number in a range."""

    def read(value: object) -> int:
        if type(value) is not int:
            hint = f"Give a whole number{_range(least, most)}."
            raise wrong("a whole number", value, hint)
        if not least <= value <= most:
            raise out_of_range(value, least, most)
        return value

    return read


def digits(value: str) -> int | str:
    """Text as the whole number that it writes (`1000`, `1_000`, `-5`), else unchanged."""
    return int(value) if re.fullmatch(_DIGITS, value) else value


def exact(value: object) -> Fraction:
    """A number as it is written: 0.1 is one tenth, not the nearest float."""
    from fractions import Fraction

    number = Decimal(repr(value)) if isinstance(value, float) else value
    if isinstance(number, Decimal) and (not number.is_finite() or abs(number.adjusted()) > 30):
        raise wrong("a number", value)
    if isinstance(number, bool) or not isinstance(number, int | Decimal | Fraction):
        raise wrong("a number", value, "Write it as 2.5.")
    if isinstance(number, int) and number.bit_length() > 100:
        raise wrong("a number", value)
    return Fraction(number)


def ratio(least: int, most: int) -> Reader[Fraction]:
    """A number in a range with at most six decimals, kept exactly."""

    def read(value: object) -> Fraction:
        try:
            number = exact(value)
        except Invalid as error:
            raise Invalid(error.message, f"Give a number{_range(least, most)}.") from None
        if not least <= number <= most:
            raise out_of_range(number, least, most)
        if (number * 10**6).denominator != 1:
            raise wrong("a number with at most six decimals", value)
        return number

    return read


def dollars(most: int) -> Reader[int]:
    """Dollars as a number or text, exact to a millionth; the value is micro-dollars."""

    def read(value: object) -> int:
        hint = f"Write dollars as 12.50, exact to a millionth, from 0 to {most}."
        number = (
            Decimal(value) if isinstance(value, str) and re.fullmatch(_DOLLARS, value) else value
        )
        try:
            micros = exact(number) * 10**6
        except Invalid:
            raise wrong("an amount of dollars", value, hint) from None
        if micros.denominator != 1 or not 0 <= micros <= most * 10**6:
            raise wrong("an amount of dollars", value, hint)
        return micros.numerator

    return read


def choice(words: tuple[str, ...]) -> Reader[str]:
    """One of a few words."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise none_of(value, words)
        return value

    return read


def entries(value: object, most: int = LIST_MAX) -> list[object] | tuple[object, ...]:
    """A list that is not too long."""
    if not isinstance(value, list | tuple):
        raise wrong("a list", value, 'Write it as ["a", "b"].')
    if len(value) > most:
        raise Invalid(f"{len(value)} entries are too many", f"Use at most {most}.")
    return value


def several(read_one: Reader[_T], most: int = LIST_MAX) -> Reader[tuple[_T, ...]]:
    """A list in which nothing appears twice."""

    def read(value: object) -> tuple[_T, ...]:
        items = tuple([read_one(item) for item in entries(value, most)])
        for item in items if len(set(items)) < len(items) else ():
            if items.count(item) > 1:
                raise twice(item)
        return items

    return read


names, lines = several(name), several(line)


def some_of(words: tuple[str, ...], ordered: bool = True) -> Reader[tuple[str, ...]]:
    """One or more of a few words: a list, or text with spaces or commas; in their order or ours."""

    def read(value: object) -> tuple[str, ...]:
        items = several(choice(words))(
            value.replace(",", " ").split() if isinstance(value, str) else value
        )
        if not items:
            raise Invalid("an empty list", f"Give one or more of {', '.join(words)}.")
        return items if ordered else tuple(sorted(items, key=words.index))

    return read


def command(value: object) -> tuple[str, ...]:
    """An argument vector: a program and its arguments, or nothing."""
    if isinstance(value, str):
        hint = 'Write it as ["make", "test"]; for a shell: ["sh", "-c", "…"].'
        raise wrong("a list of arguments", value, hint)
    arguments = tuple([text(item) for item in entries(value)])
    if arguments and not arguments[0]:
        raise Invalid("a command without a program", "Give the program first.")
    return arguments


def program(value: object) -> tuple[str, ...]:
    """An argument vector that is not empty."""
    arguments = command(value)
    if not arguments:
        raise Invalid("a command without a program", 'Write it as ["notify-send", "Fairlane"].')
    return arguments


def table(value: object) -> Mapping[str, object]:
    """Names with values."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong("a table of names", value, 'Write it as {"name": "value"}.')
    return value


def named(what: str) -> Callable[[object], dict[str, str]]:
    """A table of any words, each with the name of something."""

    def read(value: object) -> dict[str, str]:
        names: dict[str, str] = {}
        for word, name in table(value).items():
            try:
                names[word] = check_name(what, name)
            except Invalid as error:
                raise error.within(word) from None
        return names

    return read


def environment(value: object) -> dict[str, str]:
    """Names of environment variables with text; errors never show a value."""
    variables: dict[str, str] = {}
    if not isinstance(value, Mapping):
        raise Invalid("not a table of names", 'Write it as {"NAME": "value"}.')
    for key, content in value.items():
        if not isinstance(key, str) or not key or "=" in key or "\0" in key:
            raise wrong("the name of a variable", key, "Write it as NAME.")
        if not isinstance(content, str) or "\0" in content:
            raise Invalid(f"{key}: its value is not text", "Write it in quotes.")
        variables[key] = content
    return variables


def duration(value: object) -> Micros:
    """A length of time as text: `30s`."""
    if not isinstance(value, str):
        raise wrong("a duration", value, WRITE_DURATION)
    return parse_duration(value)


def positive_duration(value: object) -> Micros:
    """A length of time longer than nothing."""
    length = duration(value)
    if not length:
        raise wrong("longer than 0s", value, WRITE_DURATION)
    return length


def moment(value: object) -> Instant:
    """A time with a zone: text, a datetime, or an instant."""
    if isinstance(value, str):
        return parse_instant(value)
    if isinstance(value, datetime) or type(value) is int:
        return checked_instant(instant(value))
    raise wrong("a time", value, WRITE_INSTANT)


def take(record: Mapping[str, object], key: str, read: Reader[_T]) -> _T:
    """The typed value of a key; one that is refused is named by its key."""
    try:
        return read(record.get(key))
    except Invalid as error:
        raise error.within(key) from None


def section(value: object, where: str) -> Mapping[str, object]:
    """A table of a file; `where` is its key."""
    if not isinstance(value, Mapping):
        if not where:
            raise wrong("a table", value, "Write it as { key = value }.")
        raise wrong("a table", value, f"Write [{where}] above its keys.").within(where)
    return value


def read_all(readers: Mapping[str, Reader[object]], record: object, where: str = "") -> Values:
    """The typed values of a table whose keys are known; null is the same as absent."""
    values = {}
    for key, value in section(record, where).items():
        place = f"{where}.{key}" if where else key
        if key not in readers:
            raise Invalid(f"unknown key {place!r}", did_you_mean(str(key), readers))
        if value is not None:
            try:
                values[key] = readers[key](value)
            except Invalid as error:
                raise error.within(place) from None
    return values
