"""Recover: attempts that another process left or started are taken over; nothing starts twice."""

from __future__ import annotations

from pathlib import Path

from fairlane.engine.end_attempt import Ending, Report
from fairlane.executors.base import Ended, Gone, Handle
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.errors import Invalid
from fairlane.model.event import Happening
from fairlane.model.record import dataclass
from fairlane.runtime import setup
from fairlane.runtime.launch import Host
from fairlane.runtime.watch import RunningAttempts


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a worker found when it started."""

    adopted: tuple[str, ...] = ()  # tasks whose attempt runs
    ended: tuple[str, ...] = ()  # tasks whose attempt ended meanwhile
    lost: tuple[str, ...] = ()  # tasks whose attempt is gone without a result

    def lines(self) -> list[str]:
        """For the log; what there is none of is left out."""
        named = {"adopted": self.adopted, "ended meanwhile": self.ended, "lost": self.lost}
        return [f"{word}: {', '.join(tasks)}" for word, tasks in named.items() if tasks]


def adopt_new(host: Host, running: RunningAttempts) -> None:
    """Watch attempts that a command started itself.

    The handle that the command noted is enough: the runner may not have shown itself yet. Of a
    command that died before it noted any, the run folder tells.
    """
    for lease in host.port.open_here(running.attempts):
        try:
            handle = _started_by_a_command(host, lease)
        except Invalid:  # its executor is not installed here
            continue
        if handle is not None:
            running.add(lease, handle)


def _started_by_a_command(host: Host, lease: LocalLeaseDocument) -> Handle | None:
    run, executor = Path(lease["run"]), host.executor_of(lease)
    if lease["handle"] or (lease["direct"] and setup.is_open(lease)):
        return Handle(run, lease["handle"] or "")
    if not lease["direct"]:
        return None
    handle = executor.adopt(run)
    ended = handle is None and isinstance(executor.poll(Handle(run)), Ended)
    return Handle(run) if ended else handle


def recover(host: Host, running: RunningAttempts) -> Recovered:
    """Adopt what runs, take in what has ended, reclaim the rest with reason `recovered`."""
    adopted: dict[str, str | None] = {}
    lost: dict[str, str] = {}
    for lease in host.port.open_here(running.attempts):
        try:
            handle = _taken_over(host, running, lease)
        except (Invalid, OSError):  # its executor is gone, or cannot tell: unknown is not lost
            continue
        if handle is None:
            lost[lease["lease"]] = lease["task"]
        elif handle.text:
            adopted[lease["lease"]] = handle.text
    if adopted:
        host.port.start(adopted)
        host.port.renew(adopted)
    if lost:
        recovered = Ending(Happening.LOST, Report(detail="recovered"))
        host.port.finish(dict.fromkeys(lost, recovered))
    tasks = {lease: attempt.task for lease, attempt in running.attempts.items()}
    return Recovered(
        tuple(task for lease, task in tasks.items() if lease in adopted),
        tuple(task for lease, task in tasks.items() if lease not in adopted),
        tuple(lost.values()),
    )


def _taken_over(host: Host, running: RunningAttempts, lease: LocalLeaseDocument) -> Handle | None:
    """Watch an attempt that runs or has ended; None: it is gone, and nothing of it starts."""
    executor, run = host.executor_of(lease), Path(lease["run"])
    if setup.is_open(lease):  # what became of it, its end tells
        return running.add(lease, Handle(run)).handle
    if executor.poll(Handle(run)) == Gone():
        executor.revoke(run)
        if executor.poll(Handle(run)) == Gone():
            executor.clean_up(run)
            left = running.add(lease, Handle(run))
            if left.says_success(host.clock.now()):
                return left.handle
            running.remove([left.id])
            return None
    handle = executor.adopt(run) or Handle(run)
    running.add(lease, handle)
    return handle
