"""A context for each test."""

from __future__ import annotations

import pytest

from tests.unit.contexts import TestContext


@pytest.fixture
def office(tmp_path):
    return TestContext(tmp_path)
