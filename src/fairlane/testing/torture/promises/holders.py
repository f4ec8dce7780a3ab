"""One holder: leases, fences, late reports, and what becomes of a lease that ran out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from fairlane.model.instant import show_instant
from fairlane.model.task import Attempt, Status, Task
from fairlane.testing.torture.promises.base import TOLERANCE, Commit, Problem, Problems, promise

#: What of an attempt never changes.
FIXED = (
    "lease", "task", "project", "kind", "agent", "number", "fence", "worker", "leased_at",
    "estimate", "weight", "workspace", "host", "executor", "direct",
)  # fmt: skip
#: What a report that comes after the end may still change: what was used.
USAGE = ("tokens", "usd", "charged")
#: What a success after a loss may change, too.
LATE = ("outcome", "session", "result", "work", "checks")


class Ground(Protocol):
    """What is really there on the hosts, whatever anybody believes."""

    def state_of(self, attempt: Attempt) -> str:
        """`runs`, `result` (it left one), `gone`; empty: not known."""

    def is_told(self, attempt: Attempt) -> bool:
        """Whether its process has ended, or was told to stop."""

    def has_passed(self, attempt: Attempt, number: int) -> bool:
        """Whether the process of a check of this attempt has ended well."""

    def missing(self, task: Task) -> list[str]:
        """The artifacts that a task waits for and that are not there."""


@promise("attempt", 3)
def identity(
    commit: Commit, before: Attempt | None, after: Attempt, ground: Ground | None
) -> Problems:
    """An attempt stays what it was when it was leased, and ends once, with an outcome."""
    if (after.ended_at is None) != (after.outcome is None):
        yield Problem(f"lease {after.lease} ended as {after.outcome}", after.task)
    if before is None:
        return
    for field in FIXED:
        was, now = getattr(before, field), getattr(after, field)
        if was != now:
            yield Problem(f"{field} of lease {after.lease} went from {was} to {now}", after.task)
    if before.ended_at is not None and after.ended_at != before.ended_at:
        yield Problem(f"lease {after.lease} ended a second time", after.task)


@promise("fence", 3)
def fences(commit: Commit, last: int, attempt: Attempt) -> Problems:
    """Fences grow with every lease, and never come back."""
    if attempt.fence <= last:
        yield Problem(f"fence {attempt.fence} was given after fence {last}", attempt.task)


@promise("attempt", 3)
def older_holders(
    commit: Commit, before: Attempt | None, after: Attempt, ground: Ground | None
) -> Problems:
    """What comes after the end of a lease changes nothing but usage; a late success its outcome."""
    if before is None or before.ended_at is None or before == after:
        return
    may = commit.may.get(after.task) == after.fence
    allowed = (*USAGE, *LATE) if before.outcome == "lost" and may else USAGE
    for field in before.__dataclass_fields__:
        was, now = getattr(before, field), getattr(after, field)
        if was != now and field not in allowed:
            yield Problem(
                f"lease {after.lease} has ended ({before.outcome}), and its {field} went"
                f" from {was!r} to {now!r}",
                after.task,
            )
    if after.outcome != before.outcome and after.outcome != "succeeded":
        yield Problem(f"the lost lease {after.lease} became {after.outcome}", after.task)


@promise("task", 3)
def late_successes(commit: Commit, before: Task, after: Task) -> Problems:
    """A late success is that of the lost attempt, with no retry, cancel or new lease since."""
    late = before.status in (Status.QUEUED, Status.PARKED) and after.status is Status.DONE
    if late and after.id not in commit.late:
        yield Problem("it became done, and no lost attempt of it may still succeed", after.id)


@promise("attempt", 3)
def losses(
    commit: Commit, before: Attempt | None, after: Attempt, ground: Ground | None
) -> Problems:
    """An attempt is lost when its lease ran out by the store's clock, or its process is dead."""
    if before is None or before.ended_at is not None or after.outcome != "lost":
        return
    expired = before.expires_at <= max(commit.times)
    here = after.executor != "none" and after.host == commit.party.host
    if not expired and not here:
        when = show_instant(before.expires_at)
        yield Problem(f"lease {after.lease} runs until {when}, and counts as lost", after.task)
    state = ground.state_of(after) if here and ground is not None else ""
    if state in ("runs", "result"):
        what = "its process runs" if state == "runs" else "its result lies in its run folder"
        yield Problem(f"lease {after.lease} counts as lost, and {what}", after.task)


@promise("attempt", 3)
def renewals(
    commit: Commit, before: Attempt | None, after: Attempt, ground: Ground | None
) -> Problems:
    """A lease is given and renewed for the time of the policy, by the store's clock."""
    same = before is not None and before.expires_at == after.expires_at
    if same or after.ended_at is not None:
        return
    given_at = after.expires_at - commit.policy.lease.ttl
    if abs(given_at - commit.now) > TOLERANCE:
        when = show_instant(after.expires_at)
        yield Problem(
            f"at {show_instant(commit.now)} lease {after.lease} got until {when}", after.task
        )
    if before is None and not commit.is_now(after.leased_at):
        yield Problem(f"it was leased at {show_instant(after.leased_at)}", after.task)


@promise("attempt", 3)
def checks_passed(
    commit: Commit, before: Attempt | None, after: Attempt, ground: Ground | None
) -> Problems:
    """An attempt succeeds when every check that it was leased with has passed."""
    if before is not None:
        names = _names(before)
        if _names(after) != names:
            yield Problem(f"the checks of lease {after.lease} are no longer {names}", after.task)
    if after.outcome == "succeeded" and (before is None or before.outcome != "succeeded"):
        open_ = [str(row["name"]) for row in after.checks if not row.get("passed")]
        if open_:
            yield Problem(f"it succeeded without {', '.join(open_)}", after.task)


@promise("attempt", 3)
def checks_ran(
    commit: Commit, before: Attempt | None, after: Attempt, ground: Ground | None
) -> Problems:
    """A check of an attempt that we run has passed when its process has ended well."""
    if before is None or before.executor == "none" or ground is None:
        return
    known = {row["name"]: bool(row.get("passed")) for row in before.checks}
    for number, row in enumerate(after.checks):
        new = bool(row.get("passed")) and not known.get(row["name"])
        if new and not ground.has_passed(after, number):
            yield Problem(f"check {row['name']} counts as passed, and it has not run", after.task)


def _names(attempt: Attempt) -> list[str]:
    """Of its checks; its setup runs first, and is known only then."""
    return [str(row["name"]) for row in attempt.checks if row["name"] != "setup"]


@promise("lease", 5)
def weights_kept(commit: Commit, scene: object, attempt: Attempt, task: Task) -> Problems:
    """A lease keeps the weight of its project; where no clock decides, it moves none."""
    by_clock = commit.policy.share.mode == "virtual-time"
    wanted = commit.model.projects[task.project].weight if by_clock else 0
    if (attempt.weight, attempt.charged) != (wanted, attempt.estimate):
        told = f"weight {attempt.weight} and charge {attempt.charged}"
        yield Problem(f"it was leased with {told}, its project has {wanted}", task.id)


@promise("lease", 3)
def checks_given(commit: Commit, scene: object, attempt: Attempt, task: Task) -> Problems:
    """A new lease has the checks of its project and those of its task."""
    project = commit.model.projects[task.project]
    own = [] if task.no_checks else [*project.checks, *task.checks]
    wanted = [list(check.argv) for check in own]
    given = [row["argv"] for row in attempt.checks]
    missing = [argv for argv in wanted if argv not in given]
    if missing:
        yield Problem(f"it was leased without {missing}", task.id)


@promise("decision", 3)
def ends_what_ran_out(commit: Commit, when: int) -> Problems:
    """A round ends every lease that has run out, unless this host sees its process."""
    for attempt, task in commit.model.flying():
        here = attempt.executor != "none" and attempt.host == commit.party.host
        if attempt.expires_at <= when and not here:
            at = show_instant(attempt.expires_at)
            yield Problem(f"lease {attempt.lease} ran out at {at}, and is still open", task.id)


class Stops:
    """How often the daemon of its host has planned since the stop of an attempt was asked for."""

    def __init__(self) -> None:
        self._plans: dict[str, int] = {}  # by lease

    def overdue(self, commit: Commit) -> Iterator[Attempt]:
        """A daemon has planned: the attempts of its host whose stop it must have sent by now.

        It looks for stops before it plans. So what is asked for while it plans may wait for its
        next turn, and no longer.
        """
        plans: dict[str, int] = {}
        for attempt, task in commit.model.flying():
            if task.stop_requested and attempt.started_at is not None:
                here = commit.party.daemon and attempt.host == commit.party.host
                plans[attempt.lease] = self._plans.get(attempt.lease, 0) + here
                if here and plans[attempt.lease] > 1:
                    yield attempt
        self._plans = plans


@promise("planned", 3)
def stops_sent(commit: Commit, stops: Stops, ground: Ground | None) -> Problems:
    """A stop that is asked for reaches the process: in the next turn of the daemon of its host."""
    for attempt in stops.overdue(commit):
        if ground is not None and not ground.is_told(attempt):
            yield Problem(
                f"the process of lease {attempt.lease} was not told to stop", attempt.task
            )
