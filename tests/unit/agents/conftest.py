"""The local zone of a test."""

from __future__ import annotations

import time

import pytest


@pytest.fixture
def zone(monkeypatch):
    """Sets the local zone."""

    def choose(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield choose
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def utc(zone):
    zone("UTC")
