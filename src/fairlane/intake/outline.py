"""Outline: items with items under them become tasks and groups, the same for every source.

An entry under which something is not closed is a collection and no item itself; what needs it
needs all that is open under it, and what it needs is needed by all under it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from fairlane.intake.sources.base import Collection, Found, Item, LeftOut, Standing
from fairlane.model.errors import Invalid
from fairlane.model.values import is_name, wrong

_Row = TypeVar("_Row")
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+|\.\.+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of an outline, as its source has it."""

    id: str  # as the source calls it
    record: Mapping[str, object]  # the model's fields; `id` is also the name of its group
    standing: Standing = Standing.OPEN
    needs: tuple[str, ...] = ()  # entries that come first, by the source's ids
    under: str | None = None  # the entry that it is part of
    group: str | None = None  # where it is under none: a collection, by the source's id
    blocked: str = ""
    why: str = ""
    where: str = ""


@dataclass(slots=True)
class Outline:
    """Entries in their source's order."""

    entries: Sequence[Entry]
    _known: dict[str, Entry] = field(default_factory=dict)
    _under: dict[str, list[Entry]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = {entry.id: entry for entry in self.entries}
        for entry in self.entries:
            if entry.under is not None and self._above(entry):
                self._under.setdefault(entry.under, []).append(entry)

    def found(
        self, collections: Iterable[Collection] = (), left_out: Iterable[LeftOut] = ()
    ) -> Found:
        """Everything, as the seam wants it."""
        items, groups = [], list(collections)
        for entry in self.entries:
            if self._is_collection(entry):
                title = str(entry.record.get("title", ""))
                name = str(entry.record["id"])
                groups.append(Collection(entry.id, name, title, self._group(entry)))
            else:
                items.append(self._item(entry))
        return Found(tuple(items), tuple(groups), tuple(left_out))

    def _item(self, entry: Entry) -> Item:
        above = self._above(entry)
        line = (entry, *above)
        needs: dict[str, None] = {}
        blocked = [part.blocked for part in line if part.blocked]
        for name in dict.fromkeys(need for part in line for need in part.needs):
            if name not in self._known:
                blocked.append(f"needs {name}, which is not there")
            elif all(part.id != name for part in above):  # a part does not wait for its whole
                needs |= dict.fromkeys(self._open_ones(self._known[name]))
        return Item(
            entry.id, entry.record, entry.standing, tuple(needs), "; ".join(blocked),
            self._group(entry), entry.why, entry.where,
        )  # fmt: skip

    def _above(self, entry: Entry) -> list[Entry]:
        """The entries that it is part of, nearest first; none where they go round in a circle."""
        ancestors: list[Entry] = []
        name = entry.under
        while name is not None and name in self._known:
            above = self._known[name]
            if above is entry or above in ancestors:
                return []
            ancestors.append(above)
            name = above.under
        return ancestors

    def _is_collection(self, entry: Entry) -> bool:
        return any(
            part.standing is not Standing.CLOSED or self._is_collection(part)
            for part in self._under.get(entry.id, ())
        )

    def _open_ones(self, entry: Entry) -> Iterator[str]:
        """The items that are not closed: itself, or those under it."""
        if self._is_collection(entry):
            for part in self._under[entry.id]:
                yield from self._open_ones(part)
        elif entry.standing is not Standing.CLOSED:
            yield entry.id

    def _group(self, entry: Entry) -> str | None:
        above = self._above(entry)
        if above and self._is_collection(above[0]):
            return above[0].id
        return entry.group


def as_name(*parts: object) -> str:
    """Words as the name of a task or group, whatever they were."""
    text = "-".join(str(part) for part in parts if str(part))
    name = _UNFIT.sub("-", text).strip("-._")[:128].rstrip("-._")
    name = name.removesuffix(".lock")
    return name if is_name(name) else "item"


def leftover(record: Mapping[str, object], used: Iterable[str]) -> dict[str, object]:
    """The keys of a record that no field uses, without empty values."""
    known = set(used)
    return {
        key: value for key, value in record.items() if key not in known and value not in (None, "")
    }


def text_of(value: object) -> str:
    """A value as one text; a list as lines."""
    if isinstance(value, list):
        return "\n".join(f"- {text_of(line)}" for line in value if line not in (None, ""))
    return "" if value is None else str(value).strip()


def prompt_of(title: str, sections: Iterable[tuple[str, object]]) -> str:
    """A title and the sections that are not empty, each under its heading."""
    parts = [title]
    for heading, value in sections:
        text = text_of(value)
        if text and text != title:
            parts.append(f"{heading}:\n{text}" if heading else text)
    return "\n\n".join(parts)


def each_valid(
    rows: Iterable[tuple[str, _Row]], read: Callable[[str, _Row], Iterable[Entry]]
) -> tuple[list[Entry], list[LeftOut]]:
    """The entries of every row (its place, its record); a broken one, or a twin, is named."""
    entries: dict[str, Entry] = {}
    left_out: list[LeftOut] = []
    for place, row in rows:
        try:
            made = list(read(place, row))
        except Invalid as error:
            name = str(row.get("id", "?")) if isinstance(row, dict) else "?"
            left_out.append(LeftOut(name, error.message, place, bad=True))
            continue
        for entry in made:
            if entry.id in entries:
                left_out.append(LeftOut(entry.id, "its id appears twice", place, bad=True))
            entries.setdefault(entry.id, entry)
    return list(entries.values()), left_out


def table_of(value: object) -> dict[str, object]:
    """A record with names."""
    if not isinstance(value, dict):
        raise wrong("a record", value)
    return value


def list_of(record: Mapping[str, object], key: str) -> list[object]:
    """A list of a record; absent is empty, one value alone is a list of one."""
    value = record.get(key)
    if value is None or value == "":
        return []
    if isinstance(value, dict):
        raise wrong("a list", value).within(key)
    return list(value) if isinstance(value, list | tuple) else [value]


def line_of(record: Mapping[str, object], key: str) -> str:
    """A text or number that must be there, as one line."""
    value = record.get(key)
    if value in (None, ""):
        raise Invalid(f"it has no {key}")
    if type(value) not in (str, int, float) or not str(value).strip():
        raise wrong("text", value).within(key)
    return " ".join(str(value).split())
