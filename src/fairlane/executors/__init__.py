"""What runs attempts. Executors are found by their name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fairlane.model.errors import Invalid, did_you_mean

if TYPE_CHECKING:
    from fairlane.executors.base import Executor

SHIPPED = {"process": "ProcessExecutor", "tmux": "TmuxExecutor"}


def executor_named(name: str) -> Executor:
    """A shipped executor, or one of another package (entry point group `fairlane.executors`)."""
    executor: Executor
    if name in SHIPPED:
        executor = getattr(import_module(f"fairlane.executors.{name}"), SHIPPED[name])()
        return executor
    from importlib.metadata import entry_points

    others = {entry.name: entry for entry in entry_points(group="fairlane.executors")}
    if name not in others:
        hint = did_you_mean(name, [*SHIPPED, *others])
        raise Invalid(f"no executor {name!r}", hint, code="invalid_settings")
    executor = others[name].load()()
    return executor
