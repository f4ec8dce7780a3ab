"""`fairlane open`: the folder in which a task worked."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import listed, warn
from fairlane.model.errors import Invalid, Refused

if TYPE_CHECKING:
    from fairlane.model.documents.work import OpenedAnswer

#: How to enter the folder.
WAYS = ("path", "shell", "editor")
#: How many files are named that could run by themselves.
_NAMED = 5


@click.command("open")
@click.argument("task", metavar="ID")
@click.option("--path", is_flag=True, help="Print its path (default).")
@click.option("--shell", is_flag=True, help="Start $SHELL there.")
@click.option("--editor", is_flag=True, help="Open it in $VISUAL or $EDITOR.")
@click.option("--fetch", is_flag=True, help="Copy what git keeps, where the folder is gone.")
@takes_call
def open_(call: Call, /, task: str, fetch: bool, **ways: bool) -> int:
    """The folder in which a task works or worked, verified first.

    What could run by itself there is named on standard error.

    \b
    Example:
      cd "$(fairlane open t12 --path)"
      fairlane open t12 --shell
      fairlane open t12 --editor
    """
    chosen = [way for way in WAYS if ways[way]]
    if len(chosen) > 1:
        both = " and ".join(f"--{way}" for way in chosen)
        raise Invalid(f"{both} were given", "Keep one of them.", code="usage")
    way = chosen[0] if chosen else "path"
    words = _words(way)
    if call.server is not None:
        from fairlane.service.open_work import elsewhere

        raise elsewhere(task, "the machine of the server")
    from fairlane.service.open_work import open_work

    with call.context() as context:
        document: OpenedAnswer = open_work(context, task, fetch)
    names = document["runs_by_itself"]
    if names and not call.json:
        named = listed(names[:_NAMED], len(names))
        warn(f"agents can write what could run by itself here: {named}")
    if not words:
        call.show(document, lambda: document["path"])
        return 0
    return _enter([*words, document["path"]] if way == "editor" else words, document["path"])


def _words(way: str) -> list[str]:
    """The program to start; none: only the path is wanted."""
    if way == "path":
        return []
    from fairlane.app import own_lease

    if own_lease() is not None:
        from fairlane.service.attempt_rights import not_for_attempts

        raise not_for_attempts(f"fairlane open --{way}")
    if way == "shell":
        return [os.environ.get("SHELL") or "/bin/sh"]
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(chosen)
    except ValueError as error:
        raise Invalid(f"VISUAL or EDITOR: {error}", "Write it as a shell would read it.") from error
    if not words:
        raise Invalid("neither VISUAL nor EDITOR is set", "For example: export EDITOR=vi")
    return words


def _enter(words: list[str], path: str) -> int:
    sys.stdout.flush()
    try:
        return subprocess.run(words, cwd=path, check=False).returncode
    except OSError as error:
        raise Refused(
            f"{words[0]} cannot be started: {error.strerror}", code="no_program"
        ) from error
