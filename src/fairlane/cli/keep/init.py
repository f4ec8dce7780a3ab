"""`fairlane init`: the home folder, with commented settings and policy."""

from __future__ import annotations

from typing import Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import paint, print_json, safe, wrapped, write


@click.command("init")
@common
@pass_call
def command(call: Call) -> None:
    """Make the home folder: store, settings and policy with comments. Overwrites nothing.

    \b
    Example:
      fairlane init
      fairlane --home ~/queues/night init
    """
    from fairlane.service.house import setup

    call.take_in_old_home()
    document = setup.init(call.folder)
    with call.desk():
        pass  # the store is made, and the settings are read once
    if call.json:
        print_json(document)
    else:
        write(_text(document) + "\n")


def _text(document: dict[str, Any]) -> str:
    lines = [paint(f"made {safe(path)}", "green") for path in document["made"]]
    lines += [f"kept {safe(path)}" for path in document["kept"]]
    names = [f"{each['name']} ({each['path']})" for each in document["agents"]]
    known = "claude, codex, gemini, opencode"
    found = f"No agent is on the path ({known}). Without one: --agent demo, or -- COMMAND."
    if names:
        found = f"Agents found: {', '.join(names)}."
    return "\n".join([*lines, wrapped(safe(found), 0), 'Next: fairlane add "…"'])
