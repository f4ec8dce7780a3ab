"""Together: calls that came at the same time are done in one turn, with the answers of single ones.

Several callers that ask at once get their work out of one plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead.model.plan import Reason
from fairlead.service import SCHEMA, leases
from fairlead.service.desk import Desk


def lease_each(
    desk: Desk, limits: Sequence[int], worker: str | None, labels: Sequence[str]
) -> list[dict[str, Any]]:
    """What one worker would get that asked several times in a row, each time for at least one."""
    found = leases.lease(desk, sum(limits), worker, labels)
    taken, reason = found["leases"], Reason(found["reason"])
    answers = []
    for limit in limits:
        mine, taken = taken[:limit], taken[limit:]
        told = _reason(reason, len(mine), limit, bool(taken))
        answers.append({"schema": SCHEMA, "leases": mine, "reason": str(told)})
    return answers


def _reason(last: Reason, got: int, limit: int, more: bool) -> Reason:
    """What ended one of several rounds, from what ended the one that was made for all."""
    if last is Reason.PAUSED:
        return last
    if not got:
        return Reason.NONE if last is Reason.READY else last
    if got < limit:
        return last
    return Reason.CAPACITY if more or last is not Reason.READY else Reason.READY
