"""Agents: which there are, how one is started, and who reads what it prints."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from fairlane.agents.catalog import agents
from fairlane.agents.command import expanded, home_path, launch_of
from fairlane.agents.contract import Agent, Launch, Parser, Seen, Verdict
from fairlane.agents.parsers import final_records, parser_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlane.lifecycle.usage import Tokens

__all__ = [
    "Agent",
    "Launch",
    "Parser",
    "Seen",
    "Verdict",
    "agents",
    "expanded",
    "final_records",
    "installed",
    "launch_of",
    "parser_for",
]


def parser_for(agent: Agent, baseline: Tokens | None = None) -> Parser:
    """A new parser for one attempt. `baseline`: what its session had used before this attempt."""
    return parser_named(agent.parser)(baseline)


def installed(agent: Agent, env: Mapping[str, str] | None = None) -> str | None:
    """Where the program of an agent is; None: not on the PATH."""
    program = {"{python}": sys.executable}.get(agent.argv[0], home_path(agent.argv[0]))
    if program == "{command}":
        return program
    path = (env or {}).get("PATH") or agent.env.get("PATH") or os.environ.get("PATH")
    return shutil.which(program, path=path)
