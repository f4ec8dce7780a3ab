"""Only the executors of local processes know process numbers, /proc and run records."""

from __future__ import annotations

import re

import pytest

from tests.tidy.repository import texts

WORDS = re.compile(r"(?i)(?<![a-z])(?:pids?|pid_\w+|pidfd\w*|killpg|getpgid|waitpid)\b|/proc\b")
RECORDS = re.compile(r"\b(?:exit|runner)\.json\b|\b(?:stdout|stderr)\.log\b")
INSIDE = (
    "src/fairlane/executors/process.py",
    "src/fairlane/executors/runner/",
    "src/fairlane/executors/sandbox/",
    "src/fairlane/executors/starting.py",
    "src/fairlane/executors/tmux.py",
)
#: Other processes than attempts, and why they are known.
EXCEPTIONS = {
    "src/fairlane/cli/work/daemon.py": "waits for the daemon that it starts, and signals it",
    "src/fairlane/cli/work/serve.py": "the server names itself in server.json",
    "src/fairlane/daemon/source_job.py": "ends the programs of a source that takes too long",
    "src/fairlane/intake/files.py": "ends a program of a source that takes too long",
    "src/fairlane/runtime/lock.py": "the daemon names itself in daemon.json",
    "src/fairlane/service/home/doctor.py": "names the daemon that holds the lock",
    "src/fairlane/service/home/old_home.py": "names the daemon of the version before",
    "src/fairlane/simulation/child.py": "a simulation ends first where memory runs out",
    "src/fairlane/store/sqlite/lock.py": "names the process that holds the write lock",
    "src/fairlane/workspaces/git.py": "ends a git that takes too long, with its programs",
    "src/fairlane/workspaces/upload.py": "what bwrap shows to the git that reads a clone",
}


def hits(pattern: re.Pattern[str]) -> dict[str, str]:
    """The first line of every source file that has such a word."""
    return {
        path: line.strip()
        for path, text in texts().items()
        if path.startswith("src/") and path.endswith(".py") and not path.startswith(INSIDE)
        for line in reversed(text.splitlines())
        if pattern.search(line)
    }


@pytest.mark.parametrize("line", ["attempt.pid", "pid_started", "os.pidfd_open(1)", "/proc/1/stat"])
def test_the_pattern_catches_what_it_should(line: str) -> None:
    assert WORDS.search(line)
    assert not WORDS.search("rapid /processes os.getpid() cupid")


def test_processes_are_known_to_their_executors_alone() -> None:
    known = hits(WORDS)
    assert {path: line for path, line in known.items() if path not in EXCEPTIONS} == {}
    assert [path for path in EXCEPTIONS if path not in known] == []


def test_the_records_of_a_run_are_read_by_their_executors_alone() -> None:
    allowed = {"src/fairlane/executors/runfiles.py"}  # says how large they may be
    assert hits(RECORDS).keys() <= allowed
