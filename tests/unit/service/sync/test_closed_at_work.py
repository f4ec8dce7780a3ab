"""An agent that closes its item before it ends: what needs the item waits for the agent."""

from __future__ import annotations

import json

import pytest

from fairlane.intake.sources.base import Where
from fairlane.service.sync.importing import ImportOptions, bring_in
from tests.conformance.samples.beads import bead, edges, stand_in
from tests.unit.contexts import TestContext

SYNC = ImportOptions(sync=True)


@pytest.mark.parametrize("asked", [True, False], ids=["bd lists what is open", "file of all"])
def test_what_needs_a_closed_bead_waits_for_its_agent(tmp_path, asked):
    office = TestContext(tmp_path)
    rows = [bead("gt-a", "A"), bead("gt-b", "B", dependencies=edges("gt-b", "gt-a"))]
    command, file = stand_in(tmp_path, rows), tmp_path / "beads.json"
    where = Where(command=command) if asked else Where(path=file)
    bring_in(office.context, "beads", where, SYNC)
    (lease,) = office.lease(limit=9)
    assert lease["task"] == "gt-a"
    file.write_text(json.dumps([rows[0] | {"status": "closed"}, rows[1]]))
    for _ in range(2):
        assert not bring_in(office.context, "beads", where, SYNC)["changed"]
    assert office.lease(limit=9) == []
    office.finish(lease["lease"])
    assert [each["task"] for each in office.lease(limit=9)] == ["gt-b"]


def test_a_need_that_a_person_takes_out_is_no_need_any_more(tmp_path):
    office = TestContext(tmp_path)
    rows = [bead("gt-a", "A"), bead("gt-b", "B", dependencies=edges("gt-b", "gt-a"))]
    command = stand_in(tmp_path, rows)
    bring_in(office.context, "beads", Where(command=command), SYNC)
    office.lease()
    (tmp_path / "beads.json").write_text(json.dumps([rows[0], bead("gt-b", "B")]))
    bring_in(office.context, "beads", Where(command=command), SYNC)
    assert [each["task"] for each in office.lease(limit=9)] == ["gt-b"]
