"""The agents of a town: who does the work, and its own command lines of programs known here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from fairlane.agents.contract import shipped
from fairlane.model import values
from fairlane.model.task import DEFAULT_AGENT, POOLS, SHIPPED
from fairlane.model.values import is_name, line
from fairlane.service.conversion.base import Converted, Keys

#: Programs whose output can be read here.
PROGRAMS = ("claude", "codex", "gemini", "opencode")
#: Arguments that mean: ask nobody.
_FULL = ("--dangerously-skip-permissions", "--dangerously-bypass-approvals-and-sandbox", "--yolo")
_MODEL = ("--model", "-m")
_TAKEN = ("provider", "command", "args")


def convert(keys: Keys, converted: Converted) -> None:
    """`agents`, and who polecats are: `role_agents.polecat`, else `default_agent`."""
    made = [name for name in _names(keys) if _agent(keys, name, converted)]
    default = keys.take("default_agent", agent_name)
    polecat = keys.take("role_agents.polecat", agent_name)
    agent, called = DEFAULT_AGENT, "polecats are Claude Code"
    if polecat or default:
        agent = polecat or default or agent
        called = "role_agents.polecat" if polecat else "default_agent"
    converted.settings["agent"] = agent
    converted.called["agent"] = called
    if agent not in (*SHIPPED, *made):
        converted.note(
            f"Agent {agent} is not known here: tasks wait for it until fairlane.toml has an entry "
            f"[agents.{agent}], or until another agent is chosen."
        )


def agent_name(value: object) -> str | None:
    """The name of an agent; an empty one is none."""
    return values.name(value) if value != "" else None


def _names(keys: Keys) -> list[str]:
    """Those that say how they are started, and whose name can be a key of the settings."""
    parts = (key.split(".") for key in keys.unknown())
    found = dict.fromkeys(
        part[1] for part in parts if len(part) == 3 and part[0] == "agents" and part[2] in _TAKEN
    )
    return [name for name in found if is_name(name)]


def _agent(keys: Keys, name: str, converted: Converted) -> bool:
    """One agent in the settings; False: its program is not known here, and its keys are listed."""
    provider, command, args = (f"agents.{name}.{key}" for key in _TAKEN)
    words = keys.peek(command) or keys.peek(provider) or (name if name in PROGRAMS else "claude")
    program = PurePath(str(words)).name
    if program not in PROGRAMS:
        converted.note(
            f"Agent {name} runs {program}, whose output is not known here. To use it, add "
            f"[agents.{name}] with argv to fairlane.toml."
        )
        return False
    keys.drop(provider)
    path = keys.take(command, line) or program
    found = _settings(name, program, path, keys.take(args, values.command) or ())
    for key, value in found.items():
        converted.settings[f"agents.{name}.{key}"] = value
    return bool(found) or name in SHIPPED


def _settings(name: str, program: str, path: str, args: Sequence[str]) -> dict[str, object]:
    """What differs from the shipped agent of this program."""
    found: dict[str, object] = {}
    if name != program:
        found["parser"] = program
        if program in POOLS:
            found["pool"] = POOLS[program]
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word in _FULL:
            found["permissions"] = "full"
        elif word in _MODEL:
            found["model"] = next(words, "")
        elif word.startswith("--model="):
            found["model"] = word.partition("=")[2]
        else:
            rest.append(word)
    if rest or path != program:
        found["argv"] = [path, *rest, *shipped()[program].argv[1:]]
    if not found.get("model"):
        found.pop("model", None)
    return found
