"""A damaged record of a decision is named, with those that build on it; the others are replayed."""

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
from fairlane.engine.records.differences import pack, unpack
from fairlane.engine.records.recording import before
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
    """A home with five decisions: a program recorded three, another one two."""
    for names in ("abc", "de"):
        with Fairlane(tmp_path) as queue:
            for name in names:
                queue.add([{"id": name}])
                lease = queue.lease(worker="box")["leases"][0]
                queue.complete(lease["lease"])
    with opened(tmp_path) as context, context.store.read() as reading:
        assert [before(row) for row in reading.decisions()] == [0, 1, 2, 0, 4]
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
    assert document["replayed"] == 5
    named = {row["decision"]: row["differences"] for row in document["different"]}
    assert list(named) == [2, 3]
    assert named[2][0].startswith("the record of decision 2 is damaged: ")
    assert named[3][0].startswith("decision 3 builds on decision 2, whose record is damaged: ")
    assert run(["--home", str(home), "replay", "2"]) == 1
    said = capsys.readouterr()
    assert "decision 2\n" in said.out
    assert "Traceback" not in said.err
    assert run(["--home", str(home), "replay", "5"]) == 0
    assert run(["--home", str(home), "replay", "--list"]) == 0


@pytest.mark.parametrize("number", [2, 3])
def test_one_that_is_shown_is_named(home: Path, number: int) -> None:
    spoil(home, "plan", DAMAGE["not compressed"], 2)
    with opened(home) as context, pytest.raises(Refused) as refused:
        decisions.show(context, number)
    assert refused.value.error_code == "damaged_record"
    words = {2: "the record of decision 2 is damaged: ", 3: "decision 3 builds on decision 2, "}
    assert refused.value.message.startswith(words[number])


def test_those_that_fall_with_it_are_named(home: Path) -> None:
    spoil(home, "rest", DAMAGE["cut"], 1)
    with opened(home) as context, pytest.raises(Refused) as refused:
        decisions.show(context, 1)
    assert refused.value.hint.startswith("Decisions that build on it cannot be read either: 2, 3. ")


def test_what_was_changed_by_hand_is_noticed(home: Path) -> None:
    with opened(home) as context, context.store.read() as reading:
        plan = unpack(reading.decisions(1, 1)[0].plan)
    plan["picks"][0]["worker"] = "bad"
    spoil(home, "plan", pack(plan), 2)
    with opened(home) as context, pytest.raises(Refused, match="digest is that of another"):
        decisions.show(context, 2)


def test_one_that_is_gone_is_named_by_those_that_build_on_it(home: Path) -> None:
    with sqlite3.connect(home / "fairlane.db") as connection:
        connection.execute("DELETE FROM decisions WHERE number = 2")
    connection.close()
    with opened(home) as context:
        (row,) = decisions.replay(context)["different"]
        listed = decisions.listing(context)["decisions"]
    fault = "the record of decision 3 is damaged: it builds on decision 2, which is gone"
    assert (row["decision"], row["differences"]) == (3, [fault])
    assert [item["reason"] == "damaged" for item in listed] == [False, True, False, False]
