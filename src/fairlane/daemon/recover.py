"""Recover: after a start, whatever happened meanwhile is taken in; nothing is started twice."""

from __future__ import annotations

from dataclasses import replace

from fairlane.daemon.crew import Crew
from fairlane.daemon.cycle import Cycle
from fairlane.daemon.folders import run_folder
from fairlane.executors.base import Executor, Handle
from fairlane.executors.process import clean_up, exit_of, revoke
from fairlane.model.event import Happening
from fairlane.model.record import dataclass
from fairlane.policy.policy import Policy
from fairlane.service import holding
from fairlane.service.desk import Desk
from fairlane.service.ending import Report
from fairlane.service.holding import Ending
from fairlane.store.base import Attempt


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was found after a start."""

    adopted: tuple[str, ...] = ()  # tasks whose process lives
    ended: tuple[str, ...] = ()  # tasks whose process ended meanwhile
    lost: tuple[str, ...] = ()  # tasks whose process is gone without a word


def adopt_new(desk: Desk, policy: Policy, executor: Executor, cycle: Cycle, crew: Crew) -> None:
    """Processes that a command started itself are watched from now on.

    The number that the command noted is enough: the runner may not have shown itself yet. Of a
    command that died before it noted any, the run folder tells.
    """
    for task, attempt in holding.mine(desk):
        if attempt.lease in crew.members or not (attempt.pid is not None or attempt.direct):
            continue
        found = attempt
        if attempt.pid is None:
            folder = run_folder(desk, attempt)
            handle = executor.adopt(folder) or Handle(0, "")
            if not handle.pid and exit_of(folder) is None:
                continue
            found = replace(attempt, pid=handle.pid or None, pid_started=handle.pid_started)
        crew.add(cycle.member(task, found))


def recover(desk: Desk, policy: Policy, executor: Executor, cycle: Cycle, crew: Crew) -> Recovered:
    """Adopt the living, take in the ended, reclaim the rest with reason `recovered`."""
    adopted: list[tuple[str, Attempt]] = []
    ended: list[tuple[str, Attempt]] = []
    lost: dict[str, str] = {}
    for task, attempt in holding.mine(desk):
        if attempt.lease in crew.members:
            continue
        folder = run_folder(desk, attempt)
        handle = executor.adopt(folder)
        if handle is None and exit_of(folder) is None:
            revoke(folder)
            handle = executor.adopt(folder)
        if handle is not None or exit_of(folder) is not None:
            known = handle or Handle(0, "")
            found = replace(attempt, pid=known.pid or None, pid_started=known.pid_started)
            crew.add(cycle.member(task, found))
            (adopted if handle else ended).append((task.id, found))
        else:
            clean_up(folder)
            lost[attempt.lease] = task.id
    living = [attempt for _, attempt in adopted]
    if living:
        holding.started(desk, policy, living)
        holding.renew(desk, policy, [attempt.lease for attempt in living])
    if lost:
        told = Ending(Happening.LOST, Report(detail="recovered"))
        holding.finish(desk, policy, dict.fromkeys(lost, told))
    return Recovered(
        tuple(name for name, _ in adopted), tuple(name for name, _ in ended), tuple(lost.values())
    )
