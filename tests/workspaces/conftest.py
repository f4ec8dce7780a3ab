"""A yard a test; git knows nothing of this user."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.hostile import Hostile
from tests.workspaces.yard import Yard


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    (tmp_path / "nobody").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    return Yard(tmp_path)


@pytest.fixture
def hostile(yard: Yard, tmp_path: Path) -> Hostile:
    return Hostile(yard, tmp_path)


@pytest.fixture(params=["worktree", "pool", "clone"])
def any_yard(yard: Yard, request: pytest.FixtureRequest) -> Yard:
    """A yard in each of the modes in which tasks have a branch."""
    if request.param == "pool":
        yard.change(workspaces=("desk",))
    elif request.param == "clone":
        yard.workspaces(mode="clone")
    return yard
