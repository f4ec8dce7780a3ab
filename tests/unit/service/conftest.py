"""A desk for each test."""

from __future__ import annotations

import pytest

from tests.unit.desks import TestDesk


@pytest.fixture
def office(tmp_path):
    return TestDesk(tmp_path)
