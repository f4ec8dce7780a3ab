"""Artifacts: however many tasks wait for one, every round looks at some, and in turn at all."""

from __future__ import annotations

import pytest

from fairlane.engine import round as rounds
from fairlane.service import pull


def test_every_task_that_waits_for_a_file_is_looked_at(office, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rounds, "LOOKED_AT_MAX", 2)
    office.add({"id": "p", "command": ["true"]})
    lease = office.lease()[0]["lease"]
    pull.complete(office.context, lease)
    office.add(
        *({"id": f"t{n}", "parent": "p", "artifacts": [f"{n}.md"], "prompt": "x"} for n in range(5))
    )
    folder = office.context.home / "artifacts" / "p"
    folder.mkdir(parents=True)
    (folder / "4.md").write_text("here", encoding="utf-8")
    leased = [row["task"] for _ in range(3) for row in office.lease()]
    assert leased == ["t4"]
