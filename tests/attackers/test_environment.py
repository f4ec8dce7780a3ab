"""The environment of an agent is chosen: what nobody has named for it never reaches it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane.agents.contract import agents, passed
from fairlane.settings import Settings
from tests.daemon.world import World

SECRETS = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "LD_PRELOAD", "GIT_DIR")
EXECUTORS = [
    "process",
    pytest.param(
        "tmux", marks=pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is missing")
    ),
]


@pytest.fixture
def short_tmux(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tmux server of this test's own, so that it inherits what the test sets."""
    with tempfile.TemporaryDirectory(prefix="fl") as folder:
        monkeypatch.setenv("TMUX_TMPDIR", folder)
        yield


def test_only_the_chosen_few_are_passed() -> None:
    everything = dict.fromkeys(SECRETS, "x") | {"PATH": "/bin", "LC_ALL": "C", "no_proxy": "a"}
    everything |= {"NODE_EXTRA_CA_CERTS": "/ca", "TRACEPARENT": "00-1", "MINE": "1", "MINERAL": "2"}
    always = {"PATH", "LC_ALL", "no_proxy", "NODE_EXTRA_CA_CERTS", "TRACEPARENT"}
    assert set(passed(everything)) == always
    assert set(passed(everything, ["MINE"])) == always | {"MINE"}
    assert set(passed(everything, ["MINE*"])) == always | {"MINE", "MINERAL"}


def test_entries_name_more_and_shipped_agents_name_their_logins() -> None:
    own = {"agents": {"claude": {"pass": ["EXTRA"]}, "my": {"argv": ["x"], "parser": "codex"}}}
    by_name = agents(Settings.parse(own | {"pools": {"p": {"pass": ["ACCOUNT"]}}}))
    assert {"EXTRA", "CLAUDE_CONFIG_DIR"} <= set(by_name["claude"].passes)
    assert by_name["my"].passes == by_name["codex"].passes
    keys = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}
    for name, key in keys.items():
        given = passed({key: "x", "OTHER_API_KEY": "y"}, by_name[name].passes)
        assert given == {key: "x"}, name
    assert not by_name["shell"].passes


@pytest.mark.slow
@pytest.mark.usefixtures("short_tmux")
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_real_agent_sees_what_is_named_for_it_and_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    for name in SECRETS:
        if name != "LD_PRELOAD":  # the loader would complain into every output
            monkeypatch.setenv(name, "secret-of-the-daemon")
    for name in ("OF_AGENT", "OF_POOL", "LC_TIME"):
        monkeypatch.setenv(name, "passed")
    world.settings(
        f'[worker]\nexecutor = "{executor}"\n[agents.shell]\npool = "p"\npass = ["OF_AGENT"]\n'
        'env = { SET = "agent", BOTH = "agent" }\n'
        '[pools.p]\npass = ["OF_POOL"]\nenv = { BOTH = "pool" }\n'
    )
    told = world.marks / "told"
    world.add({"id": "t", "command": ["sh", "-c", f'env -0 > "{told}"'], "env": {"TASK": "own"}})
    world.run()
    variables = dict(entry.partition("=")[::2] for entry in told.read_text().split("\0") if entry)
    assert [variables[name] for name in ("OF_AGENT", "OF_POOL", "LC_TIME")] == ["passed"] * 3
    assert (variables["SET"], variables["BOTH"], variables["TASK"]) == ("agent", "pool", "own")
    assert variables["FAIRLANE_TASK"] == "t"
    assert "secret-of-the-daemon" not in told.read_text()
    expected = {*passed(variables, ("OF_AGENT", "OF_POOL")), "SET", "BOTH", "TASK"}
    expected |= {"PWD", "OLDPWD", "SHLVL", "_"}  # the shell sets these itself
    strangers = {name for name in variables if not name.startswith("FAIRLANE_")} - expected
    assert strangers == set()
    assert not Path(world.home / "runs/t/1/orders").exists()


@pytest.mark.parametrize("name", ["", "A=B", "*", "A*B", 3])
def test_what_is_no_name_of_a_variable_is_refused(name: object) -> None:
    with pytest.raises(Exception, match=r"agents\.x\.pass") as error:
        Settings.parse({"agents": {"x": {"argv": ["x"], "pass": [name]}}})
    assert "invalid_settings" in str(getattr(error.value, "error_code", ""))
