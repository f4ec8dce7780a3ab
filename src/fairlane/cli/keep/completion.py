"""`fairlane completion`: completion for bash, zsh or fish."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write
from fairlane.model.errors import FairlaneError

SHELLS = ("bash", "zsh", "fish")
#: The variable by which the shell asks for completions.
VARIABLE = "_FAIRLANE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@common
@pass_call
def command(call: Call, shell: str) -> None:
    """The completion script of a shell, on standard output.

    \b
    Example:
      eval "$(fairlane completion bash)"             # in ~/.bashrc
      eval "$(fairlane completion zsh)"              # in ~/.zshrc
      fairlane completion fish > ~/.config/fish/completions/fairlane.fish
    """
    from click.shell_completion import get_completion_class

    from fairlane.cli.main import fairlane

    kind = get_completion_class(shell)
    if kind is None:
        raise FairlaneError(f"there is no completion for {shell}")
    text = _template(kind, fairlane)
    if call.json:
        print_json({"schema": "fairlane/1", "shell": shell, "script": text})
    else:
        write(text + "\n")


def _template(kind: type, root: click.Command) -> str:
    """The script; the shell's own version is not asked, which would take a process."""
    made = kind(root, {}, "fairlane", VARIABLE)
    found: str = made.source_template % made.source_vars()
    return found
