"""A world a test, as for daemons; but a daemon has an environment that an agent can look into."""

from __future__ import annotations

import pytest

from tests.daemon.conftest import world as of_daemons
from tests.daemon.world import World

plain = of_daemons


@pytest.fixture
def world(plain: World) -> World:
    plain.warm = False
    return plain
