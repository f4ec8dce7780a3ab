"""`fairlane policy`: the rules as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.options import common, takes_call
from fairlane.cli.output import listed, paint, safe, table
from fairlane.service import policies

if TYPE_CHECKING:
    from fairlane.model.documents.admin import PolicyDifferenceDocument


@click.group("policy")
@common
def command() -> None:
    """The rules by which it is decided what starts.

    \b
    Example:
      fairlane policy show
      fairlane policy set caps.all=8
    """


@command.command("show")
@click.argument("policy", required=False, metavar="[PRESET|FILE]")
@takes_call
def show(call: Call, policy: str | None) -> None:
    """The policy in force. Every key, its value, and where that came from.

    \b
    Example:
      fairlane policy show
      fairlane policy show depth-first
    """
    if policy is not None:
        call.here()
        document = policies.show_named(policy)
    elif call.server is not None:
        document = call.ask("policy_show")
    else:
        document = policies.show_file(call.policy_file)
    title = paint(f"Policy {document['preset']}", "bold")
    source = safe(document["file"] or "no policy file")
    rows = [(row["key"], _value(row["value"]), row["origin"]) for row in document["keys"]]
    keys = ("key", "value", "from")
    call.show(document, lambda: f"{title} ({source})\n\n{table(keys, rows)}")


@command.command("check")
@click.argument("file", metavar="[FILE]", required=False)
@takes_call
def check(call: Call, file: str | None) -> None:
    """Whether a policy file can be used. If not: all that is wrong with it, and exit 2.

    FILE: default is the policy of the home folder.

    \b
    Example:
      fairlane policy check
      fairlane policy check policy.toml
    """
    call.here()
    path = Path(file) if file is not None else call.policy_file
    document = policies.check(path)
    call.show(document, lambda: f"{safe(path)} is a good policy, based on {document['preset']}")


@command.command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@takes_call
def diff(call: Call, a: str, b: str) -> None:
    """Where two policies differ. Each is a preset or a file.

    \b
    Example:
      fairlane policy diff balanced depth-first
    """
    call.here()
    document = policies.diff(a, b)
    rows = _rows(document["differences"])
    call.show(document, lambda: table(("key", a, b), rows) or "no difference")


@command.command("presets")
@takes_call
def presets(call: Call) -> None:
    """The policies that come with Fairlane.

    \b
    Example:
      fairlane policy presets
    """
    call.here()
    document = policies.presets()
    rows = [(row["name"], row["about"]) for row in document["presets"]]
    call.show(document, lambda: table(("preset", "about"), rows))


@command.command("use")
@click.argument("preset", metavar="PRESET")
@takes_call
def use(call: Call, preset: str) -> None:
    """Use a preset from now on. The policy file before it is kept beside it.

    \b
    Example:
      fairlane policy use depth-first
    """
    document = policies.use(call.policy_file, preset)
    backup = f"; the file before it is {document['backup']}" if document["backup"] else ""
    call.show(document, lambda: safe(f"{document['file']} uses preset {preset}{backup}"))


@command.command("set")
@click.argument("settings", metavar="KEY=VALUE...", nargs=-1, required=True)
@takes_call
def change(call: Call, settings: tuple[str, ...]) -> None:
    """Change keys of the policy file. Its comments stay; a bad value changes nothing.

    \b
    Example:
      fairlane policy set caps.all=8
      fairlane policy set 'caps."kind:review"=1' overdue.after=12h
    """
    if call.server is not None:
        document = call.ask("policy_set", changes=policies.changes(settings))
    else:
        document = policies.change_file(call.policy_file, settings)
    rows = _rows(document["differences"])
    call.show(document, lambda: table(("key", "before", "now"), rows) or "nothing changed")


@command.command("try")
@click.argument("policy", metavar="FILE|PRESET")
@takes_call
def try_(call: Call, policy: str) -> None:
    """What the next plan would do differently under another policy. Changes nothing.

    \b
    Example:
      fairlane policy try other.toml
      fairlane policy try depth-first
    """
    with call.context() as context:
        document = policies.try_out(context, policy)
    starts = document["starts"]["now"], document["starts"]["then"]
    call.show(document, lambda: _tried(*starts, document["gains"], document["loses"]))


def _tried(now: list[str], then: list[str], gains: list[str], loses: list[str]) -> str:
    if then == now:
        return safe(f"the next plan would be the same: {_first(then) or 'no start'}")
    lines = [f"starts now        {listed(now[:10]) or 'nothing'}"]
    lines.append(f"starts under it   {_first(then) or 'nothing'}")
    lines += [f"starts sooner     {_first(gains)}"] if gains else []
    lines += [f"has to wait       {_first(loses)}"] if loses else []
    return "\n".join(safe(line) for line in lines)


def _first(tasks: list[str]) -> str:
    return listed(tasks[:10], len(tasks))


def _rows(differences: list[PolicyDifferenceDocument]) -> list[tuple[str, str, str]]:
    return [(row["key"], _value(row["a"]), _value(row["b"])) for row in differences]


def _value(value: object) -> str:
    """A value in one line: words side by side, tables as JSON."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return " ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
