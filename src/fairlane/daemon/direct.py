"""Direct mode: `add` starts the task at once; only the gate `caps` does not hold it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from fairlane.daemon.launch import Launcher, LaunchFailed
from fairlane.daemon.lock import DAEMON, STARTING, brief
from fairlane.executors import executor_named
from fairlane.executors.base import After
from fairlane.executors.process import reap
from fairlane.model.lane import lane_of
from fairlane.model.task import Status
from fairlane.planner import lanes
from fairlane.policy.policy import Policy
from fairlane.service import holding
from fairlane.service.alive import revoke_expired
from fairlane.service.desk import Desk
from fairlane.service.looking import Asker, Seen, look
from fairlane.service.rounds import Committed, commit
from fairlane.service.slots import direct_slots
from fairlane.settings import host_name
from fairlane.store.base import Writing


def start_direct(desk: Desk, ids: Sequence[str]) -> tuple[str, ...]:
    """Start these tasks now, where the policy says so; what another gate holds stays queued."""
    policy = desk.policy()
    if policy.capacity.mode != "direct" or not ids:
        return ()
    with brief(desk.home, STARTING, shared=True):
        return _launch(desk, policy, _lease(desk, policy, ids))


def add_and_start(desk: Desk, add: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Add tasks and lease them in one commit, so that no daemon takes them first; then launch."""
    policy = desk.policy()
    if policy.capacity.mode != "direct":
        return add()
    with brief(desk.home, STARTING, shared=True):
        with desk.store.sharing():
            document = add()
            ids = _added(document)
            committed = _lease(desk, policy, ids) if ids else None
        if committed is not None:
            _mark_started(document, _launch(desk, policy, committed))
    return document


def start_added(desk: Desk, document: dict[str, Any]) -> None:
    """Start what was just added, where the policy says so; the answer to `add` tells it."""
    _mark_started(document, start_direct(desk, _added(document)))


def launcher_of(desk: Desk) -> Launcher:
    """Of a command: what it starts calls for `reclaim` at its end, where no daemon is there."""
    words = [sys.executable, "-m", "fairlane", "--home", str(desk.home)]
    words += ["--db", desk.db] if desk.db else []
    after = After((*words, "reclaim"), desk.home / DAEMON)
    return Launcher(desk, executor_named(desk.settings.worker.executor), after)


def _added(document: dict[str, Any]) -> list[str]:
    """The tasks that this answer to `add` says are new."""
    if "tasks" not in document or document["deferred"] or document.get("dry_run"):
        return []
    return [row["id"] for row in document["tasks"] if row["created"]]


def _mark_started(document: dict[str, Any], started: Sequence[str]) -> None:
    for row in document["tasks"] if started else ():
        if row["id"] in started:
            row |= {"status": "running", "position": None}


def _lease(desk: Desk, policy: Policy, ids: Sequence[str]) -> Committed:
    holding.present(desk, policy)
    with desk.store.write() as tx:
        return _commit(desk, tx, policy, ids)


def _launch(desk: Desk, policy: Policy, committed: Committed) -> tuple[str, ...]:
    reap()
    launcher = launcher_of(desk)
    started = []
    for task, attempt in committed.started:
        try:
            running = launcher.launch(task, attempt, policy)
        except LaunchFailed as error:
            holding.finish(desk, policy, {attempt.lease: error.ending})
        else:
            holding.started(desk, policy, [running])
            started.append(task.id)
    return tuple(started)


def _commit(desk: Desk, tx: Writing, policy: Policy, ids: Sequence[str]) -> Committed:
    """A round over these tasks alone, with no cap: the same planner, the same commit."""
    before, now = tx.version(), desk.now()
    worker = desk.settings.worker
    asker = Asker(worker.name, None, worker.executor, host_name(), direct=True)
    attempts = {attempt.task: attempt for attempt in tx.open_attempts()}
    revoke_expired(desk.home, attempts.values(), now)
    placed = [found for name in ids if (found := tx.placed(name)) is not None]
    ready = [each.task for each in placed if each.task.status is Status.QUEUED and not each.wait]
    seen = look(desk, tx, policy, now, attempts, asker)
    slots = direct_slots(desk.settings, policy)
    snapshot = replace(
        seen,
        lanes=tuple(lane_of(task.lane, [task.entry]) for task in ready),
        workers=tuple(replace(each, slots=slots) for each in seen.workers),
    )
    uncapped = replace(policy, caps={})
    plan = lanes.plan(snapshot, uncapped, now)
    made = Seen(snapshot, plan, attempts, frozenset(), asker, alone=True)
    return commit(desk, tx, uncapped, now, made, before)
