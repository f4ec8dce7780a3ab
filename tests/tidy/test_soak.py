"""The soak ends in time without a failure, and fails when it finds one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.tidy.repository import ROOT

TESTS = """
from pathlib import Path
from time import sleep
from hypothesis import given, strategies as st

@given(st.integers(), st.data())
def test_property(number, data):
    for _ in range(data.draw(st.integers(1, 3))):
        data.draw(st.booleans())
    with Path("examples").open("a") as file:
        file.write(".")
    sleep(0.02)
    assert {claim}

def test_not_a_property():
    raise AssertionError("not part of the soak")
"""


def soak(folder, claim):
    (folder / "test_claim.py").write_text(TESTS.format(claim=claim), encoding="utf-8")
    options = [
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:schemathesis",
        "-m",
        "soak",
        "--timeout",
        "0",
    ]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, *options, str(folder)],
        cwd=folder,
        env={
            **os.environ,
            "HYPOTHESIS_PROFILE": "soak",
            "SOAK_MINUTES": "0.15",
            "PYTHONPATH": str(ROOT),
            "PYTEST_XDIST_WORKER_COUNT": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_soak_stops_when_its_time_is_up(tmp_path):
    ended = soak(tmp_path, "True")
    assert ended.returncode == 0, ended.stdout
    assert "1 passed, 1 deselected" in ended.stdout
    assert 0 < len((tmp_path / "examples").read_text()) < 5_000  # as many as the profile asks for


@pytest.mark.slow
def test_a_failure_in_the_soak_is_shrunk_and_told(tmp_path):
    ended = soak(tmp_path, "number < 20")
    assert ended.returncode == 1
    assert "number=20" in ended.stdout
