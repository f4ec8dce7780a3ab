"""Kinds by labels: what the settings of a source say its labels mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlane.engine.context import Context
from fairlane.intake.outline import list_of
from fairlane.intake.sources.base import Found, Item, Where
from fairlane.model.record import replace


def with_kinds(content: Found, kinds: Mapping[str, str]) -> Found:
    """What was found, with a kind for each item that has none and has one of these labels."""
    if not kinds:
        return content
    folded = {label.casefold(): kind for label, kind in kinds.items()}
    return replace(content, items=tuple(_item(item, folded) for item in content.items))


def kinds_for(context: Context, source: str, where: Where) -> Mapping[str, str]:
    """The table for an import: of the source with the same path, else the first of its type."""
    rules = [rule for rule in context.settings.source if rule.type == source]
    same = [
        rule
        for rule in rules
        if where.path is not None
        and rule.path is not None
        and where.path.absolute() == (context.home / Path(rule.path).expanduser()).absolute()
    ]
    return next((rule.kinds for rule in same or rules if rule.kinds), {})


def _item(item: Item, kinds: Mapping[str, str]) -> Item:
    meta = item.record.get("meta")
    labels = [*list_of(item.record, "labels")]
    labels += list_of(meta, "labels") if isinstance(meta, Mapping) else []
    kind = next((kinds[name] for label in labels if (name := str(label).casefold()) in kinds), None)
    if kind is None or "kind" in item.record:
        return item
    return replace(item, record={**item.record, "kind": kind})
