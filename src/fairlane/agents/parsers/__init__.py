"""Parsers: what each program prints, read line by line. The file is the name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fairlane.model.errors import Invalid, did_you_mean

if TYPE_CHECKING:
    from fairlane.agents.contract import Agent, Parser
    from fairlane.model.project import Tokens

SHIPPED = ("claude", "codex", "demo", "gemini", "opencode", "plain")


def parser_named(name: str) -> type[Parser]:
    """The parser of this name; one is made for each attempt."""
    if name not in SHIPPED:
        raise Invalid(f"there is no parser {name!r}", did_you_mean(name, SHIPPED))
    parser: type[Parser] = import_module(f"fairlane.agents.parsers.{name}").READER
    return parser


def parser_for(agent: Agent, baseline: Tokens | None = None) -> Parser:
    """A new parser for one attempt. `baseline`: what its session had used before."""
    return parser_named(agent.parser)(baseline)
