"""Late: an attempt that was called lost has succeeded after all."""

from __future__ import annotations

from fairlane.model.event import Happening
from fairlane.model.frozen import changed
from fairlane.model.task import Lease, Outcome, Status, Task
from fairlane.service.booking import Books
from fairlane.service.ending import Report
from fairlane.service.journal import Journal
from fairlane.store.base import Attempt


def may_still_succeed(task: Task, attempt: Attempt) -> bool:
    """Whether its lease ended by expiry, and nothing was done about the task since."""
    waiting = task.status in (Status.QUEUED, Status.PARKED)
    return attempt.outcome == Outcome.LOST and waiting and task.lost_fence == attempt.fence


def succeed(journal: Journal, books: Books, task: Task, attempt: Attempt, report: Report) -> Task:
    """The task is done; its usage is booked with the attempt."""
    booked = books.use(attempt, task, report.tokens, report.usd, ended=True)
    lease = Lease(id=attempt.lease, fence=attempt.fence)
    done = journal.happen(task, Happening.LATE_SUCCESS, lease=lease).task
    books.keep(changed(booked, outcome=str(Outcome.SUCCEEDED), result=report.result))
    books.complete(done)
    return done
