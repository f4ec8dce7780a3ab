"""Nothing is lost: what may follow what, and the counts that go with it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from fairlane.model.instant import Instant, show_instant
from fairlane.model.task import Attempt, Status, Task
from fairlane.store.base import Placed
from fairlane.testing.torture.model import facts, places
from fairlane.testing.torture.promises.base import TOLERANCE, Commit, Problem, Problems, promise

_Q, _L, _R = Status.QUEUED, Status.LEASED, Status.RUNNING
_D, _P, _C = Status.DONE, Status.PARKED, Status.CANCELED
_OVER = frozenset({_D, _P, _C})
#: What may follow each status.
FOLLOWS: dict[Status, frozenset[Status]] = {
    _Q: frozenset({_Q, _L, _C, _D, _P}),
    _L: frozenset({_L, _R, _Q, _P, _D, _C}),
    _R: frozenset({_R, _Q, _P, _D, _C}),
    _P: frozenset({_P, _Q, _C, _D}),
    _D: frozenset({_D, _Q}),
    _C: frozenset({_C, _Q}),
}
#: The event that tells of each new status; of queued there are many.
TOLD = {_L: "leased", _R: "started", _D: "succeeded", _P: "parked", _C: "canceled"}
#: Outcomes that count as a failure at once.
FAILURES = ("failed", "launch_failed", "lost")
#: Outcomes after which a task keeps its place.
KEEPS_PLACE = ("throttled", "environment", "released")
#: What a task is for as long as it is there.
FIXED = ("id", "seq", "parent", "depth")


@promise("task", 2)
def transitions(commit: Commit, before: Task, after: Task) -> Problems:
    """A status follows only one that it may follow, and what a task is stays."""
    if after.status not in FOLLOWS[before.status]:
        yield Problem(f"it went from {before.status} to {after.status}", after.id)
    for field in FIXED:
        was, now = getattr(before, field), getattr(after, field)
        if was != now and commit.model.task(after.id).meta != {"compacted": True}:
            yield Problem(f"its {field} went from {was!r} to {now!r}", after.id)


@promise("task", 2)
def events_told(commit: Commit, before: Task, after: Task) -> Problems:
    """Every new status is told by an event of the same transaction."""
    if before.status is after.status:
        return
    told, wanted = commit.events_of(after.id), TOLD.get(after.status)
    if not told or (wanted is not None and wanted not in told):
        yield Problem(
            f"it went from {before.status} to {after.status}, and the log says {sorted(told)}",
            after.id,
        )


@promise("task", 2)
def attempt_numbers(commit: Commit, before: Task, after: Task) -> Problems:
    """The number of attempts grows by one with each lease, and never otherwise."""
    leased = after.status is _L and before.status is not _L
    if after.attempts != before.attempts + leased:
        yield Problem(f"its attempts went from {before.attempts} to {after.attempts}", after.id)


@promise("task", 3)
def stops_kept(commit: Commit, before: Task, after: Task) -> Problems:
    """A stop that was asked for stays until the attempt has ended."""
    flies = before.status.in_flight and after.status.in_flight
    if flies and before.stop_requested and not after.stop_requested:
        yield Problem(f"its stop was asked for ({before.stop_requested}) and forgotten", after.id)


@promise("task", 4)
def back_at_the_end(commit: Commit, before: Task, after: Task) -> Problems:
    """What is added again or retried is ready since then: it overtakes nobody."""
    back = before.status in (_P, _D, _C) and after.status is _Q and after.ready_since is not None
    if back and (after.ready_since or 0) < min(commit.times) - TOLERANCE:
        yield Problem(
            f"it is back with its place of {show_instant(after.ready_since or 0)}", after.id
        )


@promise("ended", 2)
def failures_counted(commit: Commit, before: Task, after: Task, attempt: Attempt) -> Problems:
    """Failures are those that failed, were lost or could not be launched since the last retry."""
    outcome, more = attempt.outcome or "", after.failures - before.failures
    if after.status in (_D, _C):
        good = after.failures == 0
    elif outcome == "check_failed":
        again = more == 0 and after.status is _Q and after.check_rounds == before.check_rounds + 1
        good = again or (more == 1 and after.check_rounds == 0)
    else:
        good = more == (1 if outcome in FAILURES else 0)
    if not good:
        counts = f"failures went from {before.failures} to {after.failures}"
        yield Problem(f"after {outcome} its {counts}, and it is {after.status}", after.id)


@promise("ended", 2)
def outcomes(commit: Commit, before: Task, after: Task, attempt: Attempt) -> Problems:
    """The end of an attempt leads where its outcome says, and nowhere else."""
    stop, status, outcome = before.stop_requested, after.status, attempt.outcome or ""
    to = {
        "succeeded": (_D,), "canceled": (_C,), "throttled": (_Q,), "environment": (_Q,),
        "released": (_Q,),
    }.get(outcome, (_Q, _P))  # fmt: skip
    if status not in to:
        yield Problem(f"after {outcome} it is {status}", after.id)
    if outcome == "canceled" and not stop:
        yield Problem("it was canceled, and nobody had asked for that", after.id)
    canceling = bool(stop) and not stop.startswith(("timeout", "budget"))
    if canceling and outcome not in ("canceled", "succeeded"):
        yield Problem(f"its cancel was asked for, and it ended as {outcome}", after.id)


@promise("ended", 2)
def parked_in_time(commit: Commit, before: Task, after: Task, attempt: Attempt) -> Problems:
    """A task that has no attempt left is parked, with a reason that counts its failures."""
    failed = after.failures == before.failures + 1
    rules, most = commit.policy, before.max_attempts or commit.policy.retry.max_attempts
    limit = rules.breaker.launch_failures
    tripped = limit is not None and 0 < after.launch_failures >= limit
    # A half-open try is the last, unless the policy allows more attempts since.
    tried_again = before.half_opened and limit is not None and before.launch_failures >= limit
    if failed and after.status is _Q and (after.failures >= most or tripped or tried_again):
        yield Problem(f"it has failed {after.failures} of {most} times, and is queued", after.id)
    if after.status is _P and f"(attempt {after.failures} of " not in after.reason:
        yield Problem(f"it is parked with the reason {after.reason!r}", after.id)


@promise("ended", 2)
def waits_after_failing(commit: Commit, before: Task, after: Task, attempt: Attempt) -> Problems:
    """A failed task waits as long as the policy says; one given back keeps its place."""
    if after.status is not _Q:
        return
    rules, until = commit.policy, after.backoff_until
    if attempt.outcome in FAILURES:
        most = max(rules.retry.cap, rules.cooldown.base << rules.cooldown.exponent_max)
        longest = commit.now + max(most, rules.recovery.stale_after)
        if rules.retry.base and rules.retry.cap and until is None:
            yield Problem("it failed, and does not wait", after.id)
        if until is not None and until > longest:
            yield Problem(f"it failed, and waits until {show_instant(until)}", after.id)
    elif attempt.outcome in KEEPS_PLACE and after.ready_since != before.ready_since:
        yield Problem(f"after {attempt.outcome} it lost its place", after.id)


@promise("task", 2)
def put_back(commit: Commit, before: Task, after: Task) -> Problems:
    """What was parked, done or canceled comes back with clean counters, or for a half-open try."""
    if after.status is not _Q or before.status not in (_P, _D, _C):
        return
    if after.half_opened:
        opens = places.reopens_at(before, commit.policy)
        if before.status is not _P or opens is None or not _passed(commit, opens):
            when = "never" if opens is None else show_instant(opens)
            yield Problem(f"it was tried again by itself, which it may be {when}", after.id)
    elif after.failures or after.launch_failures or after.backoff_until is not None:
        yield Problem("it was put back, and its counters were kept", after.id)


@promise("ended", 2)
def waits_grow(commit: Commit, before: Task, after: Task, attempt: Attempt) -> Problems:
    """After the n-th failure a task waits base · factor^(n-1), give or take the jitter."""
    rules = commit.policy.retry
    if after.status is not _Q or attempt.outcome not in FAILURES or not rules.base:
        return
    whole = rules.base * rules.factor ** (after.failures - 1)
    least = min(Fraction(rules.cap), whole * (1 - rules.jitter))
    until = after.backoff_until or commit.now
    if until < commit.now + least - TOLERANCE:
        n, when = after.failures, show_instant(until)
        yield Problem(f"after failure {n} it waits until {when} only", after.id)


def _passed(commit: Commit, when: Instant) -> bool:
    return when <= max(commit.times)


@promise("task", 2)
def dead_ends(commit: Commit, before: Task, after: Task) -> Problems:
    """A task that is done has an attempt that succeeded, or was done when it came in."""
    if after.status is not _D or before.status is _D:
        return
    tries = [commit.model.attempts[lease] for lease in commit.model.tries.get(after.id, ())]
    if not tries or tries[-1].outcome != "succeeded":
        how = tries[-1].outcome if tries else "no attempt"
        yield Problem(f"it is done, and its last attempt is: {how}", after.id)


@promise("commit", 2)
def placed_truly(commit: Commit) -> Problems:
    """Every task that was written, and every one that waits for it, stands where it belongs."""
    names = commit.changed_tasks()
    ended = {
        after.task.id
        for before, after in commit.tasks
        if before is not None
        and before.task.status is not after.task.status
        and not _OVER.isdisjoint((before.task.status, after.task.status))
    }
    for name in sorted(ended):
        for other in sorted(commit.model.named.get(name, ())):
            names.setdefault(other, commit.model.tasks[other])
    stood = {after.task.id: before for before, after in reversed(commit.tasks)}
    for placed in names.values():
        before = stood.get(placed.task.id)
        if before is None or not _has_yet_to_arrive(commit, before, placed):
            yield from _placed(commit, placed)


def _has_yet_to_arrive(commit: Commit, before: Placed, placed: Placed) -> bool:
    """Whether its time has come, or rules have changed, and it stands as before.

    The next round brings it in. What was ready by its time stays so when a clock is set back.
    """
    due = placed.due_at is not None and placed.due_at <= commit.now
    due = due or (not placed.wait and _waits_for_time(commit, placed.task))
    rules = commit.policy.readiness
    placed_by = commit.model.values.get("readiness") or ["done", "hold"]
    other_rules = placed_by != [rules.parent, rules.upstream]
    same = before[1:] == placed[1:] and before.task.status is placed.task.status
    timers = ("backoff_until", "not_before", "needs", "source_hold", "paused", "artifacts_missing")
    facts = (getattr(before.task, name) == getattr(placed.task, name) for name in timers)
    return (due or other_rules) and same and all(facts)


def _waits_for_time(commit: Commit, task: Task) -> bool:
    """Whether nothing but time holds a queued task."""
    code = places.wait_of(task, commit.model.status_of, commit.policy, commit.now)
    return task.status is _Q and code in ("backoff", "not_before")


def _placed(commit: Commit, placed: Placed) -> Problems:
    task, wait, due_at = placed
    if wait in ("backoff", "not_before") and due_at is not None and due_at <= commit.now:
        return  # the next round brings it in: `timers heeded`
    status_of: Callable[[str], Status] = commit.model.status_of
    wanted = set()
    for now in commit.times:
        code = places.wait_of(task, status_of, commit.policy, now) if task.status is _Q else ""
        wanted.add((code, places.due_of(task, code, commit.policy, now)))
    if (wait, due_at) not in wanted:
        where = " or ".join(sorted(map(_where, wanted)))
        yield Problem(f"it stands {_where((wait, due_at))}, it must stand {where}", task.id)


def _where(place: tuple[str, Instant | None]) -> str:
    code, due_at = place
    until = "" if due_at is None else f" until {show_instant(due_at)}"
    return (f"waiting with {code}" if code else "in its lane") + until


@promise("commit", 2)
def upstream_followed(commit: Commit) -> Problems:
    """Where the policy cancels with what is upstream, nothing queued is left behind it."""
    rules = commit.policy.readiness
    if rules.upstream != "cancel":
        return
    for before, after in commit.tasks:
        task = after.task
        if before is None or before.task.status is task.status or task.status not in places.DEAD:
            continue
        for name in sorted(commit.model.named.get(task.id, ())):
            other = commit.model.task(name)
            heeds = task.id in other.needs or rules.parent == "done"
            if heeds and commit.model.status_of(task.id) in places.DEAD:
                yield Problem(f"{task.id} is {task.status}, and it is still queued", name)


@promise("commit", 2)
def groups_told(commit: Commit) -> Problems:
    """When the last task of a group and of those under it is over, the log says that it is done."""
    model, told = commit.model, _groups_done(commit)
    over = [
        after.task.group
        for before, after in commit.tasks
        if before is not None and after.task.status in (_D, _C)
        and before.task.status is not after.task.status
    ]  # fmt: skip
    names = {name for group in over for name in facts.lineage(group, model.groups)}
    for name in sorted(names - told):
        inside = [
            placed.task.status
            for placed in model.tasks.values()
            if name in facts.lineage(placed.task.group, model.groups)
        ]
        if _D in inside and all(status.final for status in inside):
            yield Problem(f"group {name} is done, and the log does not say so")


def _groups_done(commit: Commit) -> set[object]:
    return {event.data.get("group") for event in commit.events if event.kind == "group_done"}


@promise("commit", 2)
def in_flight_agrees(commit: Commit) -> Problems:
    """A task is in flight if and only if it has one open attempt, its last."""
    model = commit.model
    names = {after.task.id for _, after in commit.tasks}
    names |= {after.task for _, after in commit.attempts}
    for name in sorted(names):
        task, lease = model.task(name), model.open.get(name)
        if task.status.in_flight != (lease is not None):
            yield Problem(f"it is {task.status}, and its open lease is {lease}", name)
        elif lease is not None and model.attempts[lease].number != task.attempts:
            number = model.attempts[lease].number
            yield Problem(f"attempt {number} is open, it has made {task.attempts}", name)
