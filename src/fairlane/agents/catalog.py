"""Which agents there are: the shipped ones, changed by the settings, and the user's own."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fairlane.agents.contract import Agent
from fairlane.agents.parsers import known_parsers
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlane.settings import AgentSettings, Settings

#: What must not be asked for twice: the text that goes to the program once.
_TAKES_PROMPT = ("{prompt}", "{command}")


def agents(settings: Settings) -> dict[str, Agent]:
    """Every agent by its name."""
    found = dict(shipped())
    for name, own in settings.agents.items():
        changed = _changed(_base(name, own), own)
        found[name] = _checked(replace(changed, pool=settings.agent_pool(name)))
    return found


@cache
def shipped() -> Mapping[str, Agent]:
    """The agents that come with Fairlane, as they come."""
    text = files("fairlane.agents").joinpath("shipped.toml").read_text(encoding="utf-8")
    return {name: _read(name, table) for name, table in tomllib.loads(text).items()}


def _read(name: str, table: Mapping[str, Any]) -> Agent:
    values = dict(table)
    for key in ("argv", "resume", "stop"):
        if key in values:
            values[key] = tuple(values[key])
    values["flags"] = {key: tuple(words) for key, words in values.get("flags", {}).items()}
    return Agent(name=name, **values)


def _base(name: str, own: AgentSettings) -> Agent:
    """What an entry changes: the shipped agent of its name, else that of its parser."""
    known = shipped()
    if name in known:
        return known[name]
    parser = own.parser or "plain"
    like = next((agent for agent in known.values() if agent.parser == parser), None)
    if own.argv is None and (like is None or own.parser is None or parser == "plain"):
        hint = f'Add argv = ["program", "{{prompt}}"] below [agents.{name}].'
        raise Invalid(f"agent {name} has no argv", hint, code="invalid_settings")
    if like is None or own.argv is None:
        return replace(like, name=name) if like else Agent(name, own.argv or (), parser)
    return Agent(name, own.argv, parser, flags=like.flags, stop=like.stop, env=like.env)


def _changed(base: Agent, own: AgentSettings) -> Agent:
    values: dict[str, Any] = {}
    if own.argv is not None:
        values["argv"], values["resume"] = own.argv, None
        values["stdin"] = not any(mark in word for word in own.argv for mark in _TAKES_PROMPT)
    if own.stop is not None:
        values["stop"] = (own.stop[0] / SECOND, own.stop[1] / SECOND)
    if own.grace is not None:
        values["grace"] = own.grace / SECOND
    for key in ("parser", "permissions", "model"):
        if getattr(own, key) is not None:
            values[key] = getattr(own, key)
    return replace(base, **values, env={**base.env, **own.env})


def _checked(agent: Agent) -> Agent:
    if agent.parser not in known_parsers():
        raise Invalid(
            f"agent {agent.name}: there is no parser {agent.parser!r}",
            did_you_mean(agent.parser, known_parsers()),
            code="invalid_settings",
        )
    return agent
