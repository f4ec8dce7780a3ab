"""Dataclasses that are made quickly, and quick ways to fill and change them.

The standard decorator writes and compiles six functions for every class, which a command pays
before it does anything; its module alone takes five milliseconds. Here `__init__` is written when
the first value is made; the rest is shared by all classes. What type checkers, `fields`, `replace`
and `asdict` see is the same.
"""

from __future__ import annotations

import json.encoder
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NamedTuple,
    NoReturn,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    import dataclasses
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass, field, replace
else:

    def dataclass(*, frozen: bool = False, slots: bool = False) -> Callable[[type], type]:
        """As the standard one; classes with slots are made here."""
        if slots:
            return partial(_record, frozen=frozen)
        import dataclasses

        return dataclasses.dataclass(frozen=frozen)

    def field(**settings: Any) -> Any:
        """As the standard one, for the classes that are made here."""
        return _Field(**settings)

    def replace(value: Any, /, **changes: object) -> Any:
        """As the standard one: made anew, so that it is checked again."""
        for name, part in _fields_of(type(value)).items():
            if part.init:
                changes.setdefault(name, getattr(value, name))
            elif name in changes:
                raise ValueError(f"{name} is set by the class itself, and cannot be replaced")
        return type(value)(**changes)


__all__ = ["changed", "dataclass", "field", "filled", "layout", "names", "replace"]

T = TypeVar("T")
#: No default.
_NONE: Any = object()


class _Field:
    """What a class says of one of its fields."""

    __slots__ = ("compare", "default", "default_factory", "init", "repr")

    def __init__(
        self,
        *,
        default: Any = _NONE,
        default_factory: Any = _NONE,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
    ) -> None:
        self.default, self.default_factory = default, default_factory
        self.init, self.repr, self.compare = init, repr, compare

    @property
    def is_made(self) -> bool:
        """Whether each value gets a default of its own."""
        return self.default_factory is not _NONE

    def standard(self, name: str, kind: object) -> dataclasses.Field[Any]:
        """The same as the standard module has it."""
        import dataclasses

        how: dict[str, Any] = {"init": self.init, "repr": self.repr, "compare": self.compare}
        if self.is_made:
            how["default_factory"] = self.default_factory
        elif self.default is not _NONE:
            how["default"] = self.default
        field: dataclasses.Field[Any] = dataclasses.field(**how)
        sort = vars(dataclasses)["_FIELD"]  # what tells a field from other annotations
        for attribute, value in (("name", name), ("type", kind), ("_field_type", sort)):
            setattr(field, attribute, value)
        field.kw_only = False
        return field


class _Record(Protocol):
    """What the functions below use of a record."""

    _fields_here: ClassVar[dict[str, _Field]]
    __slots__: tuple[str, ...]

    @staticmethod
    def _compared(value: object) -> tuple[object, ...]: ...


def _record(cls: type, frozen: bool) -> type:
    """The class with slots, and what all such classes have."""
    body = {name: value for name, value in vars(cls).items() if name not in _NOT_COPIED}
    by_name = {name: _field_in(name, body) for name in body.get("__annotations__", {})}
    compared = tuple(name for name, part in by_name.items() if part.compare)
    shared = _SHARED if frozen else _SHARED_LOOSE
    body |= {name: value for name, value in shared.items() if name not in body}
    body |= {
        "__slots__": tuple(by_name),
        "__match_args__": tuple(name for name, part in by_name.items() if part.init),
        "__dataclass_fields__": _STANDARD,
        "__init__": _INIT,
        "_fields_here": by_name,
        "_compared": staticmethod(_reader(compared)),
    }
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _field_in(name: str, body: dict[str, Any]) -> _Field:
    """A field; its default leaves the body."""
    said = body.pop(name, _NONE)
    if hasattr(said, "default_factory") and not isinstance(said, _Field):
        raise TypeError(
            f"{name}: a field of the standard module; take it from fairlane.model.record"
        )
    field = said if isinstance(said, _Field) else _Field(default=said)
    if field.default.__class__.__hash__ is None:
        raise ValueError(f"mutable default {said!r} of {name}: give a default_factory")
    return field


def _fields_of(kind: Any) -> dict[str, _Field]:
    """The fields of a class that was made here."""
    found: dict[str, _Field] = kind._fields_here
    return found


def names(kind: type) -> tuple[str, ...]:
    """The names of a class's fields, in order."""
    return tuple(_fields_of(kind))


class _MadeLate:
    """An attribute of a class that is made when somebody asks for it first."""

    def __init__(self, name: str, make: Callable[[Any], object]) -> None:
        self._name, self._make = name, make

    def __get__(self, value: object, kind: Any) -> object:
        owner = next(each for each in kind.__mro__ if vars(each).get(self._name) is self)
        setattr(owner, self._name, self._make(owner))
        return getattr(kind if value is None else value, self._name)


def _init(cls: Any) -> Callable[..., None]:
    """The one function that is written for every class."""
    space: dict[str, Any] = {"put": object.__setattr__, "NONE": _NONE}
    takes, lines = ["self"], []
    for name, part in _fields_of(cls).items():
        default, made = f"default_{name}", part.is_made
        if made or part.default is not _NONE:
            space[default] = part.default_factory if made else part.default
        value = f"{default}()" if made else default
        if part.init:
            takes.append(f"{name}={'NONE' if made else default}" if default in space else name)
            value = f"{value} if {name} is NONE else {name}" if made else name
        elif default not in space:
            continue  # set after the rest, by the class itself
        lines.append(f"    put(self, '{name}', {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    exec(f"def __init__({', '.join(takes)}):\n" + "\n".join(lines or ["    pass"]), space)
    init: Callable[..., None] = space["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _standard_fields(cls: Any) -> dict[str, dataclasses.Field[Any]]:
    kinds = cls.__annotations__
    return {name: part.standard(name, kinds[name]) for name, part in _fields_of(cls).items()}


_INIT = _MadeLate("__init__", _init)
_STANDARD = _MadeLate("__dataclass_fields__", _standard_fields)


def _reader(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    if not names:
        return lambda _: ()
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda value: (read(value),)


def _repr(self: _Record) -> str:
    shown = (name for name, part in _fields_of(self).items() if part.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _eq(self: _Record, other: _Record) -> object:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == other._compared(other)


def _hash(self: _Record) -> int:
    return hash(self._compared(self))


def _no_change(self: _Record, name: str, value: object = None) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot change field {name!r}")


def _get_state(self: _Record) -> list[object]:
    return [getattr(self, name, _UNSET) for name in self.__slots__]


def _set_state(self: _Record, state: list[object]) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        if value != _UNSET:
            object.__setattr__(self, name, value)


#: In the state of a value: this field is not set.
_UNSET = ("fairlane", "unset")
_NOT_COPIED = ("__dict__", "__weakref__")
_SHARED_LOOSE = {"__repr__": _repr, "__eq__": _eq, "__hash__": None}
_SHARED = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _no_change,
    "__delattr__": _no_change,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}


class Layout(NamedTuple):
    """The fields of a frozen class with slots, in order."""

    places: dict[str, int]
    blank: list[Any]  # their defaults
    read: Callable[[object], list[Any]]
    make: Callable[[Iterable[object]], Any]  # a value from all its fields, in order


def _layout(kind: type[_Record]) -> Layout:
    by_name = _fields_of(kind)
    blank = [part.default_factory() if part.is_made else part.default for part in by_name.values()]
    places = {name: place for place, name in enumerate(by_name)}
    return Layout(places, blank, *_quick(kind, list(by_name)))


#: How values of a class are laid out.
layout: Callable[[type], Layout] = cache(_layout)


def _quick(
    kind: type[_Record], names: list[str]
) -> tuple[Callable[[object], list[Any]], Callable[[Iterable[object]], Any]]:
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
    space: dict[str, Any] = {"Twin": twin, "kind": kind}
    exec(source, space)
    return space["read"], space["make"]


def filled(kind: type[T], row: Iterable[object]) -> T:
    """A value from all its fields, in order; they are not checked again."""
    value: T = layout(kind).make(row)
    return value


def changed(value: T, /, **changes: object) -> T:
    """The same value with some fields changed; they are not checked again."""
    places, _, read, make = layout(type(value))
    row = read(value)
    for name, part in changes.items():
        row[places[name]] = part
    after: T = make(row)
    return after


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
        for name, part in _fields_of(kind).items()
        if part.init
    )
