"""The public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

import fairlane
from tests.acceptance.commands import ROOT

THIRD_PARTY = ("click", "rich", "tomlkit", "hypothesis")


def loaded_after(program: str) -> set[str]:
    """The modules that a program has loaded when it ends."""
    ending = "\nimport sys\nsys.stdout.write('\\n'.join(['', 'MODULES', *sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", program + ending],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src")},
        cwd=ROOT,
        check=True,
    )
    return set(done.stdout.split("MODULES\n", 1)[1].split("\n"))


def test_every_public_name_is_there():
    for name in fairlane.__all__:
        assert getattr(fairlane, name) is not None
    assert dir(fairlane) == sorted(fairlane.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fairlane.nothing


def test_the_library_needs_only_the_standard_library():
    names = ", ".join(fairlane.__all__)
    modules = loaded_after(f"from fairlane import {names}")
    assert not modules & set(THIRD_PARTY)
    assert "fairlane.planner" in modules
    assert "fairlane.model.task" not in loaded_after("import fairlane")


@pytest.mark.parametrize(
    "arguments",
    ["['--help']", "['policy', 'show']", "['plan', '--scenario', 'examples/balanced.toml']"],
)
def test_reads_do_not_load_what_they_do_not_need(arguments):
    modules = loaded_after(f"from fairlane.cli.main import run\nrun({arguments})")
    assert not modules & {"rich", "tomlkit"}
    if "help" in arguments:
        assert not [name for name in modules if name.startswith("fairlane.planner")]


@pytest.mark.parametrize("arguments", ["['list']", "['status']", "['summary']", "['show', 't1']"])
def test_reports_load_neither_git_nor_agents(arguments, tmp_path):
    home = f"['--home', {str(tmp_path)!r}]"
    modules = loaded_after(
        "from fairlane.cli.main import run\n"
        f"run({home} + ['init'])\nrun({home} + ['add', '--', 'true'])\n"
        "import sys\nfor name in list(sys.modules):\n"
        "    if name.startswith('fairlane.'):\n        del sys.modules[name]\n"
        f"from fairlane.cli.main import run\nassert run({home} + {arguments}) == 0"
    )
    assert not [
        name for name in modules if name.startswith(("fairlane.agents.", "fairlane.workspaces."))
    ]


def test_now_is_an_aware_datetime():
    snapshot = fairlane.Snapshot.of([fairlane.Task("a")])
    policy = fairlane.Policy.preset("balanced")
    plan = fairlane.plan(snapshot, policy, datetime(2026, 1, 30, 12, tzinfo=UTC))
    assert plan.document()["now"] == "2026-01-30T12:00:00Z"
    with pytest.raises(fairlane.FairlaneError, match="without a zone"):
        fairlane.plan(snapshot, policy, datetime(2026, 1, 30, 12))
