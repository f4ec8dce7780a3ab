"""Without a daemon, commands take in what has ended here, and in direct mode start tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

from fairlane.clock import Waker
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Ending, unreadable
from fairlane.engine.liveness import ended_here
from fairlane.engine.port import LocalPort
from fairlane.executors.base import After, Handle
from fairlane.model.documents.tasks import AddedDocument, LocalLeaseDocument
from fairlane.model.errors import Invalid, TryLater
from fairlane.model.instant import SECOND
from fairlane.runtime.checks import running_check
from fairlane.runtime.launch import Host, Launcher, host_of, is_agent
from fairlane.runtime.lock import COMMAND_SECONDS, DAEMON, SETTLING, STARTING, brief, holder
from fairlane.runtime.settle import advance
from fairlane.runtime.watch import running_attempt

#: The answer of an operation that adds tasks.
Document = dict[str, object]


def take_in(context: Context, wait: bool = False) -> tuple[str, ...]:
    """Settle what has ended here, unless a daemon does; the tasks whose attempt ended.

    `wait`: for another command that does it now, which may have looked too early.
    """
    if not ended_here(context):
        return ()
    try:
        with brief(context.home, SETTLING, seconds=COMMAND_SECONDS if wait else 0.0):
            return () if holder(context.home) is not None else _settle(context)
    except TryLater:
        return ()  # the next command takes it in


def start_ready(context: Context) -> tuple[str, ...]:
    """In direct mode without a daemon: start what may start now, within the caps."""
    policy = context.policy()
    if policy.capacity.mode != "direct":
        return ()
    with brief(context.home, STARTING, shared=True):
        if holder(context.home) is not None:
            return ()
        port = LocalPort(context)
        port.present()
        leases = port.lease().documents
        return _launch(context, leases, policy.capacity.spawn_delay / SECOND)


def start_direct(context: Context, tasks: Sequence[str]) -> tuple[str, ...]:
    """Start these tasks now, where the policy says so; what another gate holds stays queued."""
    if context.policy().capacity.mode != "direct" or not tasks:
        return ()
    with brief(context.home, STARTING, shared=True):
        return _launch(context, _lease(context, tasks))


def add_and_start(context: Context, add: Callable[[], Document]) -> Document:
    """Add tasks and lease them in one commit, so that no daemon takes them first; then launch."""
    with brief(context.home, STARTING, shared=True):
        with LocalPort(context).one_commit():
            document = add()
            rows = _added(document)
            leases = _lease(context, [row["id"] for row in rows])
        _mark_started(rows, _launch(context, leases))
    return document


def start_added(context: Context, document: Document) -> None:
    """Start what was just added, where the policy says so; the answer to `add` tells it."""
    rows = _added(document)
    try:
        _mark_started(rows, start_direct(context, [row["id"] for row in rows]))
    except TryLater:
        return  # they are added and stay queued


def _added(document: Document) -> list[AddedDocument]:
    """The rows of the tasks that this answer says are new."""
    if "tasks" not in document or document["deferred"] or document.get("dry_run"):
        return []
    rows = cast(list[AddedDocument], document["tasks"])
    return [row for row in rows if row["created"]]


def _mark_started(rows: Sequence[AddedDocument], started: Sequence[str]) -> None:
    for row in rows:
        if row["id"] in started:
            row["status"], row["position"] = "running", None


def _lease(context: Context, tasks: Sequence[str]) -> list[LocalLeaseDocument]:
    """Lease these tasks, whatever the caps say; what another gate holds stays queued."""
    if not tasks:
        return []
    port = LocalPort(context)
    port.present()
    return port.lease(only=tasks).documents


def _launch(
    context: Context, leases: Sequence[LocalLeaseDocument], pause: float = 0.0
) -> tuple[str, ...]:
    """Start these, `pause` seconds apart; the tasks that run."""
    host, started = host_of(context, after=_after(context)), set()
    renew_after = context.policy().lease.ttl / SECOND / 3
    with closing(Waker()) as waker:
        launcher = Launcher(host, waker)
        try:
            launcher.begin(leases, pause)
            renewed_at = host.clock.monotonic()
            while launcher.busy:
                host.clock.wait(min(launcher.due_in(), renew_after, COMMAND_SECONDS), waker)
                waker.clear()
                launcher.start_due()
                started |= _report(host, launcher)
                if host.clock.monotonic() - renewed_at >= renew_after:
                    host.port.renew(launcher.waiting, launcher.waiting)
                    renewed_at = host.clock.monotonic()
        finally:
            launcher.close()
            started |= _report(host, launcher)  # what an interrupt kept from starting is given back
    return tuple(lease["task"] for lease in leases if lease["task"] in started)


def _report(host: Host, launcher: Launcher) -> set[str]:
    """Say what became of launches; the tasks that run."""
    started = set()
    for launched in launcher.take():
        lease = launched.lease["lease"]
        if isinstance(launched.outcome, Handle):
            if is_agent(launched.lease, launched.outcome):
                host.port.start({lease: launched.outcome.text})
            started.add(launched.lease["task"])
        else:
            host.port.finish({lease: launched.outcome})
    return started


def stop_requested(context: Context) -> None:
    """Without a daemon: stop the attempts on this host whose stop somebody requested."""
    if holder(context.home) is not None:
        return
    host = host_of(context)
    leases = {lease["lease"]: lease for lease in host.port.open_here()}
    for name in host.port.stops(leases) if leases else ():
        lease = leases[name]
        try:
            executor = host.executor_of(lease)
            agent = Handle(Path(lease["run"]), lease["handle"] or "")
            executor.stop(running_check(executor, lease) or agent)
        except Invalid:  # its executor is not installed here
            continue


def _after(context: Context) -> After:
    """What a command starts calls for `reclaim` at its end, where no daemon is there."""
    argv = [sys.executable, "-m", "fairlane", "--home", str(context.home)]
    argv += ["--db", context.db] if context.db else []
    return After((*argv, "reclaim"), context.home / DAEMON)


def _settle(context: Context) -> tuple[str, ...]:
    ended = ended_here(context)  # another command may have done it
    host = host_of(context, after=_after(context))
    leases = [lease for lease in host.port.open_here() if lease["lease"] in ended]
    return tuple(lease["task"] for lease in leases if _settled(host, lease))


def _settled(host: Host, lease: LocalLeaseDocument) -> bool:
    handle = Handle(Path(lease["run"]), lease["handle"] or "")
    running = running_attempt(host, lease, handle)
    running.stopping = _stop_wanted(host, lease)
    ending: Ending | Handle
    try:
        ending = advance(host, running)
    except OSError:  # too many open files, no memory: the next command looks again
        raise
    except Exception as error:  # a bug here must not hold the lease for ever
        ending = unreadable(error)
    if isinstance(ending, Handle):  # another process runs; its end calls for this again
        if is_agent(lease, ending):
            host.port.start({lease["lease"]: ending.text})
        if _stop_wanted(host, lease):  # perhaps since it started
            running.executor.stop(ending)
        return False
    finished = host.port.finish({lease["lease"]: ending})
    return any(end.taken_in for end in finished.values())


def _stop_wanted(host: Host, lease: LocalLeaseDocument) -> str:
    return host.port.stops([lease["lease"]]).get(lease["lease"], "")
