"""Decisions that earlier versions recorded are replayed as before."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from fairlane.engine import decisions
from fairlane.engine.records.recording import before
from fairlane.model.project import PolicyText
from fairlane.store.base import Decision
from tests.unit.contexts import TestContext

#: Rows as version 0.1 has them: full lanes, lanes against a base, lanes that are gone, a round of
#: some tasks only, and windows of several sizes.
OLDER: dict[str, Any] = json.loads(
    Path(__file__).with_name("older_records.json").read_text(encoding="utf-8")
)
BLOBS = ("lanes", "rest", "plan")


@pytest.fixture
def office(tmp_path: Path) -> TestContext:
    """A home whose decisions an earlier version has recorded."""
    office = TestContext(tmp_path)
    with office.context.store.write() as tx:
        for digest, policy in OLDER["policies"].items():
            text = json.dumps(policy, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            tx.put(PolicyText(digest, text))
        for row in OLDER["decisions"]:
            blobs = {name: b64decode(row[name]) for name in BLOBS}
            tx.put_decision(Decision(**{**row, **blobs}))
        tx.number("decision", OLDER["decisions"][-1]["number"])
        tx.put_value("decision", OLDER["value"])
    return office


@pytest.mark.parametrize("planner", ["lanes", "reference"])
def test_they_are_replayed(office: TestContext, planner: str) -> None:
    answer = decisions.replay(office.context, planner=planner)
    assert (answer["replayed"], answer["different"]) == (len(OLDER["decisions"]), [])


def test_they_are_listed_and_shown_with_their_digests(office: TestContext) -> None:
    listed = decisions.listing(office.context)["decisions"]
    assert [row["digests"] for row in listed] == [row["digests"] for row in OLDER["decisions"]]
    shown = decisions.show(office.context, listed[-1]["decision"])
    assert [pick["task"] for pick in shown["plan"]["picks"]] == listed[-1]["picks"]  # type: ignore[attr-defined]


def test_new_ones_follow_with_a_full_record(office: TestContext) -> None:
    office.add({"id": "new"}, {"id": "newer"})
    office.finish(office.lease(1)[0]["lease"])
    office.lease(1)
    with office.context.store.read() as reading:
        new = reading.decisions(OLDER["decisions"][-1]["number"])
    assert [before(row) for row in new] == [0, new[0].number]
    answer = decisions.replay(office.context)
    assert (answer["replayed"], answer["different"]) == (len(OLDER["decisions"]) + 2, [])


def test_damage_names_the_record(office: TestContext) -> None:
    with office.context.store.write() as tx:
        row = tx.decisions()[-1]
        number = tx.number("decision")
        tx.put_decision(Decision(**{**_fields(row), "number": number, "rest": b"{"}))
    (different,) = decisions.replay(office.context)["different"]
    assert different["decision"] == number
    assert different["differences"][0].startswith(f"the record of decision {number} is damaged: ")


def _fields(row: Decision) -> dict[str, Any]:
    names = ("number", "at", "base", "policy", "planner", *BLOBS, "digests")
    return {name: getattr(row, name) for name in names}
