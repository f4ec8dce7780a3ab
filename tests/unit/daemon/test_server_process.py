"""A servant is started again if it dies, is left if it is useless, and ends with its master."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fairlane.daemon import server_process as module
from fairlane.daemon.server_process import ServerProcess
from tests.waiting import LIMIT_SECONDS, until


def servant(program: str, said: list[str]) -> ServerProcess:
    return ServerProcess([sys.executable, "-S", "-c", program], None, said.append)


def look_until(found: ServerProcess, said: list[str], count: int) -> None:
    def enough() -> bool:
        found.look()
        return len(said) >= count

    until(enough)


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


def test_it_ends_with_its_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(module, "END_SECONDS", LIMIT_SECONDS)
    last = tmp_path / "last"
    said: list[str] = []
    found = servant(f"import sys; sys.stdin.read(); open({str(last)!r}, 'x').close()", said)
    found.look()
    assert found.is_there
    found.close()
    assert last.exists()  # it was not killed
    found.close()
    assert said == []
