"""The public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

import fairlead
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
    for name in fairlead.__all__:
        assert getattr(fairlead, name) is not None
    assert dir(fairlead) == sorted(fairlead.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fairlead.nothing


def test_the_library_needs_only_the_standard_library():
    names = ", ".join(fairlead.__all__)
    modules = loaded_after(f"from fairlead import {names}")
    assert not modules & set(THIRD_PARTY)
    assert "fairlead.planner.lanes" in modules
    assert "fairlead.model.task" not in loaded_after("import fairlead")


@pytest.mark.parametrize(
    "arguments",
    ["['--help']", "['policy', 'show']", "['plan', '--scenario', 'examples/balanced.toml']"],
)
def test_reads_do_not_load_what_they_do_not_need(arguments):
    modules = loaded_after(f"from fairlead.cli.main import run\nrun({arguments})")
    assert not modules & {"rich", "tomlkit"}
    if "help" in arguments:
        assert not [name for name in modules if name.startswith("fairlead.planner")]


def test_now_is_an_aware_datetime():
    snapshot = fairlead.Snapshot.of([fairlead.Task("a")])
    policy = fairlead.Policy.preset("balanced")
    plan = fairlead.plan(snapshot, policy, datetime(2026, 1, 30, 12, tzinfo=UTC))
    assert plan.document()["now"] == "2026-01-30T12:00:00Z"
    with pytest.raises(fairlead.FairleadError, match="without a zone"):
        fairlead.plan(snapshot, policy, datetime(2026, 1, 30, 12))
