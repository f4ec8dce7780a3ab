"""Parsers: what each program prints, read line by line. The file is the name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fairlane.model.errors import Invalid, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.agents.contract import FinalRecord, Parser
    from fairlane.lifecycle.usage import Tokens

SHIPPED = ("claude", "codex", "demo", "gemini", "opencode", "plain")


def known_parsers() -> tuple[str, ...]:
    """The parsers by name."""
    return SHIPPED


def parser_named(name: str) -> Callable[[Tokens | None], Parser]:
    """What makes a parser for one attempt."""
    made: Callable[[Tokens | None], Parser] = _class_of(name)
    return made


def final_records(name: str) -> tuple[FinalRecord, ...]:
    """What the last record of a program looks like; empty: it prints none."""
    found: tuple[FinalRecord, ...] = _class_of(name).FINAL
    return found


def _class_of(name: str):  # type: ignore[no-untyped-def]
    if name not in SHIPPED:
        raise Invalid(f"there is no parser {name!r}", did_you_mean(name, SHIPPED))
    module = import_module(f"fairlane.agents.parsers.{name}")
    return module.READER
