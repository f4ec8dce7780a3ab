"""What the commands that people type most import, open and ask: kept, so that growth is seen."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.cli.main import run

HERE = Path(__file__).parent
COMMANDS = {
    "add": ["add", "Fix it"],
    "list": ["list"],
    "status": ["status"],
    "why": ["why", "t1"],
}
#: Each takes milliseconds to import, and none of them is needed here.
HEAVY = {
    "argparse", "asyncio", "click", "concurrent.futures", "dataclasses", "email", "hashlib", "http",
    "importlib.metadata", "inspect", "logging", "rich", "shutil", "socket", "ssl", "subprocess",
    "tempfile", "tomlkit", "uuid", "yaml",
}  # fmt: skip
#: Most SQLite statements of a command, in a home with one lane; each further lane is one more.
STATEMENTS = {"add": 45, "list": 32, "status": 42, "why": 34}
_TELL = """\
import sys
from fairlane.cli.main import run
code = run(sys.argv[1:])
print("\\n".join(sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder with one task."""
    for name in [name for name in os.environ if name.startswith("FAIRLANE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FAIRLANE_HOME", str(tmp_path / "home"))
    assert run(["add", "Fix the build"]) == 0


def kept() -> dict[str, set[str]]:
    """Command -> the modules of ours that it may import, out of `imported.txt`."""
    found: dict[str, set[str]] = {name: set() for name in COMMANDS}
    for line in (HERE / "imported.txt").read_text(encoding="utf-8").splitlines():
        module, *commands = line.split()
        for command in commands:
            found[command].add(module)
    return found


def imported(command: str) -> set[str]:
    """The modules that a process of this command has imported in the end."""
    argv = [sys.executable, "-c", _TELL, *COMMANDS[command]]
    ended = subprocess.run(argv, capture_output=True, text=True, check=True)
    return set(ended.stderr.split())


@pytest.mark.usefixtures("home")
def test_commands_import_what_is_kept_and_nothing_heavy():
    of_each = {command: imported(command) for command in COMMANDS}
    ours = {
        command: {name for name in modules if name.partition(".")[0] == "fairlane"}
        for command, modules in of_each.items()
    }
    rows = {name: [c for c in COMMANDS if name in ours[c]] for name in set().union(*ours.values())}
    text = "".join(f"{name} {' '.join(rows[name])}\n" for name in sorted(rows))
    assert ours == kept(), f"if this is meant, tests/unit/cli/imported.txt is now:\n{text}"
    assert not set().union(*of_each.values()) & HEAVY


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_opens_the_store_once_and_asks_little(command, monkeypatch):
    opened: list[object] = []
    asked: list[str] = []
    connect = sqlite3.connect

    def counted(path, **settings):
        connection = connect(path, **settings)
        connection.set_trace_callback(asked.append)
        opened.append(path)
        return connection

    monkeypatch.setattr(sqlite3, "connect", counted)
    assert run(COMMANDS[command]) == 0
    assert len(opened) == 1
    told = [words for words in asked if not words.startswith("--")]
    assert len(told) <= STATEMENTS[command], "\n".join(told)
    assert not [words for words in told if "sqlite_schema" in words]
