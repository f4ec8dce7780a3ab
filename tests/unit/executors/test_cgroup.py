"""What is written into a cgroup and read from it, in a folder of plain files.

Most machines give a test no controllers; `tests/attackers/test_sandbox_cgroup.py` uses real groups.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.executors.runner import cgroup
from fairlane.executors.runner.confine import Confinement

LIMITS = {"memory": 200 << 20, "processes": 20, "files": None, "cpu": None}
BOX: Any = {"kind": "none", "words": [], "read": [], "write": [], "temporary": "", **LIMITS}


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for the group of the run folder `.`."""
    path = tmp_path / cgroup.name_of(".")
    path.mkdir()
    (path / "cgroup.kill").touch()
    monkeypatch.setattr(cgroup, "own_group", lambda: str(tmp_path))
    monkeypatch.setattr(cgroup, "KILL_SECONDS", 0.0)  # a real one can be removed with its files
    return path


@pytest.fixture
def held(group: Path) -> Confinement:
    held = Confinement(BOX)
    held.prepare(["true"])
    return held


def test_limits_are_written_where_the_kernel_reads_them(group: Path, held: Confinement) -> None:
    names = ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max")
    told = {name: (group / name).read_text() for name in names}
    assert told == {
        "memory.max": str(200 << 20),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(20 * cgroup.THREADS),
    }
    assert (group.parent / "cgroup.subtree_control").read_text() == "+pids"  # the last of two
    assert not held.over(0)


@pytest.mark.parametrize(
    ("file", "events", "limit"),
    [
        (
            "memory.events",
            "oom 1\noom_kill 3\n",
            "memory: the kernel gave no more, 200 MiB allowed",
        ),
        ("pids.events", "max 7\n", "processes: the kernel made no more, 20 allowed"),
    ],
)
def test_a_limit_that_the_kernel_kept_ends_the_attempt_and_is_named(
    group: Path, held: Confinement, file: str, events: str, limit: str
) -> None:
    (group / file).write_text(events)
    assert held.over(0)
    assert held.ended(-9, "", "") == {"limit": limit}


def test_it_is_named_too_where_the_agent_had_ended_before_anybody_looked(
    group: Path, held: Confinement
) -> None:
    (group / "memory.events").write_text("oom_kill 1\n")
    held.kill()
    assert (group / "cgroup.kill").read_text() == "1"
    assert held.ended(-9, "", "") == {"limit": "memory: the kernel gave no more, 200 MiB allowed"}


def test_events_of_nothing_are_no_limit(group: Path, held: Confinement) -> None:
    (group / "memory.events").write_text("oom 0\noom_kill 0\n")
    (group / "pids.events").write_text("max 0\n")
    assert not held.over(0)
    assert held.ended(0, "", "") == {"limit": ""}
