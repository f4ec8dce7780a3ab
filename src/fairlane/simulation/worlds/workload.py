"""From the text of a workload file to a workload: every key is read strictly."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from operator import attrgetter
from pathlib import Path

from fairlane.careful_files import read_file
from fairlane.model import values
from fairlane.model.errors import FairlaneError, Invalid
from fairlane.model.instant import Instant, parse_instant
from fairlane.model.values import Values
from fairlane.simulation.world import DAYS_MAX
from fairlane.simulation.worlds.described import Workload, checked
from fairlane.simulation.worlds.file import ground as file_ground
from fairlane.simulation.worlds.file import house
from fairlane.simulation.worlds.file.added import read_source
from fairlane.simulation.worlds.file.amounts import profile
from fairlane.simulation.worlds.file.ground import names_of, read_ground, refuse_unknown
from fairlane.simulation.worlds.file.moments import Calendar, begin, read_hours
from fairlane.simulation.worlds.file.tables import known_keys, named, several
from fairlane.simulation.worlds.sources import Source

#: A workload is a few pages; lists of recorded values make it longer.
FILE_BYTES_MAX = 4_000_000
#: Most parts of a dotted key: the parser takes time with the square of their number.
KEY_PARTS_MAX = 100
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(
    rf"(?<![\w.-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{KEY_PARTS_MAX}}}", re.ASCII
)
#: The begin of a workload that does not say: a Monday.
BEGIN: Instant = parse_instant("2026-01-05T00:00:00Z")
CODE = "invalid_workload"

_PLAIN: Mapping[str, values.Reader[object]] = {
    "title": values.line,
    "begin": begin,
    "days": values.whole(1, DAYS_MAX),
}
_KEYS = (*_PLAIN, *file_ground.KEYS, "hours", "work", "source", "worker", "act")


def load_workload(path: str | Path) -> Workload:
    """The workload in a file."""
    return parse_workload(read_workload(path), str(path))


def read_workload(path: str | Path) -> dict[str, object]:
    """The tables of a workload file as JSON could have them."""
    try:
        data = read_file(path, FILE_BYTES_MAX)
    except FileNotFoundError as error:
        raise Invalid(f"{path}: there is no such file", "Give the path of a workload.") from error
    except OSError as error:
        raise Invalid(f"{path}: cannot be read: {error.strerror}") from error
    return read_text(data, str(path))


def read_text(data: bytes, origin: str) -> dict[str, object]:
    """The tables of a text; a mistake is named with its place."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
        _refuse_long_keys(text)
        table = tomllib.loads(text, parse_float=_number)
        return {key: _plain(value) for key, value in table.items()}
    except UnicodeDecodeError as error:
        raise Invalid(f"{origin}: not UTF-8 text", "Save it as UTF-8.", CODE) from error
    except (ValueError, RecursionError) as error:
        hint = 'A workload is TOML: days = 5, begin = 2026-01-05T00:00:00Z, title = "A week".'
        if data.lstrip().startswith(b'{"'):
            hint = "This looks like JSON or a trace: a workload file is TOML."
        raise Invalid(f"{origin}: not TOML: {error}", hint, CODE) from error


def _refuse_long_keys(text: str) -> None:
    found = _LONG_KEY.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a key of more than {KEY_PARTS_MAX} parts (at line {line})")


def _number(written: str) -> float:
    """A float that says the same in text: what is read is read exactly again."""
    number = float(written)
    try:
        is_same = Decimal(repr(number)) == Decimal(written)
    except ArithmeticError:  # an exponent beyond those of decimals
        is_same = False
    if not is_same:
        raise ValueError(f"{written} has too many digits")
    return number


def _plain(value: object) -> object:
    """Dates and times as text; everything else stays."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, int) and value.bit_length() > 63:
        raise ValueError("a number has more than 64 bits")
    if isinstance(value, time):
        return value.isoformat("minutes")
    return value.isoformat() if isinstance(value, date) else value


def parse_workload(table: Mapping[str, object], origin: str = "workload") -> Workload:
    """The workload that tables describe; `origin` names it in errors."""
    try:
        return checked(_workload(table))
    except FairlaneError as error:
        raise Invalid(f"{origin}: {error.message}", error.hint, CODE) from None


def _workload(table: Mapping[str, object]) -> Workload:
    known_keys(values.section(table, ""), _KEYS)
    given: Values = values.read_all(_PLAIN, {key: table.get(key) for key in _PLAIN})
    hours = named(table, "hours", lambda row, _: read_hours(row))
    calendar = Calendar(given.get("begin", BEGIN), hours)
    ground = read_ground(calendar, table)
    sources = several(
        table, "source", lambda row, where, at: read_source(calendar, row, where, at + 1)
    )
    crews = several(table, "worker", lambda row, where, _: house.worker(calendar, row, where))
    acts = several(table, "act", lambda row, where, _: house.act(calendar, row, where))
    _refuse_twice("source", [source.name for source in sources])
    _refuse_twice("worker", [crew.name for crew in crews])
    records = {source.name: _records(source) for source in sources}
    if any("project" not in row for rows in records.values() for row in rows):
        ground = ground.with_default()
    known = names_of(ground)
    for name, rows in records.items():
        for row in rows:
            refuse_unknown(known, f"source {name}", row)
    return Workload(
        title=given.get("title", ""),
        begin=calendar.begin,
        days=given.get("days"),
        work=named(table, "work", profile),
        sources=sources,
        ground=ground,
        crews=crews,
        done=tuple(sorted(acts, key=attrgetter("at"))),
    )


def _records(source: Source) -> list[dict[str, object]]:
    """One record of each sort that a source adds."""
    return [{**source.fields, **step.fields} for step in source.steps] or [{**source.fields}]


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    for name in names if len(set(names)) < len(names) else ():
        if names.count(name) > 1:
            raise values.twice(name).within(what)
