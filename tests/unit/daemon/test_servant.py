"""A servant is started again if it dies, is left if it is useless, and ends with its master."""

from __future__ import annotations

import sys
from time import monotonic

import pytest

from fairlane.daemon import servant as module
from fairlane.daemon.servant import Servant


def servant(program: str, said: list[str]) -> Servant:
    return Servant([sys.executable, "-S", "-c", program], None, said.append)


def look_until(found: Servant, said: list[str], count: int) -> None:
    until = monotonic() + 20
    while len(said) < count:
        assert monotonic() < until, said
        found.look()


def test_what_cannot_work_is_left():
    said: list[str] = []
    found = servant("raise SystemExit(2)", said)
    look_until(found, said, 1)
    assert said == ["warning: the server ended (2) and is left"]
    assert not found.is_there
    found.close()


def test_what_dies_is_started_again_and_in_the_end_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(module, "DEATHS_MAX", 3)
    said: list[str] = []
    found = servant("raise SystemExit(1)", said)
    look_until(found, said, 3)
    again = "warning: the server ended (1) and starts again in 0s"
    assert said == [again, again, "warning: the server ended (1) and is left"]
    assert not found.is_there


def test_it_ends_with_its_input():
    said: list[str] = []
    found = servant("import sys; sys.stdin.read()", said)
    found.look()
    assert found.is_there
    began = monotonic()
    found.close()
    assert monotonic() - began < module.END_SECONDS
    found.close()
    assert said == []
