"""The same home folder as in the acceptance tests."""

from __future__ import annotations

from tests.acceptance.conftest import home

__all__ = ["home"]
