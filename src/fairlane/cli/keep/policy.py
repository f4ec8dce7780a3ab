"""`fairlane policy`: the rules as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import listed, paint, print_json, safe, table, write
from fairlane.service import policies


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
@common
@pass_call
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
        document = policies.show(call.policy_file)
    if call.json:
        print_json(document)
        return
    source = document["file"] or "no policy file"
    title = paint(f"Policy {document['preset']}", "bold") + safe(f" ({source})")
    rows = [(row["key"], _value(row["value"]), row["origin"]) for row in document["keys"]]
    write(f"{title}\n\n{table(('key', 'value', 'from'), rows)}\n")


@command.command("check")
@click.argument("file", metavar="FILE")
@common
@pass_call
def check(call: Call, file: str) -> None:
    """Whether a policy file can be used. If not: all that is wrong with it, and exit 2.

    \b
    Example:
      fairlane policy check policy.toml
    """
    call.here()
    document = policies.check(Path(file))
    if call.json:
        print_json(document)
    else:
        write(f"{safe(file)} is a good policy, based on {document['preset']}\n")


@command.command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@common
@pass_call
def diff(call: Call, a: str, b: str) -> None:
    """Where two policies differ. Each is a preset or a file.

    \b
    Example:
      fairlane policy diff balanced depth-first
    """
    call.here()
    document = policies.diff(a, b)
    if call.json:
        print_json(document)
        return
    rows = [(row["key"], _value(row["a"]), _value(row["b"])) for row in document["differences"]]
    write(f"{table(('key', a, b), rows)}\n" if rows else "no difference\n")


@command.command("presets")
@common
@pass_call
def presets(call: Call) -> None:
    """The policies that come with Fairlane.

    \b
    Example:
      fairlane policy presets
    """
    call.here()
    document = policies.presets()
    if call.json:
        print_json(document)
        return
    rows = [(row["name"], row["about"]) for row in document["presets"]]
    write(f"{table(('preset', 'about'), rows)}\n")


@command.command("use")
@click.argument("preset", metavar="PRESET")
@common
@pass_call
def use(call: Call, preset: str) -> None:
    """Use a preset from now on. The policy file before it is kept beside it.

    \b
    Example:
      fairlane policy use depth-first
    """
    document = policies.use(call.policy_file, preset)
    if call.json:
        print_json(document)
        return
    kept = f"; the file before it is {document['backup']}" if document["backup"] else ""
    write(safe(f"{document['file']} uses preset {preset}{kept}") + "\n")


@command.command("set")
@click.argument("settings", metavar="KEY=VALUE...", nargs=-1, required=True)
@common
@pass_call
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
        document = policies.change(call.policy_file, settings)
    if call.json:
        print_json(document)
        return
    rows = [(row["key"], _value(row["a"]), _value(row["b"])) for row in document["differences"]]
    write(f"{table(('key', 'before', 'now'), rows)}\n" if rows else "nothing changed\n")


@command.command("try")
@click.argument("policy", metavar="FILE|PRESET")
@common
@pass_call
def try_(call: Call, policy: str) -> None:
    """What the next plan would do differently under another policy. Changes nothing.

    \b
    Example:
      fairlane policy try other.toml
      fairlane policy try depth-first
    """
    with call.desk() as desk:
        document = policies.try_out(desk, policy)
    if call.json:
        print_json(document)
    else:
        write(_tried(document) + "\n")


def _tried(document: dict[str, Any]) -> str:
    then = document["starts"]["then"]
    if then == document["starts"]["now"]:
        return safe(
            f"the next plan would be the same: {listed(then[:10], len(then)) or 'no start'}"
        )
    lines = [f"starts now        {listed(document['starts']['now'][:10]) or 'nothing'}"]
    lines.append(f"starts under it   {listed(then[:10], len(then)) or 'nothing'}")
    for name, words in (("gains", "starts sooner"), ("loses", "has to wait")):
        if document[name]:
            lines.append(f"{words:16}  {listed(document[name][:10], len(document[name]))}")
    return "\n".join(safe(line) for line in lines)


def _value(value: Any) -> str:
    """A value in one line: words side by side, tables as JSON."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
