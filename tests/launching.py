"""How an agent is started, as tests of agents look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlane.agents.contract import Agent, argv_of, clean, expanded
from fairlane.agents.parsers import parser_named
from fairlane.model.task import Task


@dataclass(frozen=True)
class Launch:
    """A command line, and what else an executor needs to start it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    stdin: str | None
    stop: tuple[float, float]
    grace: float
    final: tuple[tuple[str, tuple[str, ...]], ...]


def launch_of(
    agent: Agent, task: Task, prompt: str, session: str | None = None, model: str | None = None
) -> Launch:
    """The launch of one attempt."""
    return Launch(
        argv=argv_of(agent, task, prompt, session, model),
        env=expanded(agent.env),
        stdin=clean(prompt) if agent.stdin else None,
        stop=agent.stop,
        grace=agent.grace,
        final=parser_named(agent.parser).FINAL,
    )
