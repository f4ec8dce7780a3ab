"""`fairlead completion`: completion for bash, zsh or fish."""

from __future__ import annotations

import click

from fairlead.cli.options import Call, common, pass_call
from fairlead.cli.output import print_json, write
from fairlead.model.errors import FairleadError

SHELLS = ("bash", "zsh", "fish")
#: The variable by which the shell asks for completions.
VARIABLE = "_FAIRLEAD_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@common
@pass_call
def command(call: Call, shell: str) -> None:
    """The completion script of a shell, on standard output.

    \b
    Example:
      eval "$(fairlead completion bash)"             # in ~/.bashrc
      eval "$(fairlead completion zsh)"              # in ~/.zshrc
      fairlead completion fish > ~/.config/fish/completions/fairlead.fish
    """
    from click.shell_completion import get_completion_class

    from fairlead.cli.main import fairlead

    kind = get_completion_class(shell)
    if kind is None:
        raise FairleadError(f"there is no completion for {shell}")
    text = _template(kind, fairlead)
    if call.json:
        print_json({"schema": "fairlead/1", "shell": shell, "script": text})
    else:
        write(text + "\n")


def _template(kind: type, root: click.Command) -> str:
    """The script; the shell's own version is not asked, which would take a process."""
    made = kind(root, {}, "fairlead", VARIABLE)
    found: str = made.source_template % made.source_vars()
    return found
