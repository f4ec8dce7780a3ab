"""Values to documents and back: what is recorded is planned again from, byte for byte."""

from __future__ import annotations

import json.encoder
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from operator import attrgetter
from typing import Any, Union, get_args, get_origin, get_type_hints


def encode(value: Any) -> Any:
    """A value as JSON has it; fields that have their default are left out."""
    return _encoder(type(value))(value)


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
    return _write(document).encode("utf-8", "surrogatepass")


def writer(sort_keys: bool = False) -> Callable[[Any], str]:
    """JSON without spaces, by an encoder that is made once and not for every call."""
    plain = json.JSONEncoder(
        sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=False, check_circular=False
    )
    make = getattr(json.encoder, "c_make_encoder", None)
    text = getattr(json.encoder, "encode_basestring", None)
    if make is None or text is None:
        return plain.encode
    quick = make(None, plain.default, text, None, ":", ",", sort_keys, False, True)
    return lambda document: "".join(quick(document, 0))


_write = writer(sort_keys=True)


def _find_encoder(kind: Any) -> Callable[[Any], Any]:
    if issubclass(kind, Enum):
        return attrgetter("value")
    if issubclass(kind, Fraction):
        return str
    if is_dataclass(kind):
        return partial(_fields, _defaults(kind))
    if issubclass(kind, dict):
        return lambda value: {str(key): encode(held) for key, held in value.items()}
    if issubclass(kind, tuple | list) and not _is_plain(kind):
        return lambda value: [_encoder(type(held))(held) for held in value]
    return lambda value: value


#: How values of one type are written; found once, because snapshots hold thousands.
_encoder: Callable[[Any], Callable[[Any], Any]] = cache(_find_encoder)


def _fields(defaults: tuple[tuple[str, Any], ...], value: Any) -> dict[str, Any]:
    return {
        name: _encoder(type(held))(held)
        for name, default in defaults
        if (held := getattr(value, name)) != default
    }


def _is_plain(kind: Any) -> bool:
    """Whether JSON has everything that a type may hold: such a tuple is written as it is."""
    if kind in (str, int, float, bool, type(None), Ellipsis):
        return True
    if hasattr(kind, "_fields"):
        return all(_is_plain(each) for each in _hints(kind).values())
    return bool(get_args(kind)) and all(_is_plain(each) for each in get_args(kind))


def _tuple(parts: tuple[Any, ...], document: list[Any]) -> tuple[Any, ...]:
    if len(parts) == 2 and parts[1] is Ellipsis:
        return tuple(decode(parts[0], each) for each in document)
    return tuple(decode(kind, each) for kind, each in zip(parts, document, strict=True))


#: The types of a class's fields.
_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
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
