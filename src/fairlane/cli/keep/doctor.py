"""`fairlane doctor`: all that is wrong, or would be recovered."""

from __future__ import annotations

from typing import Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, paint, print_json, safe, wrapped, write

_TINT = {"wrong": "red", "note": "yellow", "fine": "green"}


@click.command("doctor")
@common
@pass_call
def command(call: Call) -> int:
    """All that is wrong, and what would be recovered. Changes nothing; exit 1 if one is wrong.

    \b
    Example:
      fairlane doctor
    """
    from fairlane.app import STORE_FILE, former_home
    from fairlane.service.house import doctor

    url = f"sqlite:{call.folder / STORE_FILE}"
    document = doctor.examine(call.folder, call.db, url, call.clock, former_home(call.home))
    if call.json:
        print_json(document)
    else:
        write(_text(document["findings"]) + "\n")
    return 0 if document["ok"] else 1


def _text(findings: list[dict[str, Any]]) -> str:
    wide = max(len(each["what"]) for each in findings)
    lines = []
    for each in findings:
        level = each["level"]
        lead = f"  {level:5}  {each['what']:{wide}}  "
        text = wrapped(safe(each["message"]), len(lead), lead)
        lines.append(text.replace(level, paint(level, _TINT[level]), 1))
        if each["hint"] and level != "fine":
            lines.append(paint(wrapped(safe(each["hint"]), len(lead)), "dim"))
    wrong = sum(each["level"] == "wrong" for each in findings)
    end = (
        f"{count(wrong, 'thing')} {'is' if wrong == 1 else 'are'} wrong."
        if wrong
        else "All is well."
    )
    return "\n".join([*lines, paint(end, "bold", "red" if wrong else "green")])
