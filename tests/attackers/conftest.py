"""A world a test, as for daemons."""

from __future__ import annotations

from tests.daemon.conftest import world

__all__ = ["world"]
