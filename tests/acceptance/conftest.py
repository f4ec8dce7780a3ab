"""What the acceptance tests share."""

from __future__ import annotations

import pytest

from tests.acceptance.queue_home import Home


@pytest.fixture
def home(tmp_path, capsys, monkeypatch):
    """A queue in a folder of its own; nothing of the user's own settings reaches it."""
    for name in ("FAIRLANE_HOME", "FAIRLANE_TASK", "FAIRLANE_LEASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "ana")
    monkeypatch.setenv("COLUMNS", "100")
    return Home(tmp_path / "home", capsys)
