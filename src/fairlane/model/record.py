"""Dataclasses that are made quickly, and quick ways to fill and change them.

The standard decorator writes and compiles six functions for every class, which a command pays
before it does anything; its module alone takes five milliseconds. Here `__init__` is written when
a class is used often; the rest is shared by all classes. What type checkers, `fields`, `replace`
and `asdict` see is the same.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeVar

if TYPE_CHECKING:
    import dataclasses
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass, field, replace
    from typing import NamedTuple
else:

    class _NamedTuples(type):
        """Makes named tuples; the standard one also compiles the type of every field."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            kinds = body["__annotations__"]
            defaults = [body[each] for each in kinds if each in body]
            made = namedtuple(name, kinds, defaults=defaults, module=body["__module__"])
            for key, value in body.items():
                if key not in kinds:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_NamedTuples):
        """As the standard one."""

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
        for name, part in fields_of(type(value)).items():
            if part.init:
                changes.setdefault(name, getattr(value, name))
            elif name in changes:
                raise ValueError(f"{name} is set by the class itself, and cannot be replaced")
        return type(value)(**changes)


__all__ = ["NamedTuple", "changed", "dataclass", "field", "filled", "layout", "names", "replace"]

T = TypeVar("T")
#: No default.
_NONE: Any = object()
#: So many values are filled field by field before `__init__` is written.
_FEW = 2


class _Field:
    """What a class says of one of its fields."""

    __slots__ = ("compare", "default", "default_factory", "init", "kw_only", "repr")

    def __init__(
        self,
        *,
        default: Any = _NONE,
        default_factory: Any = _NONE,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
        kw_only: bool = False,
    ) -> None:
        self.default, self.default_factory = default, default_factory
        self.init, self.repr, self.compare, self.kw_only = init, repr, compare, kw_only

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
        field.kw_only = self.kw_only
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
    own = {name: _field_in(name, body) for name in body.get("__annotations__", {})}
    by_name = _gathered(cls, "_fields_here") | own
    compared = tuple(name for name, part in by_name.items() if part.compare)
    shared = _SHARED if frozen else _SHARED_LOOSE
    body |= {name: value for name, value in shared.items() if name not in body}
    body |= {
        "__slots__": tuple(own),
        "__match_args__": tuple(
            name for name, part in by_name.items() if part.init and not part.kw_only
        ),
        "__dataclass_fields__": _StandardFields(),
        "__init__": _LateInit(),
        "_fields_here": by_name,
        "_compared": staticmethod(_reader(compared)),
    }
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _gathered(cls: type, table: str) -> dict[str, Any]:
    """A table of a class with those of the classes below it."""
    rows = (vars(each).get(table, {}).items() for each in reversed(cls.__mro__))
    return {name: value for row in rows for name, value in row}


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


def fields_of(kind: Any) -> dict[str, _Field]:
    """The fields of a class that was made here."""
    found: dict[str, _Field] = kind._fields_here
    return found


def names(kind: type) -> tuple[str, ...]:
    """The names of a class's fields, in order."""
    return tuple(fields_of(kind))


class _StandardFields:
    """What the functions of the standard module read, made when one of them asks first."""

    def __get__(self, value: object, kind: Any) -> dict[str, dataclasses.Field[Any]]:
        kinds = _gathered(kind, "__annotations__")
        made = {name: part.standard(name, kinds[name]) for name, part in fields_of(kind).items()}
        kind.__dataclass_fields__ = made
        return made


class _LateInit:
    """`__init__`, which is written when a class is used often: most have one value in a command."""

    def __init__(self) -> None:
        self._values = 0  # how many were made without it

    def __get__(self, value: object, kind: type) -> Callable[..., None]:
        if value is not None and self._values < _FEW:
            self._values += 1
            return partial(_fill, self, value)
        written: Callable[..., None] = self.written(kind)
        return written if value is None else partial(written, value)

    def written(self, kind: Any) -> Any:
        """The function, which takes this one's place."""
        owner: Any
        for owner in kind.__mro__:
            if vars(owner).get("__init__") is self:  # no other thread was quicker
                owner.__init__ = _init(owner)
        return kind.__init__


def _fill(late: _LateInit, self: Any, /, *given: object, **named: object) -> None:
    """Does what `__init__` does; what is wrong with a call, that says."""
    values = dict(zip(self.__match_args__, given, strict=False))
    if len(values) < len(given) or values.keys() & named.keys():
        late.written(type(self))(self, *given, **named)
    values |= named
    for name, part in fields_of(self).items():
        if part.init and name in values:
            value = values.pop(name)
        elif part.is_made or part.default is not _NONE:
            value = part.default_factory() if part.is_made else part.default
        elif part.init:
            late.written(type(self))(self, *given, **named)
        else:
            continue  # set after the rest, by the class itself
        object.__setattr__(self, name, value)
    if values:
        late.written(type(self))(self, *given, **named)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _init(cls: Any) -> Callable[..., None]:
    """The one function that is written for every class."""
    space: dict[str, Any] = {"put": object.__setattr__, "NONE": _NONE}
    frozen = cls.__setattr__ is not object.__setattr__
    takes, named, lines = ["self"], ["*"], []
    for name, part in fields_of(cls).items():
        default, made = f"default_{name}", part.is_made
        if made or part.default is not _NONE:
            space[default] = part.default_factory if made else part.default
        value = f"{default}()" if made else default
        if part.init:
            taken = f"{name}={'NONE' if made else default}" if default in space else name
            (named if part.kw_only else takes).append(taken)
            value = f"{value} if {name} is NONE else {name}" if made else name
        elif default not in space:
            continue  # set after the rest, by the class itself
        lines.append(
            f"    put(self, '{name}', {value})" if frozen else f"    self.{name} = {value}"
        )
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    takes += named if len(named) > 1 else []
    exec(f"def __init__({', '.join(takes)}):\n" + "\n".join(lines or ["    pass"]), space)
    init: Callable[..., None] = space["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _reader(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    if not names:
        return lambda _: ()
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda value: (read(value),)


def _repr(self: _Record) -> str:
    shown = (name for name, part in fields_of(self).items() if part.repr)
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
    return [getattr(self, name, _UNSET) for name in fields_of(self)]


def _set_state(self: _Record, state: list[object]) -> None:
    for name, value in zip(fields_of(self), state, strict=True):
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
    by_name = fields_of(kind)
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
