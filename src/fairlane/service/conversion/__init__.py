"""Conversion: another scheduler's files become rules, settings, projects and tasks here.

Each format is one module in `formats/`, found by its name, with `convert(path) -> Converted`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.service.conversion import formats
from fairlane.service.conversion.base import Converted


def names() -> tuple[str, ...]:
    """Every format that can be converted."""
    found = (module.name for module in iter_modules(formats.__path__))
    return tuple(sorted(name.replace("_", "-") for name in found))


def convert(name: str, path: Path) -> Converted:
    """What the files of a format amount to here; nothing is written."""
    if name not in names():
        hint = did_you_mean(name, names())
        raise Invalid(f"there is no format {name!r}", hint, code="unknown_format")
    if not path.exists():
        raise Invalid(f"{path}: there is no such file", "Nothing was changed.")
    module = import_module(f"{formats.__name__}.{name.replace('-', '_')}")
    converted: Converted = module.convert(path)
    return converted
