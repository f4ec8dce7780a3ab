"""What all tests of moving over share."""

from __future__ import annotations

from tests.unit.conftest import office

__all__ = ["office"]
