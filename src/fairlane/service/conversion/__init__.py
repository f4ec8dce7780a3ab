"""Conversion: another scheduler's files become rules, settings, projects and tasks here.

Each format is one file in this folder, found by its name, with `convert(path) -> Converted`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.service.conversion.base import Converted

_NOT_FORMATS = (
    "__init__",
    "agent_queue_database",
    "agent_queue_folders",
    "agent_queue_work",
    "base",
    "gastown_agents",
    "gastown_rigs",
    "loopr_files",
    "operation",
    "past",
    "sift",
)


def names() -> tuple[str, ...]:
    """Every format that can be converted."""
    stems = (file.stem for file in Path(__file__).parent.glob("*.py"))
    return tuple(sorted(stem.replace("_", "-") for stem in stems if stem not in _NOT_FORMATS))


def convert(name: str, path: Path) -> Converted:
    """What the files of a format amount to here; nothing is written."""
    if name not in names():
        hint = did_you_mean(name, names())
        raise Invalid(f"there is no format {name!r}", hint, code="unknown_format")
    if not path.exists():
        raise Invalid(f"{path}: there is no such file", "Nothing was changed.")
    module = import_module(f"fairlane.service.conversion.{name.replace('-', '_')}")
    converted: Converted = module.convert(path)
    return converted
