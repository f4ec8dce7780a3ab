"""The sandbox for a user who is not root: an agent does its task, and reads no secret."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlane
from tests.waiting import LIMIT_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

NOBODY = 65534
#: Finds out whether a Python can run Fairlane, and which kinds of sandbox it can make.
PROBE = """
import json, fairlane.cli.main
from fairlane.executors.sandbox import machine
print(json.dumps({"bwrap": machine.bwrap_problem(), "landlock": machine.landlock_problem()}))
"""
#: The agent: tries to read secrets, asks Fairlane through its socket, works, and commits.
AGENT = """
cat "$1" "$2/token" "$2/fairlane.db" "$2/policy.toml" > loot 2>/dev/null
"$3" -m fairlane report --tokens input=5 >&2 || exit 8
(echo overwritten > "$1") 2>/dev/null
id -u > who
git add -A && git commit -qm 'by the agent'
"""


class Stranger:
    """A user with a home folder, a Python and an account of their own."""

    def __init__(self, top: Path) -> None:
        self.top, self.home, self.repo = top, top / "home", top / "repo"
        self.as_user: list[str] = []
        if os.getuid() == 0:
            ids = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            setpriv = shutil.which("setpriv") or pytest.skip("setpriv is missing")
            self.as_user = [setpriv, *ids, "env"]  # setpriv itself keeps rights until it is over
            os.chown(top, NOBODY, NOBODY)
        self.python = str(top / "python" / "bin" / "python")
        self.packages = [str(Path(fairlane.__file__).parents[1])]
        self.packages += [path for path in sys.path if path.endswith("-packages")]

    def run(self, *words: str) -> str:
        """A command of this user; what it says."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.top)}
        line = [*self.as_user, *words]
        done = subprocess.run(
            line, capture_output=True, text=True, errors="replace", env=env, cwd=self.top,
            timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode:
            raise OSError(f"{' '.join(words[:4])}: {(done.stderr or done.stdout).strip()[-2000:]}")
        return done.stdout

    def fairlane(self, *words: str) -> Any:
        text = self.run(self.python, "-m", "fairlane", "--home", str(self.home), "--json", *words)
        return json.loads(text)

    def settle(self) -> dict[str, str]:
        """Get a Python that this user can read, with what Fairlane needs; which kinds work."""
        problems = []
        for python in (os.path.realpath(sys.executable), "/usr/bin/python3"):
            try:
                folder = str(self.top / "python")
                self.run(python, "-m", "venv", "--clear", "--without-pip", folder)
                (packages,) = (self.top / "python" / "lib").glob("python*/site-packages")
                (packages / "fairlane.pth").write_text("\n".join(self.packages))
                found: dict[str, str] = json.loads(self.run(self.python, "-c", PROBE))
                return found
            except (OSError, ValueError) as error:
                problems.append(str(error).splitlines()[-1])
        pytest.skip(f"no Python that another user can run Fairlane with: {'; '.join(problems)}")


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    """In a folder that others can enter: those of pytest are closed."""
    top = Path(tempfile.mkdtemp(prefix="fl-"))
    yield Stranger(top)
    shutil.rmtree(top)


def repository(stranger: Stranger) -> None:
    stranger.run("git", "init", "-q", "-b", "main", str(stranger.repo))
    stranger.run("git", "config", "--global", "user.name", "Ada")
    stranger.run("git", "config", "--global", "user.email", "ada@example.org")
    stranger.run("git", "-C", str(stranger.repo), "commit", "-q", "--allow-empty", "-m", "one")


@pytest.mark.parametrize("kind", ["none", "bwrap", "landlock"])
def test_an_agent_of_an_ordinary_user(stranger: Stranger, kind: str) -> None:
    """Without a sandbox it reads everything: the control of the other two."""
    if problem := stranger.settle().get(kind):
        pytest.skip(f"as user {NOBODY}: {problem}")
    repository(stranger)
    key = stranger.top / "key"
    stranger.run("sh", "-c", f"umask 077; echo canary-key > {key}")
    stranger.fairlane("init")
    token = (stranger.home / "token").read_text().strip()
    read = json.dumps([str(stranger.top / ".gitconfig"), *stranger.packages])
    settings = f'[sandbox]\nkind = "{kind}"\nread = {read}\n'
    stranger.run("sh", "-c", f"echo '{settings}' > {stranger.home}/fairlane.toml")
    stranger.fairlane("project", "add", "web", "--repo", str(stranger.repo))
    words = [str(key), str(stranger.home), stranger.python]
    more = ["--id", "t", "--project", "web", "--max-attempts", "1"]
    stranger.fairlane("add", *more, "--", "sh", "-c", AGENT, "agent", *words)
    stranger.fairlane("run", "--until-idle")
    shown = stranger.fairlane("show", "t")
    assert shown["task"]["status"] == "done", json.dumps(shown["attempts"])
    assert shown["attempts"][0]["tokens"]["input"] == 5
    git = ("git", "-C", str(stranger.repo), "show")
    user = NOBODY if stranger.as_user else os.getuid()
    assert stranger.run(*git, "fairlane/t:who") == f"{user}\n"
    loot = stranger.run(*git, "fairlane/t:loot")
    if kind == "none":
        assert all(secret in loot for secret in ("canary-key", "SQLite format", token))
        assert key.read_text() == "overwritten\n"
    else:
        assert loot == ""
        assert key.read_text() == "canary-key\n"
