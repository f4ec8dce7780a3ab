"""Commands of one answer open one transaction."""

from __future__ import annotations

import pytest

from fairlane.cli.main import run
from fairlane.store.sqlite.store import SqliteStore


@pytest.fixture
def begun(monkeypatch):
    """The statements that began a transaction since the last `clear`."""
    statements: list[str] = []
    opened = SqliteStore.open

    def traced(*arguments, **options):
        store = opened(*arguments, **options)
        store.verify(fully=False)  # the check of a new process is no part of an answer
        store.connection.set_trace_callback(
            lambda text: statements.append(text) if text.startswith("BEGIN") else None
        )
        return store

    monkeypatch.setattr(SqliteStore, "open", traced)
    return statements


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_add_is_one_transaction(begun, tmp_path, capsys, more):
    assert run(["--home", str(tmp_path), "add", *more, "--", "true"]) == 0
    assert begun == ["BEGIN IMMEDIATE"]
    assert "t1" in capsys.readouterr().out


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_why_is_one_view(begun, tmp_path, capsys, more):
    assert run(["--home", str(tmp_path), "add", "--", "true"]) == 0
    begun.clear()
    assert run(["--home", str(tmp_path), "why", "t1", *more]) == 0
    assert begun == ["BEGIN"]
    assert "starts now" in capsys.readouterr().out
