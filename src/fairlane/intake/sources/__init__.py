"""Sources: where work already is. Each is one file in this folder, found by its name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.intake.sources.base import Source
from fairlane.model.errors import Invalid, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

#: Third parties add a source under its name here.
ENTRY_POINTS = "fairlane.sources"
_NOT_SOURCES = ("__init__", "base")
#: Files whose source is not called as they are.
_SPELLED = {"queue_json": "queue.json"}


def source_named(name: str) -> Source:
    """The source with this name, shipped or of a third party."""
    shipped = dict(_shipped())
    if name in shipped:
        return _checked(name, import_module(f"fairlane.intake.sources.{shipped[name]}"))
    for point in _points():
        if point.name == name:
            return _checked(name, point.load())
    raise Invalid(
        f"there is no source {name!r}", did_you_mean(name, names()), code="unknown_source"
    )


def names() -> tuple[str, ...]:
    """Every source that can be named."""
    return tuple(sorted({name for name, _ in _shipped()} | {point.name for point in _points()}))


def _shipped() -> Iterator[tuple[str, str]]:
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.stem not in _NOT_SOURCES:
            yield _SPELLED.get(file.stem, file.stem.replace("_", "-")), file.stem


def _points() -> EntryPoints:
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS)


def _checked(name: str, module: object) -> Source:
    if not isinstance(module, Source):
        hint = "It needs a function `read(where)`; docs/adding/a-source.md tells."
        raise Invalid(f"{name!r} is no source", hint, code="unknown_source")
    return module
