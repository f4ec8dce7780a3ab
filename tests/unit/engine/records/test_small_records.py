"""A record of a large queue takes few bytes: what differs, not what there is."""

from __future__ import annotations

from pathlib import Path

from fairlane.engine import decisions
from fairlane.engine.decisions import FULL_EVERY
from fairlane.engine.records.recording import size_of
from fairlane.model.instant import SECOND
from fairlane.service import projects
from tests.unit.contexts import TestContext

FLYING, PROJECTS, KINDS = 2_000, 50, 6
TURNS, BYTES = 24, 1_500


def large(home: Path) -> TestContext:
    """2,000 attempts in flight over 50 projects, and as many tasks that wait for a slot."""
    office = TestContext(home)
    office.policy(f'caps."all" = {FLYING}\nshare.mode = "virtual-time"\n')
    for number in range(PROJECTS):
        projects.add_project(office.context, f"project-{number}", {"weight": 1 + number % 3})
    office.add(
        *(
            {"id": f"t{n}", "project": f"project-{n % PROJECTS}", "kind": f"kind{n // 7 % KINDS}"}
            for n in range(2 * FLYING)
        )
    )
    return office


def sizes(office: TestContext, after: int) -> list[int]:
    """The bytes of the decisions after one."""
    with office.context.store.read() as reading:
        return [size_of(row) for row in reading.decisions(after)]


def test_ends_and_starts_take_few_bytes_full_records_counted(tmp_path: Path) -> None:
    office = large(tmp_path)
    leases = [lease["lease"] for lease in office.lease(FLYING)]
    assert len(leases) == FLYING
    for turn in range(TURNS + 1):
        office.wait(SECOND)
        office.finish(leases[turn * 7], output=1000 + turn)
        assert len(office.lease(1)) == 1
    small = sizes(office, 2)  # the first one starts them all, the second sees all of them fly
    assert len(small) == TURNS
    office.context.recordings.clear()  # as another process: it begins with a full record
    office.finish(leases[1])
    office.lease(1)
    (full,) = sizes(office, TURNS + 2)
    assert full > 20 * BYTES
    assert sum(small) / TURNS + full / FULL_EVERY < BYTES
    assert decisions.replay_after(office.context, TURNS)["different"] == []
