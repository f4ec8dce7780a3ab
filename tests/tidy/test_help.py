"""Every command says what it does and shows an example; texts name commands that exist."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

import click
import pytest

from fairlane.cli.main import VERBS
from tests.tidy.repository import PACKAGE, texts

if TYPE_CHECKING:
    from collections.abc import Iterator


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command, by the words one types; empty while there is no command line."""
    if (PACKAGE / "cli" / "commands.py").exists():
        module = import_module("fairlane.cli.commands")
        root = next(value for value in vars(module).values() if isinstance(value, click.Group))
        yield from walk("fairlane", root, click.Context(root))


def walk(
    words: str, command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from walk(f"{words} {name}", below, context)


@pytest.mark.parametrize(("words", "command"), list(commands()))
def test_a_command_has_help_with_an_example(words, command):
    text = f"{command.help or ''}\n{command.epilog or ''}"
    assert command.help, f"{words} has no help"
    if not isinstance(command, click.Group):
        assert "xample" in text, f"{words} --help shows no example"
        assert words in text, f"the example of {words} does not use it"


def test_texts_name_verbs_that_exist():
    """In help, hints, messages and pages; `from fairlane import` names one by chance."""
    named = [
        (path, verb)
        for path, text in texts().items()
        if path.startswith("src/")
        for verb in re.findall(r"\bfairlane ([a-z][a-z_-]*)", text)
    ]
    assert len({verb for _, verb in named}) > len(VERBS) / 2
    assert [(path, verb) for path, verb in named if verb not in VERBS] == []
