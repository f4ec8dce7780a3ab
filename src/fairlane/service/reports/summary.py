"""Summary: what happened while nobody looked, and what needs a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlane.engine.context import Context
from fairlane.engine.look.planned import preview
from fairlane.model.instant import HOUR, SECOND, Instant, minute_of, show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.task import FAILURES, Outcome, Status, Task
from fairlane.policy.policy import Policy
from fairlane.service.reports.documents import answer_of, dollars, shown, title_of, tokens_of
from fairlane.service.reports.listing import every
from fairlane.service.reports.merging import may_have_merged, recorded, waits_for_approval
from fairlane.service.reports.stats import Past, ended_since, spread90
from fairlane.service.reports.status import budget_rows, live_pauses, queued, sources, warnings
from fairlane.store.base import Filter, Reading

if TYPE_CHECKING:
    from fairlane.model.documents import reports

SINCE = 12 * HOUR
#: How many tasks a list names, and how much of the answer of each.
NAMED_MAX, ANSWER_LETTERS = 200, 500


def summary(context: Context, since: Instant | None = None) -> reports.SummaryAnswer:
    """What happened since a time: done, cost, tokens, parked, waits, failures."""
    now = context.now()
    start = now - SINCE if since is None else since
    with context.store.read() as reading:
        snapshot, plan, policy = preview(context, reading)
        past = ended_since(reading, policy, start)
        parked = [placed.task for placed in every(reading, Filter(status=(Status.PARKED,)))]
        wrong = warnings(context, snapshot, plan, policy, budget_rows(snapshot, policy, plan))
        wrong += sources(context, reading)
        pools = [pause for pause in live_pauses(reading) if pause.scope.startswith("pool:")]
        used = _used(reading, policy, start)
        tallies = reading.tallies()
        done = [row for row in past if row.attempt.outcome == Outcome.SUCCEEDED]
        unmerged = _unmerged(reading, [row.attempt.task for row in done[-NAMED_MAX:]])
    outcomes = Counter(str(row.attempt.outcome) for row in past)
    needs = [_need(f"task:{task.id}", f"parked: {task.reason}") for task in parked[:NAMED_MAX]]
    needs += [
        _need(f"merge:{task}", f"done, but not merged by Fairlane: {why}")
        for task, why in unmerged.items()
    ]
    needs += [_need(pause.scope, pause.reason or "paused") for pause in pools]
    needs += [_need(warning["code"], warning["message"]) for warning in wrong]
    return {
        "schema": SCHEMA,
        "since": show_instant(start),
        "now": show_instant(now),
        "done": {"count": len(done), "tasks": [_done(row) for row in done[-NAMED_MAX:]]},
        "tokens": sum(row["tokens"] for row in used),
        "usd": sum(row["usd"] for row in used),
        "projects": used,
        "parked": {"count": len(parked), "tasks": [_parked(task, start) for task in parked]},
        "waits": spread90(row.wait for row in past if row.wait is not None),
        "attempts": {str(outcome): outcomes[str(outcome)] for outcome in Outcome},
        "failures": [_failed(row) for row in past if row.attempt.outcome in FAILURES][-50:],
        "in_flight": plan.room.in_flight,
        "queued": queued(tallies, plan),
        "needs_person": needs,
    }


def _unmerged(reading: Reading, done: Sequence[str]) -> dict[str, str]:
    """Which of these tasks wait for a person before they are merged, and why."""
    found: dict[str, str] = {}
    for name, task in reading.tasks(set(done)).items():
        last = recorded(reading.attempts(name)) if may_have_merged(task) else None
        if last is not None and (why := waits_for_approval(last)) is not None:
            found[name] = why
    return {name: found[name] for name in done if name in found}


def _used(reading: Reading, policy: Policy, since: Instant) -> list[reports.UsedDocument]:
    """Tokens and dollars by project; what runs is counted too."""
    return [
        {
            "project": scope.removeprefix("project:"),
            "tokens": tokens_of(booked, policy),
            "usd": booked.usd / 1_000_000,
            "starts": booked.starts,
            "completions": booked.completions,
        }
        for scope, booked in sorted(reading.usage_sums("project:", minute_of(since)).items())
    ]


def _done(past: Past) -> reports.DoneDocument:
    attempt = past.attempt
    return {
        "id": attempt.task,
        "title": past.title,
        "project": attempt.project,
        "kind": attempt.kind,
        "attempt": attempt.number,
        "ended_at": show_instant(past.ended_at),
        "seconds": past.duration / SECOND,
        "tokens": past.tokens,
        "usd": dollars(attempt.usd),
        "answer": _shortened(answer_of(attempt)),
    }


def _shortened(answer: str | None) -> str | None:
    """The beginning of an answer; `show` has all of it."""
    if answer is None or len(answer) <= ANSWER_LETTERS:
        return answer
    return answer[: ANSWER_LETTERS - 1] + "…"


def _failed(past: Past) -> reports.FailedDocument:
    attempt = past.attempt
    return {
        "id": attempt.task,
        "project": attempt.project,
        "attempt": attempt.number,
        "outcome": str(attempt.outcome),
        "detail": attempt.detail,
        "ended_at": show_instant(past.ended_at),
    }


def _parked(task: Task, since: Instant) -> reports.ParkedDocument:
    at = task.parked_at
    return {
        "id": task.id,
        "title": title_of(task),
        "project": task.project,
        "reason": task.reason,
        "parked_at": shown(at),
        "new": at is not None and at >= since,
    }


def _need(what: str, why: str) -> reports.NeedDocument:
    return {"what": what, "why": why}
