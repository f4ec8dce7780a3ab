"""What is remembered of a source: which item is which task, and what the source last said of it."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Any, TypeAlias

from fairlane.intake.sources.base import Where
from fairlane.model.codec import canonical, encode
from fairlane.store.base import Reading, Writing

#: `task`: its id; `fields`: a digest of each value that the source gave; `away`: why its task was
#: canceled on the source's account (`closed`, `undone`), so that it may come again; `forced`: it
#: was wanted though somebody works on it; `failures`: those that the source counted.
Entry: TypeAlias = dict[str, Any]

#: How many imports can be undone.
IMPORTS_KEPT = 100


def source_key(source: str, where: Where) -> str:
    """How a source is known again, wherever it is asked from."""
    path = "-" if where.path is None else os.path.abspath(where.path)  # noqa: PTH100 - links stay
    if where.command is None:
        return f"{source}:{path}"
    command = " ".join(where.command)
    return f"{source}:{command}" if where.path is None else f"{source}:{path} {command}"


def seen(reading: Reading, key: str) -> dict[str, Entry]:
    """The items of a source that have a task, by the source's ids."""
    found = entries(reading, key)
    return {item: entry for item, entry in found.items() if "away" not in entry}


def entries(reading: Reading, key: str) -> dict[str, Entry]:
    """Everything that is remembered of a source."""
    found: dict[str, Entry] | None = reading.value(f"source:{key}")
    return found or {}


def remember(tx: Writing, key: str, found: dict[str, Entry]) -> None:
    """Keep it, if it is other than it was."""
    if found != entries(tx, key):
        tx.put_value(f"source:{key}", found or None)


def keep_import(tx: Writing, source: str, where: Where, key: str, items: dict[str, str]) -> int:
    """The number of an import, by which it can be undone; `items`: what it created."""
    number = tx.number("import")
    held = {"source": source, "path": where.name, "key": key, "items": items}
    tx.put_value(f"import:{number}", held)
    tx.put_value("import", number)
    if number > IMPORTS_KEPT:
        tx.put_value(f"import:{number - IMPORTS_KEPT}", None)
    return number


def digest(value: Any) -> str:
    """What tells one value from another; prompts are long."""
    return sha256(canonical(encode(value))).hexdigest()[:12]
