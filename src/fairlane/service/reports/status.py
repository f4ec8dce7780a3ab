"""Status of the queue now. Its cost grows with lanes and attempts in flight, not with the queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlane.engine.context import Context, slots_of
from fairlane.engine.look.planned import last_cycle, preview
from fairlane.intake.queue_depth import measure
from fairlane.model.instant import show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.plan import Held, Plan
from fairlane.model.project import Pause
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Attempt, Status, Task
from fairlane.planner.gates.budget import frees_at, reserved_in
from fairlane.planner.round import Round
from fairlane.planner.rules import BudgetLine
from fairlane.policy.policy import Policy
from fairlane.service.home import troubles
from fairlane.service.reports.documents import dollars, pause_document, shown, title_of, tokens_of
from fairlane.service.reports.resources import pool_rows
from fairlane.store.base import Reading, Tally

if TYPE_CHECKING:
    from fairlane.model.documents import admin, reports

#: More lanes than this make every round slower than it need be.
LANES_MANY = 2_000
#: Waiting codes are holds of the gate `readiness`.
_READINESS = "readiness"


def status(context: Context) -> reports.StatusAnswer:
    """The state of the queue: pauses, tasks in flight, holds, pools, budgets, warnings."""
    context.store.verify(fully=False)
    with context.store.read() as reading:
        snapshot, plan, policy = preview(context, reading)
        tallies = reading.tallies()
        budgets = budget_rows(snapshot, policy, plan)
        return {
            "schema": SCHEMA,
            "now": show_instant(plan.now),
            "paused": [pause_document(pause) for pause in live_pauses(reading)],
            "capacity": {"mode": policy.capacity.mode, **plan.room.document()},
            "queued": queued(tallies, plan),
            "parked": sum(tally.count for tally in tallies if tally.status is Status.PARKED),
            "running": running_rows(reading, policy),
            "by_hold": by_hold(plan.holds),
            "holds": [row.document() for row in first_holds(plan.holds)],
            "pools": pool_rows(context, reading, policy),
            "budgets": budgets,
            "warnings": warnings(context, snapshot, plan, policy, budgets)
            + delays(context, reading, plan, policy)
            + sources(context, reading)
            + _troubles(reading),
            "last_cycle": _cycle(reading),
            "wake_at": shown(plan.wake_at),
        }


def queued(tallies: Iterable[Tally], plan: Plan) -> reports.QueuedDocument:
    """Queued tasks: total = ready + waiting; held is part of ready."""
    kinds: Counter[str] = Counter()
    projects: Counter[str] = Counter()
    for row in tallies:
        if row.status is Status.QUEUED and row.count:
            kinds[row.kind] += row.count
            projects[row.project] += row.count
    total = kinds.total()
    waiting = sum(row.count for row in plan.holds if row.hold.gate == _READINESS)
    held = sum(row.count for row in plan.holds) - waiting
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
    for row in holds:
        codes[row.hold.code] += row.count
    return dict(sorted(codes.items(), key=lambda pair: (-pair[1], pair[0])))


def running_rows(reading: Reading, policy: Policy) -> list[reports.RunningDocument]:
    """What is in flight, oldest first."""
    attempts = {attempt.task: attempt for attempt in reading.open_attempts()}
    tasks = reading.in_flight() if attempts else []
    rows = [_running(task, attempts[task.id], policy) for task in tasks]
    return sorted(rows, key=lambda row: (row["leased_at"], row["fence"]))


def _running(task: Task, attempt: Attempt, policy: Policy) -> reports.RunningDocument:
    return {
        "task": task.id,
        "title": title_of(task),
        "project": task.project,
        "kind": task.kind,
        "agent": task.agent,
        "status": str(task.status),
        "stop_requested": task.stop_requested,
        "attempt": attempt.number,
        "lease": attempt.lease,
        "fence": attempt.fence,
        "worker": attempt.worker,
        "workspace": attempt.workspace,
        "leased_at": show_instant(attempt.leased_at),
        "started_at": shown(attempt.started_at),
        "expires_at": show_instant(attempt.expires_at),
        "tokens": tokens_of(attempt, policy),
        "estimate_tokens": attempt.estimate,
        "usd": dollars(attempt.usd),
        "note": attempt.note,
        "direct": attempt.direct,
    }


def budget_rows(snapshot: Snapshot, policy: Policy, plan: Plan) -> list[admin.BudgetDocument]:
    """Every budget with what is used and reserved of it."""
    if not policy.budget and not any(project.budgets for project in snapshot.projects.values()):
        return []
    round = Round(snapshot, policy, plan.now)
    lines = (line for lines in round.rules.budgets.values() for line in lines)
    return [_budget(line, round) for line in lines]


def _budget(line: BudgetLine, round: Round) -> admin.BudgetDocument:
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
    context: Context,
    snapshot: Snapshot,
    plan: Plan,
    policy: Policy,
    budgets: Iterable[admin.BudgetDocument],
) -> list[reports.WarningDocument]:
    """What is misconfigured, or soon will hold work."""
    rows = [_warning("policy", message) for message in context.warnings]
    wrong: dict[tuple[str, str], int] = {}
    for hold_row in plan.holds:
        if hold_row.hold.misconfigured:
            key = (hold_row.hold.code, hold_row.hold.reason)
            wrong[key] = wrong.get(key, 0) + hold_row.count
    for (code, reason), count in wrong.items():
        rows.append(_warning(code, f"{count} held: {reason}; nothing will free them"))
    if len(snapshot.lanes) > LANES_MANY:
        text = f"{len(snapshot.lanes)} lanes: distinct priorities, locks and groups multiply them"
        rows.append(_warning("lanes", text))
    rows += _weightless(snapshot, plan)
    for row in budgets:
        if row["warn"]:
            text = f"budget of {row['scope']} ({row['window']}): {row['fraction']:.0%} is used"
            rows.append(_warning("budget", text))
    return rows


def delays(
    context: Context, reading: Reading, plan: Plan, policy: Policy
) -> list[reports.WarningDocument]:
    """A queue beyond its soft limit, with its depth by kind; by the same rule as `add` warns."""
    pressure = measure(reading, policy, slots_of(context.settings, policy), plan.now)
    said = pressure.warning() if pressure is not None else ""
    cap = policy.caps.get("all")
    more = "" if cap is None else f". To run more at once, raise caps.all (now {cap})"
    return [_warning("backpressure", f"starts are delayed: {said}{more}")] if said else []


def sources(context: Context, reading: Reading) -> list[reports.WarningDocument]:
    """Configured work sources that could not be asked."""
    if not context.settings.source:
        return []
    from fairlane.service.sync import syncing

    return [_warning("source", message) for message in syncing.warnings(context, reading)]


def _troubles(reading: Reading) -> list[reports.WarningDocument]:
    """What is wrong around the daemon."""
    return [_warning(row.code, f"{row.message}. {row.hint}") for row in troubles.current(reading)]


def _weightless(snapshot: Snapshot, plan: Plan) -> list[reports.WarningDocument]:
    """A project of weight 0 gets nothing while the others keep everything full."""
    if plan.room.free != 0:
        return []
    ready = {lane.key.project for lane in snapshot.lanes if lane.count}
    names = sorted(name for name in ready if snapshot.projects[name].weight == 0)
    text = "project {} has weight 0: it starts only when nobody else wants the slot"
    return [_warning("weight_zero", text.format(name)) for name in names]


def _warning(code: str, message: str) -> reports.WarningDocument:
    return {"code": code, "message": message}


def first_holds(holds: tuple[Held, ...], most: int = 50) -> list[Held]:
    """The holds that keep most, one of each sentence."""
    merged: dict[tuple[str, str], Held] = {}
    for row in holds:
        key = (row.hold.code, row.hold.reason)
        before = merged.get(key)
        merged[key] = before._replace(count=row.count + before.count) if before else row
    return sorted(merged.values(), key=lambda row: -row.count)[:most]


def _cycle(reading: Reading) -> dict[str, object]:
    cycle = last_cycle(reading)
    return {**cycle, "at": show_instant(cycle["at"])} if cycle else {}


def live_pauses(reading: Reading) -> list[Pause]:
    """Pauses, without those of tasks that have ended since."""
    pauses = reading.table(Pause).values()
    names = [pause.scope[5:] for pause in pauses if pause.scope.startswith("task:")]
    statuses = reading.statuses(names) if names else {}
    over = {f"task:{name}" for name, status in statuses.items() if status.final}
    return sorted((p for p in pauses if p.scope not in over), key=lambda pause: pause.scope)
