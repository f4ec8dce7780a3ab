"""`fairlane project`: who the work is for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlane.cli.admin.resource import budget, facts, number, resource, shown, usd
from fairlane.cli.options import Call, takes_call, takes_options
from fairlane.cli.output import safe, table, warn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlane.model.documents.admin import ProjectAnswer, ProjectDocument
    from fairlane.model.instant import Instant

#: Option -> its settings; the key has the option's name, with an s if it may be repeated.
_OPTIONS: dict[str, dict[str, object]] = {
    "--weight": {"metavar": "N", "help": "Its share against the others'; 0: only what is left."},
    "--max-in-flight": {"metavar": "N", "help": "Most at once."},
    "--status": {"metavar": "S", "help": "active, paused or archived."},
    "--repo": {"metavar": "DIR", "help": "Its git repository."},
    "--base": {"metavar": "BRANCH", "help": "Where worktrees start."},
    "--prefix": {"metavar": "TEXT", "help": "Ids that begin with it are this project's."},
    "--agent": {"metavar": "A", "help": "Who does its tasks."},
    "--template": {"metavar": "NAME", "help": "The template of its prompts."},
    "--workspace": {"multiple": True, "metavar": "W", "help": "Where attempts work; repeat."},
    "--hooks": {"metavar": "H", "help": "Run git hooks: ours (none of it), or repo (its own)."},
    "--budget": {"multiple": True, "metavar": "K=V,…", "help": "tokens=50000,window=24h"},
}
_NUMBERS = ("weight", "max_in_flight")


def _table(projects: list[ProjectDocument], _: Instant) -> str:
    head = ("project", "weight", "in flight", "queued", "parked", "done", "tokens", "cost", "")
    tint = {"paused": "yellow"}
    return table(head, map(_row, projects), right=(1, 2, 3, 4, 5, 6, 7), tint=tint)


def _row(project: ProjectDocument) -> tuple[object, ...]:
    tasks, status = project["tasks"], project["status"]
    cap = "" if project["max_in_flight"] is None else f" of {project['max_in_flight']}"
    return (
        project["name"],
        project["weight"],
        f"{tasks['leased'] + tasks['running']}{cap}",
        tasks["queued"],
        tasks["parked"] or "",
        tasks["done"],
        f"{project['tokens']:,}",
        usd(project["usd"]),
        status if status != "active" else "paused" if project["paused"] else "",
    )


def _text(project: ProjectDocument, _: Instant | None = None) -> str:
    tasks = [f"{number} {status}" for status, number in project["tasks"].items() if number]
    values = {
        "status": "paused" if project["paused"] else project["status"],
        "tasks": ", ".join(tasks) or "none",
        "used": f"{project['tokens']:,} tokens, {usd(project['usd']) or '$0'} (share window)",
        "starts": f"{project['starts']} started, {project['completions']} completed",
        "weight": shown(project["weight"]),
        "max_in_flight": shown(project["max_in_flight"]),
        "repo": shown(project["repo"]),
        "base": shown(project["base"]),
        "prefix": shown(project["prefix"]),
        "agent": shown(project["agent"]),
        "template": shown(project["template"]),
        "workspaces": shown(project["workspaces"]),
        "hooks": shown(project["hooks"]),
        "budgets": "; ".join(
            ", ".join(f"{key} {value}" for key, value in budget.items())
            for budget in project["budgets"]
        ),
    }
    return facts(project["name"], values)


command = resource(
    "project",
    "Who the work is for: weight, cap, repository.",
    ("Every project: its weight, what it has queued and in flight, what it used.", _table),
    ("One project, whole.", "web", _text),
    "project add web --weight 3",
)


@command.command("add")
@click.argument("name", metavar="PROJECT")
@takes_options(_OPTIONS)
@takes_call
def add(call: Call, /, name: str, **options: object) -> None:
    """A new project. One that is there is returned as it is.

    \b
    Example:
      fairlane project add web --weight 3 --repo ~/src/web --prefix web-
    """
    document: ProjectAnswer = call.ask("project_add", name=name, values=_values(options))
    done = "added project" if document.get("created") else "there is a project already:"
    weight = document["project"]["weight"]
    call.show(document, lambda: safe(f"{done} {name} (weight {weight})"))
    _look_at_repo(call, document["project"])


@command.command("set")
@click.argument("name", metavar="PROJECT")
@takes_options(_OPTIONS)
@takes_call
def change(call: Call, /, name: str, **options: object) -> None:
    """Change a project. The word none takes a value away.

    \b
    Example:
      fairlane project set web --weight 2 --max-in-flight none
    """
    document = call.ask("project_set", name=name, values=_values(options))
    call.show(document, lambda: _text(document["project"]))
    if options.get("repo") is not None:
        _look_at_repo(call, document["project"])


@command.command("remove")
@click.argument("name", metavar="PROJECT")
@takes_call
def remove(call: Call, name: str) -> None:
    """Take a project away that has no unfinished task.

    \b
    Example:
      fairlane project remove web
    """
    document = call.ask("project_remove", name=name)
    call.show(document, lambda: safe(f"removed project {name}"))


def _look_at_repo(call: Call, project: ProjectDocument) -> None:
    """A word about a folder here that is no repository: its tasks would fail one by one."""
    folder = Path(project["repo"] or "").expanduser()
    if call.json or call.server is not None or not project["repo"]:
        return
    if not any((folder / name).exists() for name in (".git", "HEAD")):
        warn(f"{folder} is not a git repository; no task of {project['name']} starts until it is")


def _values(options: Mapping[str, object]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, value in options.items():
        if value is None or value == ():
            continue
        key = f"{name}s" if isinstance(value, tuple) else name
        if value in ("none", ("none",)):
            values[key] = None
        elif isinstance(value, tuple):
            values[key] = [budget(text) for text in value] if name == "budget" else list(value)
        else:
            values[key] = number(name, str(value)) if name in _NUMBERS else value
    return values
