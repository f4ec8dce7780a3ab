"""Pools and workers: accounts that cool down, machines with slots."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from fairlane.engine.context import Context, follows_policy, slots_of
from fairlane.model.errors import NotFound, did_you_mean
from fairlane.model.instant import show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.project import Pause, Pool, WorkerRow
from fairlane.planner.rules import Caps
from fairlane.policy.policy import Policy
from fairlane.service.reports.documents import shown
from fairlane.store.base import Reading

if TYPE_CHECKING:
    from fairlane.model.documents import admin

T = TypeVar("T")


def list_pools(context: Context) -> admin.PoolsAnswer:
    """Every pool with its cooldown."""
    with context.store.read() as reading:
        return {"schema": SCHEMA, "pools": pool_rows(context, reading)}


def show_pool(context: Context, name: str) -> admin.PoolAnswer:
    """One pool."""
    with context.store.read() as reading:
        rows = {row["name"]: row for row in pool_rows(context, reading)}
    return {"schema": SCHEMA, "pool": _one("pool", name, rows)}


def list_workers(context: Context) -> admin.WorkersAnswer:
    """Every worker with its slots."""
    with context.store.read() as reading:
        return {"schema": SCHEMA, "workers": worker_rows(context, reading)}


def show_worker(context: Context, name: str) -> admin.WorkerAnswer:
    """One worker with what it runs."""
    with context.store.read() as reading:
        rows = {row["name"]: row for row in worker_rows(context, reading)}
    return {"schema": SCHEMA, "worker": _one("worker", name, rows)}


def pool_rows(
    context: Context, reading: Reading, policy: Policy | None = None
) -> list[admin.PoolDocument]:
    """Pools with cooldown, cap and what is in flight."""
    policy = policy or context.policy_for_reading(reading)
    pools, now = reading.table(Pool), context.now()
    flying = reading.in_flight() if reading.open_attempts() else []
    in_flight = Counter(task.pool for task in flying if task.pool is not None)
    capped = (name[5:] for name in policy.caps if name.startswith("pool:") and name[5:] != "*")
    names = {*pools, *in_flight, *capped, *context.settings.known_pools()}
    pauses = reading.table(Pause)
    caps = Caps(policy, {})
    rows: list[admin.PoolDocument] = []
    for name in sorted(names):
        pool, pause = pools.get(name) or Pool(name), pauses.get(f"pool:{name}")
        cooling = pool.until is not None and pool.until > now
        rows.append(
            {
                "name": name,
                "cooldown": cooling,
                "until": shown(pool.until) if cooling else None,
                "hits": pool.hits,
                "cause": pool.cause,
                "probing": pool.hits > 0 and not cooling,
                "in_flight": in_flight[name],
                "cap": caps[f"pool:{name}"],
                "paused": pause is not None,
                "reason": pause.reason if pause else "",
            }
        )
    return rows


def worker_rows(context: Context, reading: Reading) -> list[admin.WorkerDocument]:
    """Workers with their slots and what runs in them."""
    policy = context.policy_for_reading(reading)
    tasks: dict[str, list[str]] = {}
    for attempt in reading.open_attempts():
        if attempt.worker is not None:
            tasks.setdefault(attempt.worker, []).append(attempt.task)
    now = context.now()
    rows: list[admin.WorkerDocument] = []
    for name, row in sorted(reading.table(WorkerRow).items()):
        follows = follows_policy(context.settings, row)
        slots = slots_of(context.settings, policy) if follows else row.slots
        mine = tasks.get(name, [])
        rows.append(
            {
                "name": name,
                "host": row.host,
                "slots": slots,
                "free": None if slots is None else max(0, slots - len(mine)),
                "labels": list(row.labels),
                "seen_at": show_instant(row.seen_at),
                "live": now - row.seen_at < policy.lease.ttl,
                "tasks": mine,
            }
        )
    return rows


def _one(what: str, name: str, rows: dict[str, T]) -> T:
    if name not in rows:
        near = did_you_mean(name, rows)
        raise NotFound(f"there is no {what} {name!r}", near, code=f"unknown_{what}")
    return rows[name]
