"""Summary: what happened while nobody looked, and what needs a person."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fairlane.lifecycle.usage import Tokens, counted, minute_of
from fairlane.model.instant import HOUR, Instant, show_instant
from fairlane.model.task import Outcome, Status, Task
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.looking import preview
from fairlane.service.reports.documents import dollars, shown, title_of
from fairlane.service.reports.listing import every
from fairlane.service.reports.past import Past, ended_since, seconds, spread
from fairlane.service.reports.pauses import live_pauses
from fairlane.service.reports.status import budget_rows, queued, sources, warnings
from fairlane.store.base import Filter, Reading

SINCE = 12 * HOUR
#: How many tasks a list names.
NAMED_MAX = 200


def summary(desk: Desk, since: Instant | None = None) -> dict[str, Any]:
    """Done, cost, tokens, parked with reasons, waits, failures since then (12 hours)."""
    now = desk.now()
    start = now - SINCE if since is None else since
    with desk.store.read() as reading:
        snapshot, plan, policy = preview(desk, reading)
        past = ended_since(reading, policy, start)
        parked = [each.task for each in every(reading, Filter(status=(Status.PARKED,)))]
        wrong = warnings(desk, snapshot, plan, policy, budget_rows(snapshot, policy, plan))
        wrong += sources(desk, reading)
        pools = [each for each in live_pauses(reading) if each.scope.startswith("pool:")]
        used = _used(reading, policy, start)
        tallies = reading.tallies()
    done = [each for each in past if each.attempt.outcome == Outcome.SUCCEEDED]
    outcomes = Counter(str(each.attempt.outcome) for each in past)
    waits = spread([each.wait for each in past if each.wait is not None], 50, 90)
    persons = [_parked_need(task) for task in parked[:NAMED_MAX]]
    persons += [{"what": pause.scope, "why": pause.reason or "paused"} for pause in pools]
    persons += [{"what": each["code"], "why": each["message"]} for each in wrong]
    return {
        "schema": SCHEMA,
        "since": show_instant(start),
        "now": show_instant(now),
        "done": {"count": len(done), "tasks": [_done(each) for each in done[-NAMED_MAX:]]},
        **used,
        "parked": {"count": len(parked), "tasks": [_parked(task, start) for task in parked]},
        "waits": waits,
        "attempts": {str(outcome): outcomes[str(outcome)] for outcome in Outcome},
        "failures": [_failed(each) for each in past if each.attempt.outcome in _FAILED][-50:],
        "in_flight": plan.room.in_flight,
        "queued": queued(tallies, plan),
        "needs_person": persons,
    }


_FAILED = frozenset({Outcome.FAILED, Outcome.LAUNCH_FAILED, Outcome.LOST})


def _used(reading: Reading, policy: Policy, since: Instant) -> dict[str, Any]:
    """Tokens and dollars, all together and by project; what runs is counted too."""
    rows: list[dict[str, Any]] = []
    for scope, booked in sorted(reading.usage_sums("project:", minute_of(since)).items()):
        tokens = counted(Tokens(*booked.tokens), policy.usage.count)
        row = {"project": scope[len("project:") :], "tokens": tokens, "usd": dollars(booked.usd)}
        rows.append(row | {"starts": booked.starts, "completions": booked.completions})
    total = sum(row["tokens"] for row in rows)
    return {"tokens": total, "usd": sum(row["usd"] for row in rows), "projects": rows}


def _done(past: Past) -> dict[str, Any]:
    attempt = past.attempt
    return {
        "id": attempt.task,
        "title": past.title,
        "project": attempt.project,
        "kind": attempt.kind,
        "attempt": attempt.number,
        "ended_at": show_instant(past.ended_at),
        "seconds": seconds(past.duration),
        "tokens": past.tokens,
        "usd": dollars(attempt.usd),
    }


def _failed(past: Past) -> dict[str, Any]:
    attempt = past.attempt
    told = {"id": attempt.task, "project": attempt.project, "attempt": attempt.number}
    told |= {"outcome": attempt.outcome, "detail": attempt.detail}
    return told | {"ended_at": show_instant(past.ended_at)}


def _parked(task: Task, since: Instant) -> dict[str, Any]:
    at = task.parked_at
    told = {"id": task.id, "title": title_of(task), "project": task.project, "reason": task.reason}
    return told | {"parked_at": shown(at), "new": at is not None and at >= since}


def _parked_need(task: Task) -> dict[str, Any]:
    return {"what": f"task:{task.id}", "why": f"parked: {task.reason}"}
