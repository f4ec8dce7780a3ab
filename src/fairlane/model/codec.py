"""Values as JSON and back: records, tuples, tables; and one way to write a document."""

from __future__ import annotations

import json.encoder
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from fairlane.model.record import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def encode(value: object) -> object:
    """A value as JSON has it; fields that have their default are left out."""
    return _encoder(type(value))(value)


def decode(kind: type[T], document: object) -> T:
    """The value of a type that `encode` wrote."""
    value: T = _decode(kind, document)
    return value


def _decode(kind: object, document: Any) -> Any:
    from fractions import Fraction
    from types import UnionType

    origin = get_origin(kind)
    if origin is Union or origin is UnionType:
        if document is None:
            return None
        return _decode(next(arm for arm in get_args(kind) if arm is not type(None)), document)
    if origin is tuple:
        return _tuple(get_args(kind), document)
    if origin is not None and issubclass(origin, dict):
        value_kind = get_args(kind)[1]
        return {key: _decode(value_kind, value) for key, value in document.items()}
    if isinstance(kind, type):
        if _is_record(kind):
            hints = _hints(kind)
            return kind(**{name: _decode(hints[name], value) for name, value in document.items()})
        if hasattr(kind, "_fields"):
            parts = zip(_hints(kind).values(), document, strict=True)
            return kind(*(_decode(part_kind, part) for part_kind, part in parts))
        if issubclass(kind, Enum | Fraction):
            return kind(document)
    return document


def canonical(document: object) -> bytes:
    """One way to write a document: sorted keys, no spaces, UTF-8."""
    return _write(document).encode("utf-8", "surrogatepass")


def digest(data: bytes) -> str:
    """SHA-256 as text: one name for the same bytes."""
    from hashlib import sha256  # not every command needs it

    return sha256(data).hexdigest()


def writer(sort_keys: bool = False) -> Callable[[object], str]:
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


def _find_encoder(kind: type) -> Callable[[Any], object]:
    if issubclass(kind, Enum):
        return attrgetter("value")
    if _is_record(kind):
        return partial(_fields, _defaults(kind))
    if issubclass(kind, dict):
        return lambda value: {str(key): encode(part) for key, part in value.items()}
    if issubclass(kind, tuple | list) and not _is_plain(kind):
        return lambda value: [_encoder(type(part))(part) for part in value]
    return str if kind.__name__ == "Fraction" else lambda value: value


def _is_record(kind: type) -> bool:
    return hasattr(kind, "_fields_here")


#: How values of one type are written; found once, because snapshots hold thousands.
_encoder: Callable[[type], Callable[[Any], object]] = cache(_find_encoder)
#: The types of a class's fields.
_hints: Callable[[object], dict[str, object]] = cache(get_type_hints)


def _fields(defaults: tuple[tuple[str, object], ...], value: object) -> dict[str, object]:
    return {
        name: _encoder(type(part))(part)
        for name, default in defaults
        if (part := getattr(value, name)) != default
    }


def _is_plain(kind: object) -> bool:
    """Whether JSON has everything that a type may hold: such a tuple is written as it is."""
    if kind in (str, int, float, bool, type(None), Ellipsis):
        return True
    parts = _hints(kind).values() if hasattr(kind, "_fields") else get_args(kind)
    return bool(parts) and all(_is_plain(part) for part in parts)


def _tuple(kinds: tuple[object, ...], document: list[object]) -> tuple[object, ...]:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_decode(kinds[0], part) for part in document)
    return tuple(_decode(kind, part) for kind, part in zip(kinds, document, strict=True))


def _defaults(kind: Any) -> tuple[tuple[str, object], ...]:
    """Field names with their defaults; a mapping or tuple made anew counts as empty."""
    return tuple(
        (name, part.default_factory() if part.is_made else part.default)
        for name, part in fields_of(kind).items()
        if part.init
    )
