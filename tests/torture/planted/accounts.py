"""Planted bugs: usage, budgets, pools, and what is written down of it all."""

from __future__ import annotations

from fairlane.engine import attempts, decisions, usage
from fairlane.engine.usage import Books
from fairlane.lifecycle import backoff
from fairlane.planner.gates import budget
from fairlane.runtime import checks
from tests.torture.planted.bug import Bug, bug, line

SKIPS_ENDED = """\
if ended:
            continue
        task = turn.task_of(attempt)"""
IN_TWO = """\
    turn.changes.close()
with context.store.write() as tx:
    turn.books._tx = turn.changes.tx = tx
    stopped = turn.close()"""
STARTS_AGAIN = """\
    if state is None:
        return _started(host, running, success, number)"""
PASSES = """\
    if state is None:
        rows[number] = {**row, "exit": 0, "passed": True, "seconds": 0.0}
        host.port.checked(running.id, rows)
        continue"""

BUGS: list[Bug] = [
    bug(
        "budget not watched on one path",
        "Budgets are watched while attempts run, and not when their last usage is booked.",
        "budgets watched",
        line(Books.use, ("self.used.add(place)", "ended or self.used.add(place)")),
    ),
    bug(
        "budget up to its limit",
        "What is used up exactly counts as not used up yet.",
        "budgets watched",
        line(usage._exceeded, ("2 if used >= limit", "2 if used > limit")),
    ),
    bug(
        "start at the limit of a budget",
        "Something may start where a budget is used or reserved up to its limit.",
        "budgets",
        line(
            budget.check,
            ("line.spent + reserved >= line.limit", "line.spent + reserved > line.limit"),
        ),
    ),
    bug(
        "usage booked twice",
        "Each report books its totals, and not what is new in them.",
        "bookings add up",
        line(Books.use, ("tuple(map(sub, totals, attempt.tokens))", "totals")),
    ),
    bug(
        "late usage not booked",
        "What an attempt tells after its end counts for nothing.",
        "reports kept",
        line(attempts.progress, ("task = turn.task_of(attempt)", SKIPS_ENDED)),
        line(
            attempts._end,
            ("turn.books.use(attempt, task, report.tokens, report.usd, ended=True)", "pass"),
        ),
    ),
    bug(
        "decision not recorded",
        "A round that holds nothing back leaves no decision.",
        "picked by a decision",
        line(decisions.record, ("if not short.picks", "if not holds or not short.picks")),
    ),
    bug(
        "end in two transactions",
        "The end of an attempt and what becomes of its task are written one after the other.",
        "in flight agrees, events told",
        line(attempts._finish, ("    stopped = turn.close()", IN_TWO)),
    ),
    bug(
        "cooldown forgotten",
        "Good news of an attempt that began before the throttle proves its pool healthy.",
        "pools rest",
        line(backoff.prove, (" or not _began_after(pool, attempt_started_at)", "")),
    ),
    bug(
        "check skipped on recovery",
        "A check that a crash has interrupted counts as passed.",
        "checks ran",
        line(checks.next_step, (STARTS_AGAIN, PASSES)),
    ),
]
