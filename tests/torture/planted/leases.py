"""Planted bugs: leases, fences, expiry, and what is found again after a crash."""

from __future__ import annotations

from fairlane.engine import attempts, earlier_work, liveness, round
from fairlane.lifecycle import step
from fairlane.lifecycle.transitions import LEASE, TRANSITIONS
from fairlane.model.event import Happening
from fairlane.model.task import Status
from fairlane.planner.kept import Kept
from fairlane.planner.round import Round
from fairlane.runtime.watch import RunningAttempt
from tests.torture.planted.bug import Bug, bug, entry, line

#: A plan is committed though others have written since it was made.
COMMITTED_BLINDLY = line(
    round._is_current,
    ("planned.mark == mark", "(planned.mark == mark or planned.decided.plan.picks)"),
)

BUGS: list[Bug] = [
    bug(
        "double lease",
        "A plan is committed as it was made: nobody looks whether its picks are queued still.",
        "readiness, nobody forgotten, in flight agrees",
        COMMITTED_BLINDLY,
        line(round._start, ("task.status is not Status.QUEUED or ", "")),
        entry(TRANSITIONS, (Status.LEASED, Happening.LEASED), LEASE),
        entry(TRANSITIONS, (Status.RUNNING, Happening.LEASED), LEASE),
    ),
    bug(
        "fence not checked",
        "Whoever reports the end of an attempt ends its task, though another holds the lease now.",
        "older holders, in flight agrees, identity, outcomes",
        line(
            attempts._end,
            (
                "open_ = attempt.ended_at is None and holds(task, attempt)",
                "open_ = task.status.in_flight",
            ),
        ),
    ),
    bug(
        "expiry by the wrong clock",
        "A round takes the time from the host that makes it, not from the store.",
        "losses, renewals",
        line(
            round.committed_round,
            (
                "_policy(context, tx, asker), context.now(), tx.mark()",
                "_policy(context, tx, asker), context.clock.own(), tx.mark()",
            ),
        ),
    ),
    bug(
        "result on disk ignored",
        "Only a process that runs keeps its attempt; what left a result counts as lost.",
        "losses",
        line(
            liveness.outlives_lease,
            ("import Gone", "import Running"),
            ("!= Gone()", "== Running()"),
        ),
    ),
    bug(
        "late success after retry",
        "A retry leaves the lost attempt its right to succeed late.",
        "late successes, older holders",
        line(
            step._retry,
            (
                "task, now))",
                "task, now), lost_fence=task.lost_fence)",
            ),
        ),
    ),
    bug(
        "stop lost at the start",
        "A stop that was asked for before the process had started is forgotten by its start.",
        "stops kept",
        line(
            step._start,
            (
                "lease=lease)",
                'lease=lease, stop_requested="")',
            ),
        ),
    ),
    bug(
        "stop not sent",
        "The daemon notes that an attempt is to stop, and does not tell its process.",
        "stops sent",
        line(RunningAttempt.stop, ("self.executor.stop(self.process)", "pass")),
    ),
    bug(
        "carried work of what is not done",
        "A task starts from the last attempt of each task before it, however that has ended.",
        "carries what is done",
        line(earlier_work.read, (" if row.status is Status.DONE", "")),
        line(earlier_work._last_success, ("if row.outcome == Outcome.SUCCEEDED", "")),
    ),
    bug(
        "fence from what runs",
        "The next fence is one more than those in flight, not than all that were given.",
        "fences, identity",
        line(
            round._start,
            (
                'changes.tx.number("fence", len(picks))',
                "1 + max([0, *[row.fence for row in changes.tx.open_attempts()]])",
            ),
        ),
    ),
    bug(
        "a lowered cap kills",
        "What is above cap `all` counts as lost.",
        "losses",
        line(
            Round.__init__,
            (
                "if expired(flight, now):",
                'if expired(flight, now) or self.ledger.total >= (policy.caps.get("all") or 999):',
            ),
        ),
        line(
            Kept.suffices,
            (
                "if any(at <= now",
                'if self.ledger.total > (self.policy.caps.get("all") or 999) or any(at <= now',
            ),
        ),
    ),
]
