"""How it runs: launch, adopt, stop. Executors are found by their name."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from fairlane.model.errors import Invalid, did_you_mean

if TYPE_CHECKING:
    from fairlane.executors.base import Executor

SHIPPED = {"process": "ProcessExecutor", "tmux": "TmuxExecutor"}


def executor_named(name: str, warm: bool = False) -> Executor:
    """A shipped executor, or one that a package brings along (`fairlane.executors`).

    `warm`: it will be used again and again, and may prepare for the next time.
    """
    found: Executor
    if name in SHIPPED:
        found = getattr(import_module(f"fairlane.executors.{name}"), SHIPPED[name])(warm)
        return found
    others = {entry.name: entry for entry in entry_points(group="fairlane.executors")}
    if name not in others:
        hint = did_you_mean(name, [*SHIPPED, *others])
        raise Invalid(f"no executor {name!r}", hint, code="invalid_settings")
    found = others[name].load()()
    return found
