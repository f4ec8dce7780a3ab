"""A world a test, as for daemons, and a repository with agents that can resume."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checks.coders import Coders
from tests.daemon.conftest import world
from tests.daemon.world import World

__all__ = ["world"]


@pytest.fixture
def coders(world: World, tmp_path: Path) -> Coders:
    return Coders(world, tmp_path)
