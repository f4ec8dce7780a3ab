"""Tables of a workload file: by name, and in lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from fairlane.model import values
from fairlane.model.errors import Invalid, did_you_mean

_T = TypeVar("_T")
#: Most tables of one sort.
TABLES_MAX = 1000


def named(
    table: Mapping[str, object], key: str, read: Callable[[object, str], _T]
) -> dict[str, _T]:
    """The tables `[key.NAME]` by their names."""
    given = table.get(key)
    rows = values.section({} if given is None else given, key)
    if len(rows) > TABLES_MAX:
        raise Invalid(f"{key}: {len(rows)} tables are too many", f"Use at most {TABLES_MAX}.")
    made = {}
    for name, row in rows.items():
        place = f"{key}.{name}"
        try:
            made[values.name(name)] = read(row, place)
        except Invalid as error:
            raise error if place in error.message else error.within(place) from None
    return made


def known_keys(table: Mapping[str, object], known: Collection[str], where: str = "") -> None:
    """Refuse a table with another key; its readers are elsewhere."""
    for key in table:
        if key not in known:
            place = f"{where}.{key}" if where else key
            raise Invalid(f"unknown key {place!r}", did_you_mean(key, known))


def several(
    table: Mapping[str, object], key: str, read: Callable[[object, str, int], _T]
) -> tuple[_T, ...]:
    """The tables `[[key]]` in their order."""
    given = table.get(key)
    rows = [] if given is None else given
    if not isinstance(rows, list):
        raise values.wrong("a list of tables", rows, f"Write [[{key}]] above each.").within(key)
    if len(rows) > TABLES_MAX:
        raise Invalid(f"{key}: {len(rows)} tables are too many", f"Use at most {TABLES_MAX}.")
    return tuple(read(row, f"{key}[{at}]", at) for at, row in enumerate(rows))
