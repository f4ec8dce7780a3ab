"""Which items of a source are meant: those that were named, or all that are open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlane.intake.sources.base import Collection, Found, Item, LeftOut, Standing
from fairlane.model.errors import Invalid, NotFound, Refused, did_you_mean
from fairlane.model.record import replace
from fairlane.service.sync.mapping import Entry

#: How many bad records an error names.
SHOWN = 5


def choose(
    content: Found, ids: tuple[str, ...], force: bool, entries: Mapping[str, Entry]
) -> tuple[list[Item], list[LeftOut]]:
    """The items that are to be tasks, and what is left out with its reason."""
    items = {item.id: item for item in content.items}
    left_out = list(content.left_out)
    if ids:
        wanted, empty = _named(content, items, left_out, ids)
        items = {name: item for name, item in items.items() if name in wanted}
        left_out = [*(skipped for skipped in left_out if skipped.id in wanted), *empty]
    chosen = []
    for item in items.values():
        entry = entries.get(item.id)
        known = entry is not None and "away" not in entry
        if item.unasked and not (ids or known):
            left_out.append(LeftOut(item.id, item.unasked, item.where))
            continue
        if item.standing is Standing.OPEN or (item.standing is Standing.TAKEN and (known or force)):
            chosen.append(item)
        else:
            left_out.append(LeftOut(item.id, _why(item), item.where))
    return chosen, left_out


def once(content: Found) -> Found:
    """The same, with every item once: the first of an id counts."""
    items: dict[str, Item] = {}
    twice = []
    for item in content.items:
        if items.setdefault(item.id, item) is not item:
            reason = f"{item.id} appears twice; the first counts"
            twice.append(LeftOut(item.id, reason, item.where, bad=True))
    if not twice:
        return content
    return replace(content, items=tuple(items.values()), left_out=(*content.left_out, *twice))


def refuse_bad(left_out: Iterable[LeftOut]) -> None:
    """`--strict`: one bad record refuses all."""
    bad = [record for record in left_out if record.bad]
    if bad:
        reasons = "; ".join(
            f"{record.where or record.id}: {record.reason}" for record in bad[:SHOWN]
        )
        more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        message = f"{len(bad)} bad record{'s' if len(bad) > 1 else ''}: {reasons}{more}"
        hint = "Nothing was imported. Mend them, or leave --strict out."
        raise Invalid(message, hint, code="bad_records")


def under(collections: Iterable[Collection], top: str) -> set[str]:
    """A collection and all those under it."""
    known = list(collections)
    inside = {top}
    while more := {collection.id for collection in known if collection.parent in inside} - inside:
        inside |= more
    return inside


def _named(
    content: Found, items: Mapping[str, Item], left_out: Iterable[LeftOut], ids: tuple[str, ...]
) -> tuple[set[str], list[LeftOut]]:
    """The items of these ids; a collection means its members that are not closed."""
    collections = {item.id for item in content.collections}
    known = {*items, *collections, *(item.id for item in left_out)}
    wanted: set[str] = set()
    empty = []
    for name in ids:
        if name not in known:
            message = f"there is no item {name!r} in the source"
            raise NotFound(message, did_you_mean(name, known), code="unknown_item")
        if name in collections:
            inside = under(content.collections, name)
            members = {
                item.id
                for item in items.values()
                if inside.intersection((item.group, *item.also))
                and item.standing is not Standing.CLOSED
            }
            wanted |= members
            wanted |= {skipped.id for skipped in left_out if inside.intersection(skipped.also)}
            if not members:
                empty.append(LeftOut(name, "it has no open items"))
        elif name in items and items[name].standing is Standing.CLOSED:
            hint = "Open it in its source first."
            raise Refused(f"{name} is closed: {_why(items[name])}", hint, code="closed_item")
        else:
            wanted.add(name)
    return wanted, empty


def _why(item: Item) -> str:
    if item.standing is Standing.CLOSED:
        return item.why or "it is closed"
    return f"{item.why or 'somebody works on it'}; --force imports it"
