"""`fairlane project`: who the work is for."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlane.cli.admin.resource import budget, facts, number, resource, shown, usd
from fairlane.cli.call import Call
from fairlane.cli.options import takes_call, takes_options
from fairlane.cli.output import checks_text, safe, table, warn
from fairlane.cli.values import argv
from fairlane.model.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlane.model.documents.admin import ProjectAnswer, ProjectDocument
    from fairlane.model.instant import Instant

#: Option -> its settings; the key has the option's name unless `_KEYS` says otherwise.
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
    "--check": {
        "multiple": True,
        "metavar": "CMD",
        "help": 'Must pass before a task is done: "make test" (repeatable).',
    },
    "--no-checks": {"is_flag": True, "help": "Run no checks; the same as --check none."},
    "--merge": {"metavar": "HOW", "help": "After success: keep, merge or pr."},
    "--carry": {"metavar": "FROM", "help": "Tasks start from their needs' work (needs) or base."},
    "--context": {
        "metavar": "C",
        "help": "Tell agents what their needs did: needs, none or default.",
    },
    "--pr": {"metavar": "CMD", "help": 'Opens a pull request: "gh pr create --fill".'},
    "--setup": {"metavar": "CMD", "help": 'Runs once in a new worktree: "npm ci".'},
    "--setup-files": {
        "multiple": True,
        "metavar": "GLOB",
        "help": "Run --setup again when these files change: package-lock.json (repeatable).",
    },
    "--protect": {
        "multiple": True,
        "metavar": "GLOB",
        "help": "Changes there are not merged without approval (repeatable; '' protects nothing).",
    },
    "--hooks": {"metavar": "H", "help": "Run git hooks: ours (none of it), or repo (its own)."},
    "--budget": {"multiple": True, "metavar": "K=V,…", "help": "tokens=50000,window=24h"},
}
_NUMBERS = ("weight", "max_in_flight")
_KEYS = {"workspace": "workspaces", "budget": "budgets", "check": "checks"}
#: Options of which the word none is a value -> the word that takes the value away.
_CLEARED = {"context": "default"}
#: Options with a command line.
_COMMANDS = ("check", "pr", "setup")


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
        "merge": shown(project["merge"]),
        "carry": shown(project["carry"]),
        "context": shown(project["context"]),
        "checks": checks_text(project["checks"]),
        "pr": shlex.join(project["pr"]),
        "setup": shlex.join(project["setup"]),
        "setup_files": shown(project["setup_files"]),
        "protect": "nothing" if project["protect"] == [] else shown(project["protect"]),
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
      fairlane project set web --check "make test" --setup "npm ci" --pr "gh pr create --fill"
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
        if value is None or value == () or name == "no_checks":
            continue
        several = isinstance(value, tuple)
        texts = [str(text) for text in value] if isinstance(value, tuple) else [str(value)]
        empty = several and texts == [""] and name not in _COMMANDS
        read = [] if empty else [_read(name, text) for text in texts]
        values[_KEYS.get(name, name)] = (
            None if texts == [_CLEARED.get(name, "none")] else read if several else read[0]
        )
    if options.get("no_checks"):
        if "checks" in values:
            raise Invalid("--check and --no-checks were given", "Keep one of them.", code="usage")
        values["checks"] = None
    return values


def _read(name: str, text: str) -> object:
    if name == "budget" and text != "none":
        return budget(text)
    if name in _NUMBERS and text != "none":
        return number(name, text)
    return argv(f"--{name}", text) if name in _COMMANDS else text
