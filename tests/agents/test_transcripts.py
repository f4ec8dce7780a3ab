"""What the real agents say in a transcript, from their start by Fairlane to `fairlane logs`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlane.app import Fairlane
from tests.acceptance.commands import Said, fairlane
from tests.agents.model_api import CACHE_READ, CACHE_WRITE, INPUT, OUTPUT, ModelApi, say, use
from tests.agents.running import Runner, gives_namespaces

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]
LAST = "All is done.\n\n- one\n- two"


class World:
    """A home folder whose agents ask a model API on loopback."""

    def __init__(self, runner: Runner, folder: Path) -> None:
        self.home, self._folder = folder / "queue", folder
        launch = runner.launch("{prompt}", None)
        self._env = runner.environment(launch)
        path = {"PATH": self._env["PATH"], "HOME": self._env["HOME"]}
        self._call("init", **path)
        settings = {name: value for name, value in self._env.items() if name not in path}
        lines = [f"[agents.{runner.name}.env]", *(f"{k} = '{v}'" for k, v in settings.items())]
        if runner.name == "codex":
            argv = [word for word in launch.argv if word != "{prompt}"]
            first = f"[agents.codex]\nargv = {toml(argv)}\nmodel = 'm1'"
            lines.insert(0, first)
        with (self.home / "fairlane.toml").open("a") as file:
            file.write("\n" + "\n".join(lines) + "\n")

    def _call(self, *words: object, **env: str) -> Said:
        said = fairlane("--home", self.home, *words, **env)
        assert said.code == 0, said
        return said

    def run(self, agent: str, repository: Path) -> list[dict[str, Any]]:
        """The transcript of one task."""
        names = {name: self._env[name] for name in ("PATH", "HOME")}
        self._call("project", "add", "web", "--repo", repository, **names)
        self._call("add", "Look", "--id", "a", "--project", "web", "--agent", agent, **names)
        self._call("run", **names)
        entries: list[dict[str, Any]] = self._call("--json", "logs", "a").document["transcript"]
        return entries

    def text(self) -> str:
        return self._call("logs", "a").out


def toml(words: list[str]) -> str:
    return "[" + ", ".join(f"'''{word}'''" for word in words) + "]"


Runners = Callable[[str, ModelApi], Runner]


def test_claude(runner_of: Runners, repository: Path, tmp_path: Path) -> None:
    script = (
        use("Bash", command="echo one; echo two", description="Says two words"),
        use("Read", file_path="nothing.txt"),
        say(LAST),
    )
    with ModelApi(*script) as api:
        world = World(runner_of("claude", api), tmp_path)
        entries = world.run("claude", repository)
    told = [(entry["kind"], entry["tool"] or entry["text"], entry["argument"]) for entry in entries]
    assert told[0][0] == "turn"
    assert told[0][1].startswith("started (")
    assert told[1:3] == [("tool", "Bash", "echo one; echo two"), ("result", "one\ntwo", None)]
    assert told[3][:2] == ("tool", "Read")
    assert told[3][2].endswith("nothing.txt")
    assert (told[4][0], "does not exist" in told[4][1]) == ("result", True)
    assert told[5:] == [("said", LAST, None), ("turn", "ended", None), ("answer", LAST, None)]
    assert entries[-2]["tokens"] == {
        "input": 3 * INPUT, "output": 3 * OUTPUT, "cache_read": 3 * CACHE_READ,
        "cache_write": 3 * CACHE_WRITE,
    }  # fmt: skip
    assert all(entry["at"] for entry in entries)
    assert world.text().count("- one") == 1, "the answer is not said twice"
    with Fairlane(world.home) as queue:
        assert queue.show("a")["answer"] == LAST


def test_codex(runner_of: Runners, repository: Path, tmp_path: Path) -> None:
    command = "echo one; echo two; exit 3"
    script = (use("exec_command", cmd=command, yield_time_ms=5000), say(LAST))
    with ModelApi(*script) as api:
        world = World(runner_of("codex", api), tmp_path)
        entries = world.run("codex", repository)
    told = [
        (entry["kind"], entry["tool"] or entry["text"], entry["argument"])
        for entry in entries
        if entry["kind"] != "error"  # that it does not know the model
    ]
    assert told[:2] == [("turn", "started", None), ("tool", "shell", command)]
    assert told[3:] == [("said", LAST, None), ("turn", "ended", None), ("answer", LAST, None)]
    tokens = {"input": 2 * INPUT, "output": 2 * OUTPUT, "cache_read": 2 * CACHE_READ}
    assert entries[-2]["tokens"] == {**tokens, "cache_write": 0}
    assert all(entry["at"] for entry in entries)
    if told[2][1] != "one\ntwo\nexit 3" and not gives_namespaces():
        pytest.skip("this kernel gives codex no sandbox")
    assert told[2] == ("result", "one\ntwo\nexit 3", None)
    with Fairlane(world.home) as queue:
        assert queue.show("a")["answer"] == LAST
