"""The command line of one attempt: placeholders are filled element by element, never by a shell."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.agents.contract import Agent, Launch
from fairlane.agents.parsers import final_records
from fairlane.model.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.model.task import Task

FOLDER = str(Path(__file__).parent)
#: The kernel takes no longer argument; standard input takes more.
ARGUMENT_BYTES_MAX = 131_000

PLACEHOLDER = re.compile(r"\{(prompt|model|session|task|title|project|kind|python|folder)\}")
#: What a model or session may look like; nothing that a program would take for an option.
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,255}")


def launch_of(
    agent: Agent,
    task: Task,
    prompt: str,
    session: str | None = None,
    model: str | None = None,
) -> Launch:
    """How an attempt of the task is started; `session`: the one to go on with, where it can."""
    values = {
        "prompt": clean(prompt),
        "model": _word("model", model or agent.model),
        "session": session if session and _WORD.fullmatch(session) else None,
        "task": task.id,
        "title": clean(task.title),
        "project": task.project,
        "kind": task.kind,
        "python": sys.executable,
        "folder": FOLDER,
    }
    resumed = values["session"] is not None and agent.resume is not None
    template = agent.resume if resumed and agent.resume is not None else agent.argv
    argv = tuple(_filled(agent, task, template, values))
    return Launch(
        argv=(home_path(argv[0]), *argv[1:]),
        env=expanded(agent.env),
        stdin=values["prompt"] if agent.stdin else None,
        stop=agent.stop,
        grace=agent.grace,
        final=final_records(agent.parser),
    )


def expanded(env: Mapping[str, str]) -> dict[str, str]:
    """Variables in which a leading `~` is the user's home folder, as people write paths."""
    return {name: home_path(value) for name, value in env.items()}


def home_path(text: str) -> str:
    """A text that begins with `~/`, or is `~`, as a path below the user's home folder."""
    return str(Path(text).expanduser()) if text == "~" or text.startswith("~/") else text


def clean(text: str) -> str:
    """Text that can be an argument: no NUL, nothing that UTF-8 cannot say."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _filled(
    agent: Agent, task: Task, template: tuple[str, ...], values: Mapping[str, str | None]
) -> Iterator[str]:
    """Every element filled; one whose value is missing goes, and so does the option before it."""
    kept: list[str] = []
    positional = False  # after `--`, where nothing is an option
    for element in template:
        positional = positional or element == "--"
        if element == "{permissions}":
            kept += agent.flags.get(agent.permissions, ())
        elif element == "{command}":
            kept += _command(task)
        elif _missing(element, values):
            if kept and kept[-1].startswith("-") and kept[-1] != "--":
                kept.pop()
        else:
            kept.append(_fill(element, values, positional))
    for element in kept:
        if len(element.encode()) > ARGUMENT_BYTES_MAX:
            hint = f"Leave {{prompt}} out of argv of agent {agent.name}: standard input takes it."
            raise Invalid(f"the prompt of {task.id} is too long for a command line", hint)
        yield element


def _missing(element: str, values: Mapping[str, str | None]) -> bool:
    return any(values[name] is None for name in PLACEHOLDER.findall(element))


def _fill(element: str, values: Mapping[str, str | None], positional: bool) -> str:
    filled = PLACEHOLDER.sub(lambda found: values[found[1]] or "", element)
    if filled.startswith("-") and not element.startswith("-") and not positional:
        return f" {filled}"  # a text that begins with a dash is no option
    return filled


def _command(task: Task) -> tuple[str, ...]:
    if not task.command:
        hint = f"Give it one: fairlane edit {task.id} --command …, or choose another agent."
        raise Invalid(f"task {task.id} has no command", hint)
    return tuple(clean(word) for word in task.command)


def _word(what: str, value: str | None) -> str | None:
    if value is None or _WORD.fullmatch(value):
        return value
    raise Invalid(f"not the name of a {what}: {value!r}", f"Change {what} in the settings.")
