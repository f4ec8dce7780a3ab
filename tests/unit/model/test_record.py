"""Records are what the standard frozen dataclasses with slots are."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
from dataclasses import FrozenInstanceError

import pytest

from fairlane.model.record import NamedTuple, dataclass, field, names, replace


@dataclass(frozen=True, slots=True)
class Pair:
    """Two."""

    a: int
    b: str = "x"

    @property
    def both(self) -> str:
        return f"{self.a}{self.b}"


@dataclass(frozen=True, slots=True)
class Many:
    """All that fields can be."""

    secret: str = field(repr=False)
    seen: int = field(default=0, compare=False)
    items: list[int] = field(default_factory=list)
    total: int = field(init=False, repr=False, compare=False)
    later: list[int] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", sum(self.items))


@dataclass(frozen=True, slots=True)
class Nothing:
    """No comparable field but one."""

    only: int = 1


def twin(cls):
    """The same class by the standard decorator."""
    body = {
        name: value
        for name, value in vars(cls).items()
        if name in ("__annotations__", "__doc__", "__post_init__", "__module__", "both")
    }
    for each in dataclasses.fields(cls):
        factory = each.default_factory is not dataclasses.MISSING
        default = (
            {"default_factory": each.default_factory} if factory else {"default": each.default}
        )
        body[each.name] = dataclasses.field(
            init=each.init, repr=each.repr, compare=each.compare, **default
        )
    made = type(cls.__name__, (), body)
    return dataclasses.dataclass(frozen=True, slots=True)(made)


@pytest.mark.parametrize(
    ("cls", "words"),
    [(Pair, {"a": 1}), (Pair, {"a": 2, "b": "y"}), (Many, {"secret": "s", "items": [1, 2]}),
     (Nothing, {})],
)  # fmt: skip
def test_a_record_is_like_its_twin(cls, words):
    other = twin(cls)
    mine, standard = cls(**words), other(**words)
    assert repr(mine) == repr(standard)
    assert dataclasses.asdict(mine) == dataclasses.asdict(standard)
    assert cls.__match_args__ == other.__match_args__
    names = [each.name for each in dataclasses.fields(cls)]
    assert names == [each.name for each in dataclasses.fields(other)]
    assert list(inspect.signature(cls).parameters) == list(inspect.signature(other).parameters)
    assert dataclasses.is_dataclass(cls)
    assert not hasattr(mine, "__dict__")


def test_equality_hash_and_order_of_arguments():
    assert Pair(1, "y") == Pair(b="y", a=1)
    assert hash(Pair(1)) == hash(Pair(1, "x"))
    assert Pair(1) != Pair(2)
    assert Pair(1).__eq__((1, "x")) is NotImplemented
    assert Many("s", seen=1) == Many("s", seen=2)
    assert {Pair(1), Pair(1)} == {Pair(1)}
    assert Pair(3).both == "3x"


def test_nothing_changes():
    pair = Pair(1)
    for change in (
        lambda: setattr(pair, "a", 2),
        lambda: delattr(pair, "a"),
        lambda: setattr(pair, "c", 1),
    ):
        with pytest.raises(FrozenInstanceError):
            change()


def test_copies():
    many = Many("s", items=[1])
    assert dataclasses.replace(many, secret="t").items == [1]
    for copied in (copy.copy(many), copy.deepcopy(many), pickle.loads(pickle.dumps(many))):
        assert copied == many
        assert copied.total == 1
    with pytest.raises(ValueError, match="total"):
        dataclasses.replace(many, total=3)


def test_wrong_calls_and_wrong_classes():
    with pytest.raises(TypeError, match=r"Pair.__init__\(\) missing 1 required"):
        Pair()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword"):
        Pair(1, c=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="mutable default"):

        @dataclass(frozen=True, slots=True)
        class Wrong:
            a: list[int] = []  # noqa: RUF012

    with pytest.raises(TypeError, match="b: a field of the standard module"):

        @dataclass(frozen=True, slots=True)
        class Foreign:
            b: int = dataclasses.field(default=1)


def test_a_class_that_is_not_frozen():
    @dataclass(slots=True)
    class Loose:
        a: int = 1

    loose = Loose()
    loose.a = 2
    assert loose == Loose(2)
    assert copy.copy(loose) == dataclasses.replace(Loose(), a=2) == replace(Loose(), a=2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(loose)


def test_a_class_takes_over_the_fields_of_another():
    @dataclass(slots=True)
    class Base:
        a: int
        b: int = 2

    @dataclass(slots=True)
    class Above(Base):
        b: int = 3
        c: int = field(kw_only=True)

    for _ in range(4):  # before `__init__` is written, and after
        above = Above(1, c=4)
        assert (above.a, above.b, above.c) == (1, 3, 4)
    with pytest.raises(TypeError, match="c"):
        Above(1, 3, 4)  # type: ignore[call-arg]
    assert repr(above).endswith("Above(a=1, b=3, c=4)")
    assert [each.name for each in dataclasses.fields(above)] == ["a", "b", "c"]
    assert above != Base(1)


def test_replace_and_names():
    many = Many("s", items=[1])
    assert replace(many, items=[1, 2]).total == 3
    assert names(Many) == ("secret", "seen", "items", "total", "later")
    with pytest.raises(ValueError, match="total"):
        replace(many, total=3)


class Spot(NamedTuple):
    """A place."""

    x: int
    y: int | None = None
    tags: tuple[str, ...] = ()

    @property
    def is_flat(self) -> bool:
        return self.y is None


def test_a_named_tuple():
    spot = Spot(1, tags=("a",))
    assert tuple(spot) == (1, None, ("a",))
    assert spot == Spot(x=1, y=None, tags=("a",))
    assert repr(spot) == "Spot(x=1, y=None, tags=('a',))"
    assert spot.is_flat
    assert Spot.__doc__ == "A place."
    assert Spot._fields == ("x", "y", "tags")
    assert Spot._field_defaults == {"y": None, "tags": ()}
    assert typing.get_type_hints(Spot)["y"] == int | None
    assert pickle.loads(pickle.dumps(spot)) == spot == copy.copy(spot)
    assert tuple(spot._replace(y=2)) == (1, 2, ("a",))
    with pytest.raises(TypeError, match="required positional argument"):
        Spot()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        spot.x = 2  # type: ignore[misc]
