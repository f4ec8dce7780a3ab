"""Sandbox settings: read, merged and refused; what doctor says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.agents.contract import argv_of, in_sandbox, shipped
from fairlane.executors.sandbox import machine
from fairlane.executors.sandbox.view import Visible, without_git_settings
from fairlane.model.errors import Invalid
from fairlane.model.task import Task
from fairlane.service.home.doctor import _sandbox, _shown_store
from fairlane.settings import Settings


def test_a_project_wins_over_an_agent_and_an_agent_over_all():
    settings = Settings.parse(
        {
            "sandbox": {"kind": "bwrap", "memory": "2G", "project": {"web": {"network": False}}},
            "agents": {"codex": {"sandbox": {"memory": "1GiB", "read": ["~/x"]}}},
        }
    )
    assert settings.sandbox_for("claude", "api").memory == 2 << 30
    both = settings.sandbox_for("codex", "web")
    assert (both.kind, both.memory, both.network, both.read) == ("bwrap", 1 << 30, False, ("~/x",))
    assert Settings().sandbox_for("codex", "web").kind == "none"


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        ({"knd": "bwrap"}, "unknown key 'sandbox.knd'", "Did you mean 'kind'?"),
        ({"kind": "bwrp"}, "'bwrp' is none of none, bwrap, landlock", "Did you mean 'bwrap'?"),
        ({"memory": "lots"}, "sandbox.memory: not a size: 'lots'", 'Write it as "512M" or "4G".'),
        ({"write": ["../x"]}, "not a whole path: '../x'", 'Write it as "/data/models"'),
        ({"project": {"web": {"flies": 3}}}, "unknown key 'flies'", "Did you mean 'files'?"),
        (
            {"kind": "landlock", "project": {"web": {"network": False}}},
            "landlock restricts files only, not the network",
            'Write kind = "bwrap", or network = true.',
        ),
        (
            {"project": {"web": {"network": False}}},
            "without a sandbox network = false restricts nothing",
            'Write kind = "bwrap", or network = true.',
        ),
    ],
)
def test_what_makes_no_sense_is_refused(table: dict[str, Any], message: str, hint: str):
    with pytest.raises(Invalid) as refused:
        Settings.parse({"sandbox": table})
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_codex_has_no_sandbox_of_its_own_inside_ours():
    codex, task = shipped()["codex"], Task("t1")
    assert "workspace-write" in argv_of(codex, task, "x")
    assert "danger-full-access" in argv_of(in_sandbox(codex), task, "x")


def test_doctor_finds_a_sandbox_that_does_not_work(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    (found,) = _sandbox(Settings.parse({"sandbox": {"kind": "bwrap"}}), Path())
    assert (found.level, found.message) == ("wrong", "bwrap: bwrap is not installed")
    assert "do not start" in found.hint


def test_doctor_finds_a_path_that_would_show_the_store(tmp_path: Path):
    table = {"kind": "bwrap", "read": ["/usr/share"], "project": {"web": {"write": ["/"]}}}
    (found,) = _shown_store(tmp_path, Settings.parse({"sandbox": table}), "sqlite:/var/x.db")
    assert (found.level, found.what) == ("wrong", "sandbox")
    assert f"/ cannot be shown in a sandbox: {tmp_path} lies in it" in found.message


def test_git_does_without_settings_that_an_agent_cannot_read():
    env = {"HOME": "/home/ada", "LANG": "C"}
    assert without_git_settings(env, Visible())["GIT_CONFIG_GLOBAL"] == "/dev/null"
    shown = Visible(read=("/home/ada/.gitconfig",))
    assert "GIT_CONFIG_GLOBAL" not in without_git_settings(env, shown)
    own = env | {"GIT_CONFIG_GLOBAL": "/srv/gitconfig"}
    assert without_git_settings(own, Visible()) == own


def test_doctor_proposes_what_works():
    (found,) = _sandbox(Settings(), Path())
    assert found.level == "fine"
    assert (machine.proposal() or "none works") in found.message


def test_doctor_says_who_keeps_the_limits(tmp_path: Path):
    *_, found = _sandbox(Settings.parse({"sandbox": {"memory": "4G"}}), tmp_path)
    kept = " and ".join(machine.kernel_limits(tmp_path)) or "no limit"
    assert (found.what, found.level) == ("limits", "fine")
    assert found.message == f"the kernel keeps {kept}; the runner watches the rest"
