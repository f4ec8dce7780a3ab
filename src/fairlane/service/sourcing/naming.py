"""Names: what the tasks of items are called where the source's own ids are no names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256

from fairlane.intake.sources.base import Item
from fairlane.model.names import is_name
from fairlane.service.sourcing.remembered import Entry

_LENGTH_MAX = 100  # leaves room for what tells two apart


def task_ids(items: Iterable[Item], entries: Mapping[str, Entry]) -> dict[str, str]:
    """Item -> task: as before, as the source calls it, or as near to that as a name can be."""
    found = {item: str(entry["task"]) for item, entry in entries.items()}
    taken = set(found.values())
    new = [item for item in items if item.id not in found]
    for item in sorted(new, key=lambda item: not is_name(_wanted(item))):  # proper names first
        name = name_for(_wanted(item))
        if name in taken:
            name = f"{name[:_LENGTH_MAX]}-{_mark(item.id)}"
        taken.add(name)
        found[item.id] = name
    return found


def name_for(text: str) -> str:
    """A name as near to a text as can be; the same each time."""
    if is_name(text):
        return text
    name = re.sub(r"[^A-Za-z0-9._-]+|\.\.+", "-", text).lstrip("._-").rstrip("._-")
    name = name.removesuffix(".lock")
    if len(name) > _LENGTH_MAX:
        name = f"{name[:_LENGTH_MAX].rstrip('.')}-{_mark(text)}"
    return name if is_name(name) else f"item-{_mark(text)}"


def _wanted(item: Item) -> str:
    given = item.record.get("id")
    return given if isinstance(given, str) and given else item.id


def _mark(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
