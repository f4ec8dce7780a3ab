"""Frozen values whose parts are typed already, made and changed without checking them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Layout(NamedTuple):
    """The fields of a frozen class with slots, in order."""

    places: dict[str, int]
    blank: list[Any]  # what they are when nothing is said
    read: Callable[[Any], list[Any]]
    make: Callable[[Iterable[Any]], Any]  # a value from all its fields, in order


def _layout(kind: Any) -> Layout:
    found = fields(kind)
    names = [each.name for each in found]
    blank = [
        each.default_factory() if each.default_factory is not MISSING else each.default
        for each in found
    ]
    places = {name: place for place, name in enumerate(names)}
    return Layout(places, blank, *_quick(kind, names))


#: How values of a class are laid out.
layout: Callable[[Any], Layout] = cache(_layout)


def _quick(kind: Any, names: list[str]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Reads all fields, and sets those of a twin that is not frozen yet, in one statement each."""
    parts = ", ".join(f"value.{name}" for name in names)
    source = f"""
def read(value):
    return [{parts}]

def make(row):
    value = Twin()
    {parts}, = row
    value.__class__ = kind
    return value
"""
    twin = type(f"{kind.__name__}InTheMaking", (), {"__slots__": kind.__slots__})
    known: dict[str, Any] = {"Twin": twin, "kind": kind}
    exec(source, known)
    return known["read"], known["make"]


def filled(kind: type[T], row: Iterable[Any]) -> T:
    """A value from all its fields, in order."""
    found: T = layout(kind).make(row)
    return found


def changed(value: T, /, **changes: Any) -> T:
    """The same value with some fields changed."""
    places, _, read, make = layout(type(value))
    row = read(value)
    for name, held in changes.items():
        row[places[name]] = held
    found: T = make(row)
    return found
