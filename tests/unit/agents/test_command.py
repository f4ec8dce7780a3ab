"""How agents are started: element by element, nothing through a shell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fairlane.agents.contract import agents, installed, shipped
from fairlane.model.errors import Invalid
from fairlane.model.task import POOLS, SHIPPED, Task
from fairlane.settings import Settings
from tests.launching import launch_of

TASK = Task("t1", title="Add a login", project="web")


def chosen(name, **entry):
    return agents(Settings.parse({"agents": {name: entry}}))[name]


def test_the_shipped_agents_are_those_that_settings_know():
    assert set(shipped()) == set(SHIPPED)
    assert {name: agent.pool for name, agent in shipped().items() if agent.pool} == POOLS


def test_claude_reads_its_prompt_from_standard_input():
    launch = launch_of(shipped()["claude"], TASK, "--help me")
    start = ("claude", "-p", "--output-format", "stream-json", "--verbose")
    assert launch.argv == (*start, "--permission-mode", "acceptEdits")
    assert launch.stdin == "--help me"
    assert launch.final == (("type", ("result",)),)
    assert (launch.stop, launch.grace) == ((15.0, 10.0), 30.0)


def test_a_session_and_a_model_have_their_flags_only_where_they_are():
    launch = launch_of(shipped()["claude"], TASK, "go", session="s-1", model="opus[1m]")
    assert launch.argv[-4:] == ("--model", "opus[1m]", "--resume", "s-1")
    codex = shipped()["codex"]
    fresh = ("codex", "exec", "--json", "--skip-git-repo-check", "-s", "workspace-write", "-")
    assert launch_of(codex, TASK, "go").argv == fresh
    resumed = launch_of(codex, TASK, "go", session="s-1").argv
    assert resumed[:5] == ("codex", "exec", "-s", "workspace-write", "resume")
    assert resumed[-2:] == ("s-1", "-")


def test_a_session_that_looks_like_an_option_is_not_used():
    for session in ("--dangerously-skip-permissions", "-x", "a b", ""):
        launch = launch_of(shipped()["claude"], TASK, "go", session=session)
        assert "--resume" not in launch.argv
    with pytest.raises(Invalid, match="not the name of a model: '--yolo'"):
        launch_of(shipped()["claude"], TASK, "go", model="--yolo")


@pytest.mark.parametrize(
    ("agent", "permissions", "flags"),
    [
        ("claude", "read", ("--permission-mode", "plan")),
        ("claude", "full", ("--permission-mode", "bypassPermissions")),
        ("codex", "read", ("-s", "read-only")),
        ("codex", "full", ("--dangerously-bypass-approvals-and-sandbox",)),
        ("gemini", "edit", ("--approval-mode", "auto_edit")),
        ("opencode", "full", ("--auto",)),
    ],
)
def test_permissions_are_flags(agent, permissions, flags):
    argv = launch_of(chosen(agent, permissions=permissions), TASK, "go").argv
    assert any(argv[at : at + len(flags)] == flags for at in range(len(argv)))


def test_nothing_asks_for_full_permissions_by_itself():
    for agent in shipped().values():
        assert agent.permissions == "edit"
        argv = launch_of(agent, Task("t", command=("true",)), "go").argv
        assert not {"bypassPermissions", "yolo", "--auto"} & set(argv)
        assert not any("danger" in word for word in argv)


def test_shell_runs_the_command_as_it_is():
    task = Task("t1", command=("sh", "-c", "echo {prompt} $HOME"))
    launch = launch_of(shipped()["shell"], task, "go")
    assert (launch.argv, launch.stdin) == (task.command, None)
    with pytest.raises(Invalid, match="task t1 has no command"):
        launch_of(shipped()["shell"], TASK, "go")


def test_a_user_adds_an_agent_without_code():
    own = chosen(
        "aider",
        argv=["aider", "--yes-always", "--model", "{model}", "--message", "{prompt}"],
        pool="anthropic",
        stop=["3s", "1s"],
        grace="5s",
        env={"AIDER_ANALYTICS": "false"},
    )
    launch = launch_of(own, TASK, "fix $(rm -rf /) `x`; it's")
    assert launch.argv[1:] == ("--yes-always", "--message", "fix $(rm -rf /) `x`; it's")
    assert (launch.stop, launch.grace, launch.stdin) == ((3.0, 1.0), 5.0, None)
    assert (own.parser, own.pool, own.resumes) == ("plain", "anthropic", False)
    assert launch.env == {"AIDER_ANALYTICS": "false"}


def test_an_entry_without_argv_is_like_the_agent_of_its_parser():
    own = chosen("work", parser="claude", pool="work", env={"CLAUDE_CONFIG_DIR": "~/.claude-2"})
    launch = launch_of(own, TASK, "go")
    assert launch.argv == launch_of(shipped()["claude"], TASK, "go").argv
    assert launch.env["CLAUDE_CONFIG_DIR"] == str(Path("~/.claude-2").expanduser())
    assert launch.env["CLAUDE_CODE_MAX_RETRIES"] == "3"
    assert (own.pool, own.name) == ("work", "work")


def test_a_changed_command_line_decides_how_the_prompt_goes():
    own = chosen("claude", argv=["claude", "-p", "{permissions}", "--", "{prompt}"])
    launch = launch_of(own, TASK, "-x", session="s-1")
    assert launch.argv == ("claude", "-p", "--permission-mode", "acceptEdits", "--", "-x")
    assert launch.stdin is None
    own = chosen("mine", argv=["mine", "--stdin"])
    assert launch_of(own, TASK, "-x").stdin == "-x"


def test_a_prompt_that_begins_with_a_dash_is_no_option():
    own = chosen("mine", argv=["mine", "{prompt}", "--task={task}", "{project}/{kind}: {title}"])
    expected = ("mine", " --help", "--task=t1", "web/code: Add a login")
    assert launch_of(own, TASK, "--help").argv == expected


def test_other_braces_are_left_alone():
    own = chosen("mine", argv=["mine", '{"a": {b}}', "{prompt}"])
    assert launch_of(own, TASK, "{model} {session}").argv[1:] == ('{"a": {b}}', "{model} {session}")


def test_a_prompt_can_be_an_argument():
    own = chosen("mine", argv=["mine", "{prompt}"])
    assert launch_of(own, TASK, "a\0b\ud800").argv == ("mine", "ab?")
    with pytest.raises(Invalid, match="the prompt of t1 is too long for a command line"):
        launch_of(own, TASK, "x" * 140_000)
    assert launch_of(shipped()["claude"], TASK, "x" * 140_000).stdin


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"pool": "p"}, "agent mine has no argv"),
        ({"parser": "claud"}, "agent mine has no argv"),
        ({"argv": ["x"], "parser": "claud"}, "agent mine: there is no parser 'claud'"),
    ],
)
def test_a_wrong_entry_is_refused(entry, told):
    with pytest.raises(Invalid, match=told):
        chosen("mine", **entry)


def test_a_program_is_looked_for_on_the_path(tmp_path):
    program = tmp_path / "mine"
    own = chosen("mine", argv=["mine", "{prompt}"], env={"PATH": str(tmp_path)})
    assert installed(own) is None
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert installed(own) == str(program)
    assert installed(shipped()["demo"]) == sys.executable
    assert installed(shipped()["shell"]) == "{command}"
