"""A holder of leases outside of Fairlane: the pull protocol with reports as tests write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlane.engine.attempts import Progress, progress
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import NOTHING, Report
from fairlane.model.errors import FairlaneError
from fairlane.service.pull import finish, finish_each, heartbeat, lease, reclaim

__all__ = ["complete", "heartbeat", "lease", "reclaim", "release", "report"]


def complete(context: Context, leases: Sequence[str], report: Report = NOTHING) -> Any:
    """All of these succeed, in one transaction; the first refusal is raised."""
    done = []
    for answer in finish_each(context, [(name, report) for name in dict.fromkeys(leases)]):
        if isinstance(answer, FairlaneError):
            raise answer
        done.append(answer)
    return done[0] if len(done) == 1 else {"completed": done}


def release(
    context: Context, lease: str, outcome: str = "released", report: Report = NOTHING
) -> Any:
    """The attempt ends otherwise."""
    return finish(context, lease, outcome, report)


def report(
    context: Context, lease: str, report: Report, note: str = "", session: str | None = None
) -> Any:
    """A running attempt reports."""
    news = Progress(report.tokens, report.usd, session, note)
    renewed = progress(context, {lease: news}, announce=True)
    if lease in renewed.lost:
        raise renewed.lost[lease]
    return {"task": renewed.tasks[lease].id, "stop": lease in renewed.stop}
