"""Collect: without a daemon, whoever comes by takes in what has ended on this machine."""

from __future__ import annotations

from fairlane.daemon.cycle import Cycle
from fairlane.daemon.direct import launcher_of
from fairlane.daemon.launch import LaunchFailed
from fairlane.daemon.lock import COMMAND_SECONDS, SETTLING, STARTING, brief, holder
from fairlane.daemon.settle import book, broken, ending_of
from fairlane.executors.process import reap
from fairlane.model.errors import TryLater
from fairlane.model.task import Task
from fairlane.policy.policy import Policy
from fairlane.service import holding
from fairlane.service.desk import Desk
from fairlane.service.holding import Ending
from fairlane.store.base import Attempt


def take_in(desk: Desk, policy: Policy, wait: bool = False) -> tuple[str, ...]:
    """Settle what has ended here, unless a daemon does; the tasks whose attempt ended.

    `wait`: for another command that does it now, which may have looked too early.
    """
    if not holding.gone(desk):
        return ()
    try:
        with brief(desk.home, SETTLING, seconds=COMMAND_SECONDS if wait else 0.0):
            return () if holder(desk.home) is not None else _settle(desk, policy)
    except TryLater:
        return ()  # it is taken in by whoever comes next


def start_ready(desk: Desk, policy: Policy) -> tuple[str, ...]:
    """In direct mode without a daemon: start what may start now, within the caps."""
    if policy.capacity.mode != "direct":
        return ()
    with brief(desk.home, STARTING, shared=True):
        if holder(desk.home) is not None:
            return ()
        reap()
        holding.present(desk, policy)
        cycle = Cycle(desk, launcher_of(desk))
        try:
            cycle.once(policy)
            return tuple(_launched(desk, policy, cycle))
        finally:
            cycle.close()


def _launched(desk: Desk, policy: Policy, cycle: Cycle) -> list[str]:
    """What became of every launch, booked as it comes."""
    started = []
    while cycle.launching:
        task, attempt, found = cycle.launched.get()
        cycle.launching -= 1
        if isinstance(found, LaunchFailed):
            holding.finish(desk, policy, {attempt.lease: found.ending})
        else:
            holding.started(desk, policy, [attempt])
            started.append(task.id)
    return started


def _settle(desk: Desk, policy: Policy) -> tuple[str, ...]:
    taken = []
    for task, attempt in holding.gone(desk):  # again: the one before may have done it
        ending = _ending(desk, task, attempt)
        if book(desk, policy, {attempt.lease: ending}):
            taken.append(task.id)
    return tuple(taken)


def _ending(desk: Desk, task: Task, attempt: Attempt) -> Ending:
    with desk.store.read() as reading:
        project = reading.projects()[task.project]
    cycle = Cycle(desk, launcher_of(desk))
    try:
        return ending_of(desk, cycle.member(task, attempt), project, desk.now())
    except OSError:  # too many open files, no memory: whoever comes next looks again
        raise
    except Exception as error:  # a bug here must not hold the lease for ever
        return broken(error)
    finally:
        cycle.close()
