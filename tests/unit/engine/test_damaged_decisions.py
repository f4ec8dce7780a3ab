"""A damaged record of a decision is named; the others are replayed."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlane.app import Fairlane, open_context
from fairlane.cli.main import run
from fairlane.engine import decisions
from fairlane.engine.context import Context
from fairlane.model.errors import Refused

DAMAGE = {
    "cut": b"{",
    "not compressed": b"x\x9c garbage",
    "another shape": b"[]",
    "an empty object": b"{}",
    "other types": b'{"lanes": 3, "gone": null, "window": "x", "picks": 1, "tasks": {"a": []}}',
    "deep": zlib.compress(b'{"a":' + b"[" * 100_000),
    "empty": b"",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with three decisions."""
    with Fairlane(tmp_path) as queue:
        for name in "abc":
            queue.add([{"id": name}])
            lease = queue.lease(worker="box")["leases"][0]
            queue.complete(lease["lease"])
        numbers = [row["decision"] for row in queue.decisions()["decisions"]]
        assert len(numbers) == 3
    return tmp_path


@contextmanager
def opened(home: Path) -> Iterator[Context]:
    context = open_context(home)
    try:
        yield context
    finally:
        context.store.close()


def spoil(home: Path, column: str, data: bytes, number: int) -> None:
    with sqlite3.connect(home / "fairlane.db") as connection:
        connection.execute(f"UPDATE decisions SET {column} = ? WHERE number = ?", (data, number))
    connection.close()


@pytest.mark.parametrize("column", ["lanes", "rest", "plan"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_it_is_named_and_the_others_are_replayed(home, column, damage, capsys) -> None:
    spoil(home, column, DAMAGE[damage], 2)
    with opened(home) as context:
        document = decisions.replay(context)
    assert document["replayed"] == 3
    named = {row["decision"]: row["differences"] for row in document["different"]}
    assert list(named) == [2]
    assert "its record is damaged: " in named[2][0] or "recorded null" in named[2][0]
    assert run(["--home", str(home), "replay", "2"]) == 1
    said = capsys.readouterr()
    assert "decision 2\n" in said.out
    assert "Traceback" not in said.err
    assert run(["--home", str(home), "replay", "3"]) == 0
    assert run(["--home", str(home), "replay", "--list"]) == 0


def test_one_that_is_shown_is_named(home: Path) -> None:
    spoil(home, "plan", DAMAGE["not compressed"], 2)
    with opened(home) as context, pytest.raises(Refused) as refused:
        decisions.show(context, 2)
    assert refused.value.message.startswith("the record of decision 2 is damaged: error: ")
    assert refused.value.error_code == "damaged_record"
