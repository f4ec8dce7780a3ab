"""Status: how things stand now. It costs lanes and what is in flight, never the queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from fairlane.lifecycle.usage import Tokens, counted
from fairlane.model.instant import show_instant
from fairlane.model.plan import Held, Plan
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Status
from fairlane.planner.gates.budget import frees_at, reserved_in
from fairlane.planner.round import Round
from fairlane.planner.rules import BudgetLine
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.looking import last_cycle, preview
from fairlane.service.reports.documents import shown, title_of
from fairlane.service.reports.pauses import live_pauses, pause_document
from fairlane.service.reports.resources import pool_rows
from fairlane.store.base import Attempt, Reading, Tally

#: More lanes than this make every round slower than it need be.
LANES_MANY = 2_000
#: Waiting codes are holds of the gate `readiness`.
_READINESS = "readiness"


def status(desk: Desk) -> dict[str, Any]:
    """Paused, in flight of cap, queued by reason, parked, pools, budgets, and what is wrong."""
    desk.store.verify(fully=False)
    with desk.store.read() as reading:
        snapshot, plan, policy = preview(desk, reading)
        tallies = reading.tallies()
        budgets = budget_rows(snapshot, policy, plan)
        return {
            "schema": SCHEMA,
            "now": show_instant(plan.now),
            "paused": [pause_document(each) for each in live_pauses(reading)],
            "capacity": {"mode": policy.capacity.mode, **plan.room.document()},
            "queued": queued(tallies, plan),
            "parked": sum(each.count for each in tallies if each.status is Status.PARKED),
            "running": running_rows(reading, policy),
            "by_hold": by_hold(plan.holds),
            "holds": [held.document() for held in first_holds(plan.holds)],
            "pools": pool_rows(desk, reading, policy),
            "budgets": budgets,
            "warnings": warnings(desk, snapshot, plan, policy, budgets) + sources(desk, reading),
            "last_cycle": _cycle(reading),
            "wake_at": shown(plan.wake_at),
        }


def queued(tallies: Iterable[Tally], plan: Plan) -> dict[str, Any]:
    """Queued tasks: total = ready + waiting; held is part of ready."""
    kinds: Counter[str] = Counter()
    projects: Counter[str] = Counter()
    for each in tallies:
        if each.status is Status.QUEUED and each.count:
            kinds[each.kind] += each.count
            projects[each.project] += each.count
    total = kinds.total()
    waiting = sum(each.count for each in plan.holds if each.hold.gate == _READINESS)
    held = sum(each.count for each in plan.holds) - waiting
    return {
        "total": total,
        "ready": total - waiting,
        "waiting": waiting,
        "held": held,
        "by_kind": dict(sorted(kinds.items())),
        "by_project": dict(sorted(projects.items())),
    }


def by_hold(holds: Iterable[Held]) -> dict[str, int]:
    """How many tasks each code holds, most first."""
    codes: Counter[str] = Counter()
    for held in holds:
        codes[held.hold.code] += held.count
    return dict(sorted(codes.items(), key=lambda pair: (-pair[1], pair[0])))


def running_rows(reading: Reading, policy: Policy) -> list[dict[str, Any]]:
    """What is in flight, oldest first."""
    attempts = {each.task: each for each in reading.open_attempts()}
    rows = []
    for task in reading.in_flight() if attempts else ():
        attempt = attempts[task.id]
        rows.append(
            {
                "task": task.id,
                "title": title_of(task),
                "project": task.project,
                "kind": task.kind,
                "agent": task.agent,
                "status": str(task.status),
                "stop_requested": task.stop_requested,
            }
            | _attempt(attempt, policy)
        )
    return sorted(rows, key=lambda row: (row["leased_at"], row["fence"]))


def _attempt(attempt: Attempt, policy: Policy) -> dict[str, Any]:
    return {
        "attempt": attempt.number,
        "lease": attempt.lease,
        "fence": attempt.fence,
        "worker": attempt.worker,
        "workspace": attempt.workspace,
        "leased_at": show_instant(attempt.leased_at),
        "started_at": shown(attempt.started_at),
        "expires_at": show_instant(attempt.expires_at),
        "tokens": counted(Tokens(*attempt.tokens), policy.usage.count),
        "estimate_tokens": attempt.estimate,
        "usd": None if attempt.usd is None else attempt.usd / 1_000_000,
        "note": attempt.note,
        "direct": attempt.direct,
    }


def budget_rows(snapshot: Snapshot, policy: Policy, plan: Plan) -> list[dict[str, Any]]:
    """Every budget with what is used and reserved of it."""
    if not policy.budget and not any(each.budgets for each in snapshot.projects.values()):
        return []
    round = Round(snapshot, policy, plan.now)
    lines = (line for lines in round.rules.budgets.values() for line in lines)
    return [_budget(line, round) for line in lines]


def _budget(line: BudgetLine, round: Round) -> dict[str, Any]:
    reserved, budget = reserved_in(line, round), line.budget
    scale = 1 if budget.tokens is not None else 1_000_000
    fraction = (line.spent + reserved) / line.limit if line.limit else 1.0
    return {
        "scope": budget.scope,
        "window": budget.window,
        "unit": "tokens" if scale == 1 else "usd",
        "used": line.spent if scale == 1 else line.spent / scale,
        "reserved": reserved if scale == 1 else reserved / scale,
        "limit": line.limit if scale == 1 else line.limit / scale,
        "fraction": round_to(fraction),
        "warn_at": float(budget.warn_at),
        "warn": line.spent >= budget.warn_at * line.limit,
        "on_exceeded": budget.on_exceeded,
        "frees_at": shown(frees_at(line, reserved, round.now)) if fraction >= 1 else None,
    }


def round_to(number: float) -> float:
    """Four decimals: enough for people, stable for programs."""
    return float(f"{number:.4f}")


def warnings(
    desk: Desk,
    snapshot: Snapshot,
    plan: Plan,
    policy: Policy,
    budgets: Iterable[dict[str, Any]],
) -> list[dict[str, Any]]:
    """What is misconfigured, or soon will hold work."""
    found = [_warning("policy", message) for message in desk.warnings]
    wrong: dict[tuple[str, str], int] = {}
    for held in plan.holds:
        if held.hold.misconfigured:
            key = (held.hold.code, held.hold.reason)
            wrong[key] = wrong.get(key, 0) + held.count
    for (code, reason), count in wrong.items():
        found.append(_warning(code, f"{count} held: {reason}; nothing will free them"))
    if len(snapshot.lanes) > LANES_MANY:
        text = f"{len(snapshot.lanes)} lanes: distinct priorities, locks and groups multiply them"
        found.append(_warning("lanes", text))
    found += _weightless(snapshot, plan)
    for row in budgets:
        if row["warn"]:
            text = f"budget of {row['scope']} ({row['window']}): {row['fraction']:.0%} is used"
            found.append(_warning("budget", text))
    return found


def sources(desk: Desk, reading: Reading) -> list[dict[str, Any]]:
    """Configured work sources that could not be asked."""
    if not desk.settings.source:
        return []
    from fairlane.service.sourcing import syncing

    return [_warning("source", message) for message in syncing.warnings(desk, reading)]


def _weightless(snapshot: Snapshot, plan: Plan) -> list[dict[str, Any]]:
    """A project of weight 0 gets nothing while the others keep everything full."""
    if plan.room.free != 0:
        return []
    ready = {lane.key.project for lane in snapshot.lanes if lane.count}
    names = sorted(name for name in ready if snapshot.projects[name].weight == 0)
    text = "project {} has weight 0: it starts only when nobody else wants the slot"
    return [_warning("weight_zero", text.format(name)) for name in names]


def _warning(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "message": message}


def first_holds(holds: tuple[Held, ...], most: int = 50) -> list[Held]:
    """The holds that keep most, one of each sentence."""
    merged: dict[tuple[str, str], Held] = {}
    for held in holds:
        key = (held.hold.code, held.hold.reason)
        before = merged.get(key)
        merged[key] = before._replace(count=held.count + before.count) if before else held
    return sorted(merged.values(), key=lambda held: -held.count)[:most]


def _cycle(reading: Reading) -> dict[str, Any]:
    found = last_cycle(reading) or {}
    return found | ({"at": show_instant(found["at"])} if "at" in found else {})
