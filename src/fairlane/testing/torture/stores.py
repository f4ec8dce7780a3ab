"""The stores that are tortured: a name, and how each process opens a handle of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from fairlane.store.base import Store
from fairlane.store.memory.store import MemoryStore
from fairlane.store.sqlite.store import SqliteStore

#: Gives one more handle on the same store, as a process of its own has one.
Open = Callable[[], Store]
#: Makes an empty store in a folder, and says how it is opened.
Make = Callable[[Path], Open]


def memory(folder: Path) -> Open:
    """In memory: every handle sees the same."""
    del folder  # nothing is written there
    first = MemoryStore()
    return lambda: MemoryStore(beside=first)


def sqlite(folder: Path) -> Open:
    """One file, one connection for each process."""
    file = folder / "fairlane.db"
    SqliteStore.open(file, say=_nothing).close()
    return lambda: SqliteStore.open(file, say=_nothing)


def _nothing(message: str) -> None:
    """What a store says to people of its making is of no interest here."""


#: By name; a store of others is added here, or given to `torture` itself.
STORES: Mapping[str, Make] = MappingProxyType({"memory": memory, "sqlite": sqlite})
