"""Direct mode: `add` starts the task at once; only the gate `caps` does not hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairlane.daemon.launch import Launcher, LaunchFailed
from fairlane.executors import executor_named
from fairlane.executors.process import reap
from fairlane.model.event import Happening
from fairlane.model.lane import lane_of
from fairlane.model.task import Status
from fairlane.planner import lanes
from fairlane.policy.policy import Policy
from fairlane.service import holding
from fairlane.service.desk import Desk
from fairlane.service.ending import Report
from fairlane.service.holding import Ending
from fairlane.service.looking import Asker, Seen, look
from fairlane.service.rounds import Committed, commit
from fairlane.settings import host_name
from fairlane.store.base import Writing


def start_direct(desk: Desk, ids: Sequence[str]) -> tuple[str, ...]:
    """Start these tasks now, where the policy says so; what another gate holds stays queued."""
    policy = desk.policy()
    if policy.capacity.mode != "direct" or not ids:
        return ()
    reap()
    holding.present(desk)
    with desk.store.write() as tx:
        committed = _commit(desk, tx, policy, ids)
    launcher = Launcher(desk, executor_named(desk.settings.worker.executor))
    started = []
    for task, attempt in committed.started:
        try:
            running = launcher.launch(task, attempt, policy)
        except LaunchFailed as error:
            told = Ending(Happening.LAUNCH_FAILED, Report(detail=error.message))
            holding.finish(desk, policy, {attempt.lease: told})
        else:
            holding.started(desk, policy, [running])
            started.append(task.id)
    return tuple(started)


def start_added(desk: Desk, document: dict[str, Any]) -> None:
    """Start what was just added, where the policy says so; the answer to `add` tells it."""
    if "tasks" not in document or document["deferred"] or document.get("dry_run"):
        return
    started = start_direct(desk, [row["id"] for row in document["tasks"] if row["created"]])
    for row in document["tasks"]:
        if row["id"] in started:
            row |= {"status": "running", "position": None}


def _commit(desk: Desk, tx: Writing, policy: Policy, ids: Sequence[str]) -> Committed:
    """A round over these tasks alone, with no cap: the same planner, the same commit."""
    before, now = tx.version(), desk.now()
    worker = desk.settings.worker
    asker = Asker(worker.name, None, worker.executor, host_name(), direct=True)
    attempts = {attempt.task: attempt for attempt in tx.open_attempts()}
    placed = [found for name in ids if (found := tx.placed(name)) is not None]
    ready = [each.task for each in placed if each.task.status is Status.QUEUED and not each.wait]
    snapshot = replace(
        look(desk, tx, policy, now, attempts, asker),
        lanes=tuple(lane_of(task.lane, [task.entry]) for task in ready),
    )
    uncapped = replace(policy, caps={})
    plan = lanes.plan(snapshot, uncapped, now)
    seen = Seen(snapshot, plan, attempts, frozenset(), asker, alone=True)
    return commit(desk, tx, uncapped, now, seen, before)
