"""What all tests of moving over share."""

from __future__ import annotations

from tests.daemon.conftest import world
from tests.unit.conftest import office

__all__ = ["office", "world"]
