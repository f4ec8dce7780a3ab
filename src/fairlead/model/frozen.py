"""Frozen values whose parts are typed already, made and changed without checking them again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import cache
from itertools import repeat
from operator import attrgetter, call
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Layout(NamedTuple):
    """The fields of a frozen class with slots, in order."""

    places: dict[str, int]
    blank: list[Any]  # what they are when nothing is said
    read: Callable[[Any], tuple[Any, ...]]
    setters: list[Callable[[Any, Any], None]]


def _layout(kind: Any) -> Layout:
    found = fields(kind)
    names = [each.name for each in found]
    blank = [
        each.default_factory() if each.default_factory is not MISSING else each.default
        for each in found
    ]
    setters = [kind.__dict__[name].__set__ for name in names]
    places = {name: place for place, name in enumerate(names)}
    return Layout(places, blank, attrgetter(*names), setters)


#: How values of a class are laid out.
layout: Callable[[Any], Layout] = cache(_layout)


def filled(kind: type[T], row: list[Any]) -> T:
    """A value from all its fields, in order."""
    value = object.__new__(kind)
    deque(map(call, layout(kind).setters, repeat(value), row), maxlen=0)
    return value


def changed(value: T, /, **changes: Any) -> T:
    """The same value with some fields changed."""
    kind = type(value)
    places, _, read, setters = layout(kind)
    row = list(read(value))
    for name, held in changes.items():
        row[places[name]] = held
    found = object.__new__(kind)
    deque(map(call, setters, repeat(found), row), maxlen=0)
    return found
