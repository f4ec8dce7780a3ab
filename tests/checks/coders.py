"""A repository, and an agent that can resume: at each attempt it does what a script says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.daemon.world import World, until
from tests.workspaces.yard import commit, git, make_repository

#: Prints as claude does, tells what it was asked, and runs TASK.ATTEMPT.sh, if there is one.
CODER = """
import json, os, subprocess, sys
folder = sys.argv[1]
session = sys.argv[3] if len(sys.argv) > 3 else "session-of-" + os.environ["FAIRLANE_TASK"]
name = os.environ["FAIRLANE_TASK"] + "." + os.environ["FAIRLANE_ATTEMPT"]
told = {"prompt": sys.stdin.read(), "resumes": sys.argv[3:], "cwd": os.getcwd()}
with open(os.path.join(folder, name + ".json"), "w") as file:
    json.dump(told, file)
def say(**record):
    print(json.dumps(record | {"session_id": session}), flush=True)
say(type="system", subtype="init")
script = os.path.join(folder, name + ".sh")
code = subprocess.call(["sh", script], stdout=2) if os.path.exists(script) else 0
if code == 0:
    say(type="result", subtype="success", is_error=False, result="Did it.")
after = os.path.join(folder, name + ".after.sh")
if os.path.exists(after):
    subprocess.call(["sh", after], stdout=2)
sys.exit(code)
"""


class Coders:
    """One repository, project `web`, and what its agents do."""

    def __init__(self, world: World, root: Path) -> None:
        self.world = world
        self.folder = root / "scripts"
        self.folder.mkdir()
        program = self.folder / "coder.py"
        program.write_text(CODER)
        self.repo = make_repository(root / "web")
        (self.repo / ".gitignore").write_text("seen\n")
        (self.repo / "Makefile").write_text("test:\n\t@sh test.sh\n")
        (self.repo / "test.sh").write_text("grep -q '^right$' answer || { cat answer; exit 1; }\n")
        commit(self.repo, "a test")
        argv = [sys.executable, "-I", "-S", str(program), str(self.folder), "--resume", "{session}"]
        self._agent = f'[agents.coder]\nparser = "claude"\nargv = {json.dumps(argv)}\n'
        self._agent += 'stop = ["1s", "1s"]\n'
        self.settings()
        world.policy('retry.base = "0s"\nretry.jitter = 0\nretry.max_attempts = 1\n')
        world.fairlane("project", "add", "web", "--repo", str(self.repo))

    def settings(self, more: str = "") -> None:
        """More settings beside the agent."""
        self.world.settings(f"[worker]\nslots = 10\n{self._agent}{more}")

    def does(self, task: str, attempt: int, script: str) -> None:
        """What an attempt does."""
        (self.folder / f"{task}.{attempt}.sh").write_text(script)

    def does_after(self, task: str, attempt: int, script: str) -> None:
        """What it does after it has printed its success."""
        (self.folder / f"{task}.{attempt}.after.sh").write_text(script)

    def told(self, task: str, attempt: int) -> dict[str, Any]:
        """What an attempt was asked."""
        found: dict[str, Any] = json.loads((self.folder / f"{task}.{attempt}.json").read_text())
        return found

    def add(self, task: str, *checks: Any, **more: Any) -> None:
        """A task of the agent, with checks beside those of the project."""
        self.world.add(self.record(task, *checks, **more))

    def record(self, task: str, *checks: Any, **more: Any) -> dict[str, Any]:
        """The same as its fields."""
        rows = [_check(each) for each in checks]
        record = {"agent": "coder", "project": "web", "prompt": "Answer.", "checks": rows}
        return {"id": task, **record, **more}

    def run_folder(self, task: str, name: str) -> Path:
        """Where a check leaves its traces: `1.check.0`."""
        return self.world.home / "runs" / task / name

    def outcomes(self, task: str) -> list[tuple[str | None, str]]:
        """How its attempts ended."""
        return [(each.outcome, each.detail) for each in self.world.attempts(task)]

    def task(self, task: str) -> dict[str, Any]:
        """The task as `show` has it."""
        found: dict[str, Any] = self.world.fairlane("show", task)["task"]
        return found

    def until(self, task: str, *statuses: str) -> None:
        """Wait for it."""
        until(lambda: self.world.statuses()[task] in statuses)

    def file(self, task: str, name: str) -> str:
        """A file of a task's branch."""
        return git(self.repo, "show", f"fairlane/{task}:{name}")


def _check(each: Any) -> dict[str, Any]:
    """A shell script with a name of its own: (name, script) or (name, script, timeout)."""
    if isinstance(each, dict):
        return each
    name, script, *timeout = each
    row = {"name": name, "argv": ["sh", "-c", script]}
    return row | {"timeout": timeout[0]} if timeout else row


def waits(gate: Path) -> str:
    """A script that marks its start, and waits until there is a file."""
    return f'echo $$ >> "{gate}.started"; while ! test -e "{gate}"; do sleep 0.05; done'


def starts(gate: Path) -> list[str]:
    """The starts of such a script."""
    file = Path(f"{gate}.started")
    return file.read_text().split() if file.exists() else []
