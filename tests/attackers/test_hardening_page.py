"""The page for operators: its commands run, its settings are read, its advice names what exists."""

from __future__ import annotations

import re
import tomllib

import click
import pytest

from fairlane import Policy
from fairlane.cli.commands import fairlane
from fairlane.settings import Settings
from tests.acceptance.commands import ROOT
from tests.acceptance.test_docs import blocks, commands, shell

__all__ = ["shell"]
PAGE = "docs/hardening.md"
TABLES = [text for language, text in blocks(PAGE) if language == "toml"]


@pytest.mark.slow
def test_its_commands_print_what_is_shown(shell) -> None:
    for language, text in blocks(PAGE):
        if language == "console":
            for command, shown in commands(text):
                assert shell(command) == shown, command


@pytest.mark.parametrize("text", TABLES)
def test_its_settings_are_good(text: str) -> None:
    file = text.partition("\n")[0].removeprefix("# ")
    read = {"fairlane.toml": Settings.parse, "policy.toml": Policy.parse}[file]
    read(tomllib.loads(text))


def test_its_commands_exist_with_their_options() -> None:
    prose = (ROOT / PAGE).read_text(encoding="utf-8")
    named = re.findall(r"`fairlane ([a-z][^`]*)`", prose)
    assert len(named) > 8
    for line in named:
        command: click.Command = fairlane
        ctx = click.Context(command)
        words = line.split()
        while words and isinstance(command, click.Group):
            found = command.get_command(ctx, words[0])
            if found is None:
                break
            command, words = found, words[1:]
        options = {name for each in command.params for name in each.opts}
        assert command is not fairlane, line
        assert {word for word in words if word.startswith("--")} <= options, line
