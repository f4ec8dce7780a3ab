"""Tables of a workload file: by name, and in lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from fairlane.model import values
from fairlane.model.errors import Invalid

_T = TypeVar("_T")
#: Most tables of one sort.
TABLES_MAX = 1000


def named(
    table: Mapping[str, object], key: str, read: Callable[[object, str], _T]
) -> dict[str, _T]:
    """The tables `[key.NAME]` by their names."""
    rows = values.section(table.get(key) or {}, key)
    if len(rows) > TABLES_MAX:
        raise Invalid(f"{key}: {len(rows)} tables are too many", f"Use at most {TABLES_MAX}.")
    made = {}
    for name, row in rows.items():
        place = f"{key}.{name}"
        try:
            made[values.name(name)] = read(row, place)
        except Invalid as error:
            raise error if error.message.startswith(place) else error.within(place) from None
    return made


def several(
    table: Mapping[str, object], key: str, read: Callable[[object, str, int], _T]
) -> tuple[_T, ...]:
    """The tables `[[key]]` in their order."""
    rows = table.get(key) or []
    if not isinstance(rows, list):
        raise values.wrong("a list of tables", rows, f"Write [[{key}]] above each.").within(key)
    if len(rows) > TABLES_MAX:
        raise Invalid(f"{key}: {len(rows)} tables are too many", f"Use at most {TABLES_MAX}.")
    return tuple(read(row, f"{key}[{at}]", at) for at, row in enumerate(rows))
