"""`fairlane project`: who the work is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from fairlane.cli.keep.facts import facts, shown, usd
from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import paint, print_json, safe, table, write

_F = TypeVar("_F", bound="Callable[..., Any]")

#: Option -> its settings; the key has the option's name.
_OPTIONS: dict[str, dict[str, Any]] = {
    "--weight": {"metavar": "N", "help": "Its share against the others'; 0: only what is left."},
    "--max-in-flight": {"metavar": "N", "help": "Most at once."},
    "--status": {"metavar": "S", "help": "active, paused or archived."},
    "--repo": {"metavar": "DIR", "help": "Its git repository."},
    "--base": {"metavar": "BRANCH", "help": "Where worktrees start."},
    "--prefix": {"metavar": "TEXT", "help": "Ids that begin with it are this project's."},
    "--agent": {"metavar": "A", "help": "Who does its tasks."},
    "--template": {"metavar": "NAME", "help": "The template of its prompts."},
}
_NUMBERS = ("weight", "max_in_flight")


@click.group("project")
@common
def command() -> None:
    """Who the work is for: weight, cap, repository.

    \b
    Example:
      fairlane project list
      fairlane project add web --weight 3
    """


def _takes_keys(function: _F) -> _F:
    several: Any = click.option(
        "--workspace", "workspaces", multiple=True, metavar="W", help="Where attempts work; repeat."
    )
    budget: Any = click.option(
        "--budget", "budgets", multiple=True, metavar="K=V,…", help="tokens=50000,window=24h"
    )
    function = several(budget(function))
    for name, settings in reversed(_OPTIONS.items()):
        option: Any = click.option(name, **settings)
        function = option(function)
    return function


@command.command("list")
@common
@pass_call
def list_(call: Call) -> None:
    """Every project: its weight, what it has queued and in flight, what it used.

    \b
    Example:
      fairlane project list
    """
    document = call.ask("project_list")
    if call.json:
        print_json(document)
        return
    head = ("project", "weight", "in flight", "queued", "parked", "done", "tokens", "cost", "")
    rows = [_row(each) for each in document["projects"]]
    write(table(head, rows, right=(1, 2, 3, 4, 5, 6, 7), tint={"paused": "yellow"}) + "\n")


@command.command("show")
@click.argument("name", metavar="PROJECT")
@common
@pass_call
def show(call: Call, name: str) -> None:
    """One project, whole.

    \b
    Example:
      fairlane project show web
    """
    document = call.ask("project_show", name=name)
    if call.json:
        print_json(document)
    else:
        write(_text(document["project"]) + "\n")


@command.command("add")
@click.argument("name", metavar="PROJECT")
@_takes_keys
@common
@pass_call
def add(call: Call, /, name: str, **given: Any) -> None:
    """A new project. One that is there is returned as it is.

    \b
    Example:
      fairlane project add web --weight 3 --repo ~/src/web --prefix web-
    """
    document = call.ask("project_add", name=name, values=_values(given))
    if call.json:
        print_json(document)
        return
    done = "added project" if document["created"] else "there is a project already:"
    write(safe(f"{done} {name} (weight {document['project']['weight']})") + "\n")


@command.command("set")
@click.argument("name", metavar="PROJECT")
@_takes_keys
@common
@pass_call
def change(call: Call, /, name: str, **given: Any) -> None:
    """Change a project. The word none takes a value away.

    \b
    Example:
      fairlane project set web --weight 2 --max-in-flight none
    """
    document = call.ask("project_set", name=name, values=_values(given))
    if call.json:
        print_json(document)
    else:
        write(_text(document["project"]) + "\n")


@command.command("remove")
@click.argument("name", metavar="PROJECT")
@common
@pass_call
def remove(call: Call, name: str) -> None:
    """Take a project away that has no unfinished task.

    \b
    Example:
      fairlane project remove web
    """
    document = call.ask("project_remove", name=name)
    if call.json:
        print_json(document)
    else:
        write(safe(f"removed project {name}") + "\n")


def _values(given: dict[str, Any]) -> dict[str, Any]:
    from fairlane.cli.keep.facts import budget, number

    held: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value == ():
            continue
        if value in ("none", ("none",)):
            held[name] = None
        elif name in _NUMBERS:
            held[name] = number(name, value)
        elif name == "budgets":
            held[name] = [budget(each) for each in value]
        else:
            held[name] = list(value) if isinstance(value, tuple) else value
    return held


def _row(each: dict[str, Any]) -> tuple[object, ...]:
    tasks = each["tasks"]
    cap = "" if each["max_in_flight"] is None else f" of {each['max_in_flight']}"
    said = each["status"] if each["status"] != "active" else "paused" if each["paused"] else ""
    return (
        each["name"],
        each["weight"],
        f"{tasks['leased'] + tasks['running']}{cap}",
        tasks["queued"],
        tasks["parked"] or "",
        tasks["done"],
        f"{each['tokens']:,}",
        usd(each["usd"]),
        said,
    )


def _text(project: dict[str, Any]) -> str:
    tasks = [f"{number} {status}" for status, number in project["tasks"].items() if number]
    told = {
        "status": "paused" if project["paused"] else project["status"],
        "tasks": ", ".join(tasks) or "none",
        "used": f"{project['tokens']:,} tokens, {usd(project['usd']) or '$0'} (share window)",
        "starts": f"{project['starts']} started, {project['completions']} completed",
    }
    keys = ("weight", "max_in_flight", "repo", "base", "prefix", "agent", "template")
    held = {key: shown(project[key]) for key in (*keys, "workspaces")}
    held["budgets"] = "; ".join(
        ", ".join(f"{key} {value}" for key, value in each.items()) for each in project["budgets"]
    )
    return paint(safe(project["name"]), "bold") + "\n" + facts(told | held)
