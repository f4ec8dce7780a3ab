"""A world a test; nothing of it outlives the test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairlane.runtime.lock import holder
from tests.daemon.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path / "home")
    yield found
    told = holder(found.home)
    pids = [told["pid"]] if told and told["pid"] else []
    for pid in [*pids, *found.processes()]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
