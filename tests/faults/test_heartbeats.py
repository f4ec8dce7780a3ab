"""A typing mistake in the policy file costs nobody a lease."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.app import open_context
from fairlane.model.errors import Invalid
from fairlane.service import tasks
from tests import holder


def test_a_heartbeat_goes_on_with_the_last_good_policy(tmp_path: Path) -> None:
    context = open_context(tmp_path / "home")
    tasks.add(context, [{"id": "a", "prompt": "x"}])
    lease = holder.lease(context)["leases"][0]["lease"]
    context.policy_file.write_text("caps.al = 3\n")
    assert holder.heartbeat(context, lease)["status"] == "running"
    with pytest.raises(Invalid, match=r"caps\.al"):
        holder.lease(context)
    context.store.close()
