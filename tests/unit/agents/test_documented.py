"""What docs/agents.md says is so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from fairlane.agents.contract import agents, shipped
from fairlane.model.task import Task
from fairlane.settings import Settings
from tests.launching import launch_of
from tests.unit.agents.transcripts import read

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE) if found == language]


def rows(title: str) -> list[list[str]]:
    """The rows of the first table below a title."""
    below = PAGE.split(f"{title}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert table
    cells = [line.strip("|").split("|") for line in table[0].splitlines()[2:]]
    return [[cell.strip().replace("`", "") for cell in row] for row in cells]


@pytest.mark.parametrize("text", blocks("toml"))
def test_entries_can_be_used_as_they_are(text):
    table = tomllib.loads(text)
    found = agents(Settings.parse(table))
    for name in table["agents"]:
        launch = launch_of(found[name], Task("t1"), "go")
        assert (launch.stdin is None) is ("go" in launch.argv)
        assert "{" not in "".join(launch.argv)


def test_a_changed_claude_still_resumes():
    found = agents(Settings.parse(tomllib.loads(blocks("toml")[0])))["claude"]
    assert found.resumes
    assert launch_of(found, Task("t1"), "go", session="s1").argv[-2:] == ("--resume", "s1")


def test_the_agents_are_listed():
    listed = {row[0]: row for row in rows("# Agents")}
    assert set(listed) == set(shipped())
    for name, agent in shipped().items():
        assert listed[name][2] == (agent.pool or "none")
        assert listed[name][3] == agent.parser
        assert (listed[name][4] != "no") is agent.resumes
        if name not in ("shell", "demo"):
            start = listed[name][1].split()
            assert list(agent.argv[: len(start)]) == start


def test_permissions_are_listed():
    for name, *cells in rows("## Permissions"):
        flags = [" ".join(shipped()[name].flags.get(each, ())) for each in ("read", "edit", "full")]
        assert cells == flags


def test_records_of_a_script_are_read():
    verdict, _ = read("demo", blocks("json")[0].splitlines(), 1)
    assert (verdict.outcome, verdict.retry_after, verdict.usd) == ("throttled", 30_000_000, 10_000)


def test_every_variable_of_the_stand_in_is_listed():
    source = (ROOT / "src" / "fairlane" / "agents" / "demo.py").read_text(encoding="utf-8")
    known = set(re.findall(r"FAIRLANE_DEMO_[A-Z_]+[A-Z]", source))
    assert {row[0] for row in rows("## The stand-in")} == known
