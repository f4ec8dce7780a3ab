"""Pools and workers: accounts that cool down, machines with slots."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fairlane.model.errors import NotFound, did_you_mean
from fairlane.model.instant import Instant, show_instant
from fairlane.model.resources import Pool
from fairlane.planner.rules import Caps
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.reports.documents import shown
from fairlane.service.slots import follows_policy, slots_of
from fairlane.store.base import Reading, WorkerRow


def list_pools(desk: Desk) -> dict[str, Any]:
    """Every pool that an agent, the settings, a cooldown or a task in flight names."""
    with desk.store.read() as reading:
        return {"schema": SCHEMA, "pools": pool_rows(desk, reading)}


def show_pool(desk: Desk, name: str) -> dict[str, Any]:
    """One pool."""
    with desk.store.read() as reading:
        rows = {row["name"]: row for row in pool_rows(desk, reading)}
    return {"schema": SCHEMA, "pool": _one("pool", name, rows)}


def list_workers(desk: Desk) -> dict[str, Any]:
    """Every worker that was ever seen and not removed."""
    with desk.store.read() as reading:
        return {"schema": SCHEMA, "workers": worker_rows(desk, reading)}


def show_worker(desk: Desk, name: str) -> dict[str, Any]:
    """One worker with what it runs."""
    with desk.store.read() as reading:
        rows = {row["name"]: row for row in worker_rows(desk, reading)}
    return {"schema": SCHEMA, "worker": _one("worker", name, rows)}


def pool_rows(desk: Desk, reading: Reading, policy: Policy | None = None) -> list[dict[str, Any]]:
    """Pools with cooldown, cap and what is in flight."""
    policy = policy or desk.policy_for_reading(reading)
    kept, now = reading.pools(), desk.now()
    flying = reading.in_flight() if reading.open_attempts() else []
    in_flight = Counter(task.pool for task in flying if task.pool is not None)
    capped = (name[5:] for name in policy.caps if name.startswith("pool:") and name[5:] != "*")
    names = {*kept, *in_flight, *capped, *desk.settings.known_pools()}
    pauses = {pause.scope: pause for pause in reading.pauses()}
    caps = Caps(policy, {})
    rows = []
    for name in sorted(names):
        pause = pauses.get(f"pool:{name}")
        row = _pool(kept.get(name) or Pool(name), now)
        row |= {"in_flight": in_flight[name], "cap": caps[f"pool:{name}"]}
        row |= {"paused": pause is not None, "reason": pause.reason if pause else ""}
        rows.append(row)
    return rows


def _pool(pool: Pool, now: Instant) -> dict[str, Any]:
    cooling = pool.until is not None and pool.until > now
    return {
        "name": pool.name,
        "cooldown": cooling,
        "until": shown(pool.until) if cooling else None,
        "hits": pool.hits,
        "cause": pool.cause,
        "probing": pool.hits > 0 and not cooling,
    }


def worker_rows(desk: Desk, reading: Reading) -> list[dict[str, Any]]:
    """Workers with their slots and what runs in them."""
    policy = desk.policy_for_reading(reading)
    tasks: dict[str, list[str]] = {}
    for attempt in reading.open_attempts():
        if attempt.worker is not None:
            tasks.setdefault(attempt.worker, []).append(attempt.task)
    now = desk.now()
    rows = sorted(reading.workers(), key=lambda row: row.name)
    found = []
    for row in rows:
        follows = follows_policy(desk.settings, row)
        slots = slots_of(desk.settings, policy) if follows else row.slots
        live = now - row.seen_at < policy.lease.ttl
        found.append(_worker(row, slots, tasks.get(row.name, []), live))
    return found


def _worker(row: WorkerRow, slots: int | None, tasks: list[str], live: bool) -> dict[str, Any]:
    return {
        "name": row.name,
        "host": row.host,
        "slots": slots,
        "free": None if slots is None else max(0, slots - len(tasks)),
        "labels": list(row.labels),
        "seen_at": show_instant(row.seen_at),
        "live": live,
        "tasks": tasks,
    }


def _one(what: str, name: str, rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if name not in rows:
        near = did_you_mean(name, rows)
        raise NotFound(f"there is no {what} {name!r}", near, code=f"unknown_{what}")
    return rows[name]
