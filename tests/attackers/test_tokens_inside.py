"""Inside an attempt: commands and tools that decide for people are refused; a guard, no wall."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from fairlane.app import open_context
from fairlane.app.verbs import Fairlane
from fairlane.cli.commands import fairlane
from fairlane.cli.inside import MAY
from fairlane.model.errors import Forbidden
from fairlane.service.operations.table import OPERATIONS
from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]


def commands(group: click.Group, parent: click.Context | None = None) -> Iterator[click.Context]:
    """The context of every command that does something."""
    name = group.name if parent is None else None
    ctx = click.Context(group, parent, info_name=name or group.name)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, ctx)
        else:
            yield click.Context(command, ctx, info_name=name)


CONTEXTS = {ctx.command_path.partition(" ")[2]: ctx for ctx in commands(fairlane)}


def test_the_list_names_commands_that_there_are():
    groups = {path.partition(" ")[0] for path in CONTEXTS if " " in path}
    assert CONTEXTS.keys() | groups >= MAY


@pytest.mark.parametrize("path", sorted(CONTEXTS.keys() - MAY))
def test_every_other_command_is_refused_before_it_does_anything(path, monkeypatch):
    monkeypatch.setenv("FAIRLANE_LEASE", "L1")
    ctx = CONTEXTS[path]
    assert ctx.command.callback is not None
    with ctx.scope(cleanup=False), pytest.raises(Forbidden) as refused:
        ctx.command.callback()
    assert refused.value.message == f"fairlane {path}: not inside an attempt"
    assert (refused.value.error_code, refused.value.exit_code) == ("inside_attempt", 1)
    assert "FAIRLANE_LEASE" in refused.value.hint


def test_what_decides_for_people_is_among_them():
    decides = {
        "pause", "resume", "clear", "drain", "edit", "cancel", "retry", "lease", "reclaim", "run",
        "up", "down", "serve", "link", "import", "sync", "undo", "init", "service install",
        "backup", "migrate", "convert", "group add", "group set", "workspaces clean", "demo",
    }  # fmt: skip
    decides |= {path for path in CONTEXTS if path.split()[0] in ("policy", "project", "worker")}
    assert decides <= CONTEXTS.keys() - MAY


def test_the_documentation_says_the_same():
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    section = page.partition("## What an attempt may do")[2].partition("\n## ")[0]
    granted, _, refused = section.partition("All other commands")
    for path in MAY - {"workspaces"}:
        assert f"`{path}`" in granted, path
    for path in CONTEXTS.keys() - MAY:
        assert f"`{path}`" in refused or f"`{path.split()[0]}`" in refused, path


@pytest.fixture
def attempt(tmp_path) -> dict[str, str]:
    """The variables of an attempt of task `own`, which is in flight."""
    with Fairlane(tmp_path) as queue:
        queue.ask("project_add", name="web", values={})
        tasks = [{"id": "own", "prompt": "x", "project": "web"}, {"id": "other", "prompt": "x"}]
        queue.ask("add", tasks=tasks)
        leases: Any = queue.lease(worker="box1")["leases"]
        lease = next(each["lease"] for each in leases if each["task"] == "own")
    more = {"FAIRLANE_HOME": str(tmp_path), "FAIRLANE_TASK": "own", "FAIRLANE_LEASE": lease}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "HOME": "/x"} | more


def run(env: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlane", *words]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )


@pytest.mark.slow
def test_a_real_command_inside_an_attempt(attempt, tmp_path):
    refused = run(attempt, "--json", "policy", "set", "attempt.may_add.command=true")
    assert refused.returncode == 1
    error = json.loads(refused.stdout)["error"]
    assert error["code"] == "inside_attempt"
    assert error["message"] == "fairlane policy set: not inside an attempt"
    assert run(attempt, "policy", "--help").returncode == 0
    assert "other" in run(attempt, "list").stdout, "it may look: it could open the store itself"
    added = run(attempt, "add", "Do a part", "--id", "part")
    assert added.returncode == 0, added
    with Fairlane(tmp_path) as queue:
        part: Any = queue.show("part")["task"]
        assert (part["parent"], part["project"]) == ("own", "web")
    beyond = run(attempt, "add", "--id", "bad", "--", "sh", "-c", "id")
    assert beyond.returncode == 1
    assert "command: an attempt cannot give it" in beyond.stderr
    assert "attempt.may_add.command is false" in beyond.stderr
    assert run(attempt, "report", "--note", "half").returncode == 0
    assert run(attempt, "complete", "L999").returncode == 1
    assert run(attempt, "complete").returncode == 0
    late = run(attempt, "--json", "add", "More")
    assert json.loads(late.stdout)["error"]["code"] == "lease_ended"


def test_another_home_does_not_know_the_lease(attempt, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("FAIRLANE_LEASE", "L77")
    another, refusal = tmp_path_factory.mktemp("another"), "no lease 'L77'"
    with Fairlane(another) as queue, pytest.raises(Forbidden, match=refusal) as refused:
        queue.ask("add", tasks=[{"prompt": "x"}])
    assert "unset FAIRLANE_LEASE" in refused.value.hint


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_decided_for_the_library_and_the_tools(attempt, name, monkeypatch):
    """`Fairlane`, the command line and MCP over standard input all answer through this call."""
    monkeypatch.setenv("FAIRLANE_LEASE", attempt["FAIRLANE_LEASE"])
    operation = OPERATIONS[name]
    from fairlane.app import answer_here

    context = open_context(Path(attempt["FAIRLANE_HOME"]))
    try:
        if operation.attempt == "":
            with pytest.raises(Forbidden) as refused:
                answer_here(context, name, **operation.example)
            assert refused.value.error_code == "inside_attempt"
            assert refused.value.message.startswith(f"{name}: not inside")
        elif operation.attempt == "lease":
            with pytest.raises(Forbidden):
                answer_here(context, name, **{**operation.example, "lease": "L999"})
    finally:
        context.store.close()
