"""A typing mistake in the policy file costs nobody a lease."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.app import open_desk
from fairlane.model.errors import Invalid
from fairlane.service import leases, tasks


def test_a_heartbeat_goes_on_with_the_last_good_policy(tmp_path: Path) -> None:
    desk = open_desk(tmp_path / "home")
    tasks.add(desk, [{"id": "a", "prompt": "x"}])
    lease = leases.lease(desk)["leases"][0]["lease"]
    desk.policy_file.write_text("caps.al = 3\n")
    assert leases.heartbeat(desk, lease)["status"] == "running"
    with pytest.raises(Invalid, match=r"caps\.al"):
        leases.lease(desk)
    desk.store.close()
