"""A server is started again if it dies, says when it is down, and ends with its daemon."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fairlane.daemon import server_process as module
from fairlane.daemon.server_process import Down, ServerProcess
from tests.waiting import LIMIT_SECONDS, until


def servant(program: str, said: list[str], noted: list[Down | None] | None = None) -> ServerProcess:
    note = (lambda down: None) if noted is None else noted.append
    return ServerProcess([sys.executable, "-S", "-c", program], None, said.append, note=note)


def look_until(found: ServerProcess, said: list[str], count: int) -> None:
    def enough() -> bool:
        found.look()
        return len(said) >= count

    until(enough)


def test_what_cannot_work_is_down_at_once_and_tried_again_later():
    said: list[str] = []
    noted: list[Down | None] = []
    words = "error: no such key\\nhint: Remove it.\\n"
    program = f"import sys; sys.stderr.write('{words}'); sys.exit(2)"
    found = servant(program, said, noted)
    look_until(found, said, 1)
    assert said == ["warning: the server ended (2) and starts again in 600s"]
    assert noted == [None, Down("no such key (exit code 2)", "Remove it.")]
    assert not found.is_there
    found.close()


def test_what_dies_is_started_again_and_after_three_quick_deaths_it_is_down(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.01)
    said: list[str] = []
    noted: list[Down | None] = []
    found = servant("raise SystemExit(1)", said, noted)
    look_until(found, said, 2)
    assert (noted, found.is_there) == ([None], True)
    look_until(found, said, 4)
    assert said == ["warning: the server ended (1) and starts again in 0s"] * 4
    assert noted == [None, Down("it said nothing (exit code 1)", "")]
    assert not found.is_there


def test_one_that_lives_again_is_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(module, "UP_SECONDS", 0.0)
    repaired = tmp_path / "repaired"
    said: list[str] = []
    noted: list[Down | None] = []
    program = f"import os, sys; os.path.exists({str(repaired)!r}) or sys.exit(1); sys.stdin.read()"
    found = servant(program, said, noted)
    look_until(found, said, 3)
    repaired.touch()

    def is_up() -> bool:
        found.look()
        return noted[-1] is None

    until(is_up)
    assert found.is_there
    found.close()


def test_a_note_that_fails_is_repeated(monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    noted: list[Down | None] = []

    def note(down: Down | None) -> None:
        noted.append(down)
        if len(noted) == 1:
            raise OSError("no room")

    words = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
    found = ServerProcess(words, None, said.append, note=note)
    with pytest.raises(OSError, match="no room"):
        found.look()
    found.look()
    found.look()
    assert noted == [None, None]
    found.close()


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
