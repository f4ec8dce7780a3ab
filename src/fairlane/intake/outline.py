"""Outline: items with items under them become tasks and groups, the same for every source.

An entry under which something is not closed is a collection. Either it is no item itself, and what
needs it needs all under it; or it is the last item of its collection (`Outline.last`)
and needs the others. What it needs is needed by all under it, and they are told its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from fairlane.intake.sources.base import Collection, Found, Item, LeftOut, Standing
from fairlane.model.errors import Invalid
from fairlane.model.record import dataclass, field
from fairlane.model.values import LIST_MAX, wrong
from fairlane.model.visible import quoted

_Row = TypeVar("_Row")
#: What separates its own text from what else it is told.
PARTS_SAID = "---\nThese parts are tasks of their own and come before this one:\n"
CONTEXT_SAID = "---\nFor context only: the task above is a part of"
#: How much of the text of a whole its parts are told, and how many parts their whole.
CONTEXT_MAX, PARTS_MAX = 4_000, 50
#: How many wholes are told, and how many there can be one in another.
WHOLES_MAX, DEPTH_MAX = 3, 50
#: A task with more needs is refused, so that no more of them are looked at.
NEEDS_READ = LIST_MAX + 1


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
    text: str = ""  # what its parts are told of it, beside its title
    again: str = ""  # a person put it back after an end that we told


@dataclass(slots=True)
class Outline:
    """Entries in their source's order."""

    entries: Sequence[Entry]
    last: bool = False  # an entry with parts is an item too, after its parts
    _known: dict[str, Entry] = field(default_factory=dict)
    _under: dict[str, list[Entry]] = field(default_factory=dict)
    _collections: dict[str, bool] = field(default_factory=dict)  # those that were asked for

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
                groups.append(Collection(entry.id, name, title, self._outer(entry)))
            if self.last or not self._is_collection(entry):
                items.append(self._item(entry))
        return Found(tuple(items), tuple(groups), tuple(left_out))

    def _item(self, entry: Entry) -> Item:
        above = self._above(entry)
        needs: dict[str, None] = {}
        blocked = [part.blocked for part in (entry, *above) if part.blocked]
        for name in self._needed(entry, above):
            if name in self._known:
                needs |= dict.fromkeys(islice(self._members(self._known[name]), NEEDS_READ))
            else:
                blocked.append(f"needs {name}, which is not there")
        for part in self._under.get(entry.id, ()):
            needs |= dict.fromkeys(islice(self._members(part), NEEDS_READ))
        record = dict(entry.record)
        if "prompt" in record:
            record["prompt"] = self._prompt(entry, above)
        return Item(
            entry.id, record, entry.standing, tuple(islice(needs, NEEDS_READ)), "; ".join(blocked),
            self._group(entry), entry.why, entry.where, entry.again,
        )  # fmt: skip

    def _needed(self, entry: Entry, above: Sequence[Entry]) -> Iterator[str]:
        """What it needs, and what its wholes need; a part does not wait for its whole."""
        wholes = {whole.id for whole in above}
        for part in (entry, *above):
            for name in part.needs:
                known = self._known.get(name)
                inside = known is not None and part in self._above(known)
                if name not in wholes and (part is entry or not inside):
                    yield name

    def _prompt(self, entry: Entry, above: Sequence[Entry]) -> str:
        """Its own text, then what it is part of, and which parts come before it."""
        texts = [str(entry.record["prompt"])]
        parts = self._under.get(entry.id, ())
        if parts:
            lines = [f"- {part.id}: {part.record.get('title', '')}" for part in parts[:PARTS_MAX]]
            lines += ["- …"] * (len(parts) > PARTS_MAX)
            texts.append("\n".join([PARTS_SAID, *lines]))
        for whole in above[:WHOLES_MAX]:
            said = f"{CONTEXT_SAID} {whole.id}: {whole.record.get('title', '')}"
            texts.append(f"{said}\n\n{_quoted(whole.text)}" if whole.text else said)
        return "\n\n".join(texts)

    def _above(self, entry: Entry) -> list[Entry]:
        """The entries that it is part of, nearest first; none where they go round in a circle."""
        ancestors: list[Entry] = []
        name = entry.under
        while name is not None and name in self._known:
            above = self._known[name]
            if above is entry or len(ancestors) == DEPTH_MAX:
                return []
            ancestors.append(above)
            name = above.under
        return ancestors

    def _is_collection(self, entry: Entry) -> bool:
        if entry.id not in self._collections:
            self._collections[entry.id] = self._has_open_parts(entry)
        return self._collections[entry.id]

    def _has_open_parts(self, entry: Entry) -> bool:
        parts = self._under.get(entry.id, ())
        if self.last and parts and entry.standing is not Standing.CLOSED:
            return True
        return any(
            part.standing is not Standing.CLOSED or self._is_collection(part) for part in parts
        )

    def _members(self, entry: Entry) -> Iterator[str]:
        """The items that it means, also closed ones: itself, or those under it."""
        alone = self.last and entry.standing is not Standing.CLOSED
        if alone or not self._is_collection(entry):
            yield entry.id
        for part in () if alone else self._under.get(entry.id, ()):
            yield from self._members(part)

    def _group(self, entry: Entry) -> str | None:
        return entry.id if self._is_collection(entry) else self._outer(entry)

    def _outer(self, entry: Entry) -> str | None:
        above = self._above(entry)
        if above and self._is_collection(above[0]):
            return above[0].id
        return entry.group


def _quoted(text: str) -> str:
    """A text of somebody else, cut and quoted."""
    return quoted(text if len(text) <= CONTEXT_MAX else f"{text[:CONTEXT_MAX].rstrip()} … (cut)")


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
    return "\n\n".join(filter(None, (title, sections_of(title, sections))))


def sections_of(title: str, sections: Iterable[tuple[str, object]]) -> str:
    """The sections that are not empty, and say more than the title."""
    parts = []
    for heading, value in sections:
        text = text_of(value)
        if text and text != title:
            parts.append(f"{heading}:\n{text}" if heading else text)
    return "\n\n".join(parts)


def _id_of(row: object) -> str:
    return str(row.get("id", "?")) if isinstance(row, dict) else "?"


def each_valid(
    rows: Iterable[tuple[str, _Row]],
    read: Callable[[str, _Row], Iterable[Entry]],
    name_of: Callable[[_Row], str] = _id_of,
) -> tuple[list[Entry], list[LeftOut]]:
    """The entries of every row (its place, its record); a broken one, or a twin, is named."""
    entries: dict[str, Entry] = {}
    left_out: list[LeftOut] = []
    for place, row in rows:
        try:
            made = list(read(place, row))
        except Invalid as error:
            left_out.append(LeftOut(name_of(row), error.message, place, bad=True))
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
