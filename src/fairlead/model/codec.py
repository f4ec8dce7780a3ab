"""Values to documents and back: what is recorded is planned again from, byte for byte."""

from __future__ import annotations

import json
import types
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints


def encode(value: Any) -> Any:
    """A value as JSON has it; fields that have their default are left out."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            name: encode(held)
            for name, default in _defaults(type(value))
            if (held := getattr(value, name)) != default
        }
    if isinstance(value, dict):
        return {str(key): encode(held) for key, held in value.items()}
    if isinstance(value, tuple | list):
        return [encode(held) for held in value]
    return value


def decode(kind: Any, document: Any) -> Any:
    """The value of a type that `encode` wrote."""
    origin = get_origin(kind)
    if origin is Union or origin is types.UnionType:
        if document is None:
            return None
        return decode(next(each for each in get_args(kind) if each is not type(None)), document)
    if origin is tuple:
        return _tuple(get_args(kind), document)
    if origin is not None and issubclass(origin, dict):
        held = get_args(kind)[1]
        return {key: decode(held, each) for key, each in document.items()}
    if isinstance(kind, type):
        if is_dataclass(kind):
            hints = _hints(kind)
            return kind(**{name: decode(hints[name], each) for name, each in document.items()})
        if hasattr(kind, "_fields"):
            parts = zip(_hints(kind).values(), document, strict=True)
            return kind(*(decode(each, part) for each, part in parts))
        if issubclass(kind, Enum | Fraction):
            return kind(document)
    return document


def canonical(document: Any) -> bytes:
    """One way to write a document: sorted keys, no spaces, UTF-8."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _tuple(parts: tuple[Any, ...], document: list[Any]) -> tuple[Any, ...]:
    if len(parts) == 2 and parts[1] is Ellipsis:
        return tuple(decode(parts[0], each) for each in document)
    return tuple(decode(kind, each) for kind, each in zip(parts, document, strict=True))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    """Field names with their defaults; a mapping or tuple made anew counts as empty."""
    found = []
    for each in fields(kind):
        if not each.init:
            continue
        default = each.default
        if each.default_factory is not MISSING:
            default = each.default_factory()
        found.append((each.name, default))
    return tuple(found)
