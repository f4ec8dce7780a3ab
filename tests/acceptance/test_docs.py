"""What the documents show is what happens: commands, programs, tables."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from fairlane import Policy
from fairlane.policy import schema
from fairlane.service.planning import plan_scenario
from fairlane.service.scenario import check, parse, read, tasks, world
from fairlane.settings import Settings
from fairlane.simulation.worlds.workload import parse_workload, read_text
from tests import warm
from tests.acceptance.commands import ROOT
from tests.waiting import LIMIT_SECONDS

DOCUMENTS = [
    "README.md", "docs/quickstart.md", "docs/policies.md", "docs/embedding.md", "docs/operating.md",
    "docs/walk.md", "docs/results.md", "docs/sources.md", "docs/sources/beads.md",
    "docs/sources/cards.md", "docs/sources/taskmaster.md", "docs/sources/spec-kit.md",
    "docs/sources/backlog.md", "docs/sources/github.md", "docs/sources/sync.md",
    "docs/groups.md", "docs/notifications.md", "docs/simulation.md",
    "docs/workloads.md", "docs/torture.md",
    *(f"docs/coming-from/{each}.md" for each in (
        "loopr", "agency", "agent-queue", "gas-town", "cool-workflow",
    )),
]  # fmt: skip
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: A line without these is read by the shell as by `shlex`.
SHELL_SIGNS = frozenset("|&;<>()$`\\*?[]#~")
HOME_SHOWN = "~/.local/state/fairlane"


def blocks(name: str) -> list[tuple[str, str]]:
    """The fenced blocks of a document: (language, text)."""
    return [(found[1], found[2]) for found in BLOCK.finditer((ROOT / name).read_text())]


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it is shown to print."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(first, rest.rstrip()) for first, _, rest in (part.partition("\n") for part in parts)]


@pytest.fixture
def shell(tmp_path):
    """A shell in which `fairlane` is the one of this tree, with a home of its own."""
    bin_folder, home = tmp_path / "bin", tmp_path / "home"
    bin_folder.mkdir()
    script = bin_folder / "fairlane"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairlane "$@"\n')
    script.chmod(0o755)
    environment = {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(tmp_path),
        "FAIRLANE_HOME": str(home),
    }

    def type_in(command: str) -> str:
        if command.startswith("fairlane ") and not SHELL_SIGNS & set(command):
            plain = warm.run(shlex.split(command)[1:], environment, ROOT, seconds=LIMIT_SECONDS)
            return shown((plain.stderr + plain.stdout).decode())  # a pipe is written to at the end
        done = subprocess.run(
            ["sh", "-c", f"{command} 2>&1"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        return shown(done.stdout)

    def shown(text: str) -> str:
        return text.rstrip().replace(str(home), HOME_SHOWN)

    return type_in


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_console_blocks_show_what_is_printed(name, shell):
    for language, text in blocks(name):
        if language == "console":
            for command, shown in commands(text):
                assert shell(command) == shown, command


@pytest.mark.parametrize("name", DOCUMENTS)
def test_programs_print_what_stands_below_them(name):
    space: dict[str, Any] = {}
    found = blocks(name)
    for (language, program), (below, shown) in zip(found, [*found[1:], ("", "")], strict=True):
        if language == "python":
            assert below == "text", "a program is followed by what it prints"
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(program, name, "exec"), space)
            assert printed.getvalue() == shown


@pytest.mark.parametrize("name", DOCUMENTS)
def test_toml_blocks_are_good(name):
    for language, text in blocks(name):
        if language == "toml":
            if text.startswith("# fairlane.toml\n"):
                Settings.parse(tomllib.loads(text))
                continue
            if text.startswith("# workload.toml\n"):
                parse_workload(read_text(text.encode(), name), name)
                continue
            if "now =" not in text:
                Policy.parse(tomllib.loads(text), name)  # as policy.toml has it
                continue
            scenario = parse(text, name)
            assert check(scenario, plan_scenario(scenario)) == []


def rows(name: str, title: str) -> list[list[str]]:
    """The rows of the first table below a title."""
    below = (ROOT / name).read_text().split(f"{title}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert table
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_policy_key_is_documented_with_its_default():
    documented = {key.strip("`"): default.strip("`") for key, default, _ in policy_rows()}
    shown = Policy.preset("balanced").shown()
    del shown["budget"]
    expected = {schema.show_key(key): _written(value) for key, value in shown.items()}
    assert documented == expected | {'caps."SORT:NAME"': "none"}
    assert all(meaning for _, _, meaning in policy_rows())


def policy_rows() -> list[list[str]]:
    return rows("docs/policies.md", "## Every key")


def test_every_key_of_a_budget_is_documented():
    named = {key for row in rows("docs/policies.md", "## Budgets") for key in _names(row[0])}
    assert named == set(schema.BUDGET_ROWS)


def test_the_presets_are_listed():
    listed = {name.strip("`"): about for name, about in rows("README.md", "## Rules")}
    assert listed == Policy.presets()
    suggested = {_names(row[1])[0] for row in rows("docs/policies.md", "## Which preset?")}
    assert suggested == set(Policy.presets())


def test_every_key_of_a_scenario_is_documented():
    listed = {row[0].strip("`[]"): _names(row[1]) for row in scenario_rows()}
    inner = {"policy", "project", "task", "worker", "pool", "group", "usage", "expect"}
    assert set(listed) == {"top", *inner}
    assert set(listed["top"]) == set(read.TOP_KEYS) - inner
    assert listed["project"] == list(world.PROJECT_KEYS)
    assert listed["task"] == list(tasks.TASK_KEYS)
    assert listed["worker"] == list(world.WORKER_KEYS)
    assert listed["pool"] == list(world.POOL_KEYS)
    assert listed["group"] == list(world.GROUP_KEYS)
    assert listed["usage"] == list(world.USAGE_KEYS)
    assert listed["expect"] == list(read.EXPECT_KEYS)


def scenario_rows() -> list[list[str]]:
    return rows("docs/quickstart.md", "## 4. Write your own")


def _names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _written(value: object) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
