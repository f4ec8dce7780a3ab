"""Together: calls that came at the same time are done in one turn, with the answers of single ones.

Several callers that ask at once get their work out of one plan; several results are booked in one
go.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from fairlane.model.errors import FairlaneError
from fairlane.model.plan import Reason
from fairlane.service import SCHEMA, leases
from fairlane.service.desk import Desk
from fairlane.service.operations.values import Document, told


def sort_of(name: str, arguments: Mapping[str, Any]) -> Hashable | None:
    """What calls have in common that can be done in one go; None: it is done by itself."""
    if name == "lease" and arguments.get("limit"):
        return name, arguments.get("worker"), tuple(arguments.get("labels", ()))
    return name if name == "complete" else None


def answer_each(
    desk: Desk, name: str, given: Sequence[Mapping[str, Any]]
) -> list[Document | FairlaneError]:
    """The answers of calls of one sort, or the error of each that was refused."""
    if name == "lease":
        first, limits = given[0], [each["limit"] for each in given]
        return [*lease_each(desk, limits, first.get("worker"), first.get("labels", ()))]
    reports = [
        (each["lease"], told(each.get("tokens"), each.get("cost"), result=each.get("result")))
        for each in given
    ]
    return [
        {"schema": SCHEMA, **each} if isinstance(each, dict) else each
        for each in leases.complete_each(desk, reports)
    ]


def lease_each(
    desk: Desk, limits: Sequence[int], worker: str | None, labels: Sequence[str]
) -> list[Document]:
    """What one worker would get that asked several times in a row, each time for at least one."""
    found = leases.lease(desk, sum(limits), worker, labels)
    taken, reason = found["leases"], Reason(found["reason"])
    answers = []
    for limit in limits:
        mine, taken = taken[:limit], taken[limit:]
        ended = _reason(reason, len(mine), limit, bool(taken))
        answers.append({"schema": SCHEMA, "leases": mine, "reason": str(ended)})
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
