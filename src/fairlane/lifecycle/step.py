"""What a happening does to a task: the next value, how the attempt ended, what to log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from fairlane.lifecycle.backoff import attempts_max, half_open_at, own_wait, wait_after
from fairlane.lifecycle.transitions import (
    IllegalTransition,
    Stop,
    counts_as,
    request_stop,
    rule_for,
    status_after,
    stop_detail,
    stop_kind,
)
from fairlane.model.event import Event, Happening
from fairlane.model.record import NamedTuple, changed
from fairlane.model.task import FAILURES, Lease, Outcome, Status, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairlane.model.instant import Instant, Micros
    from fairlane.policy.policy import Policy

    Logged = tuple[str, Mapping[str, object]]

#: The outcome of each end of an attempt, before a requested stop changes it.
OUTCOMES: dict[Happening, Outcome] = {
    Happening(end): end for end in Outcome if end is not Outcome.CANCELED
}
OUTCOMES[Happening.STOPPED] = Outcome.CANCELED
#: What happens to a task when its attempt ends with an outcome.
HAPPENINGS = {outcome: happening for happening, outcome in OUTCOMES.items()}


class Step(NamedTuple):
    """What follows: the task as it is now, and what is to be done about it."""

    task: Task
    outcome: Outcome | None = None  # what the attempt ended as
    events: tuple[Logged, ...] = ()  # (kind, data) to log, in this order
    freed: bool = False  # slot, locks and workspace of the attempt are free


class _Case(NamedTuple):
    """Everything that one step looks at."""

    task: Task
    happening: Happening
    policy: Policy
    now: Instant
    detail: str
    lease: Lease | None
    park: bool
    asked_until: Instant | None
    resumes: bool
    check: str
    story: Sequence[Event]

    def refuse(self, why: str) -> NoReturn:
        raise IllegalTransition(self.task, self.happening, self.story, why)


def step(
    task: Task,
    happening: Happening,
    policy: Policy,
    now: Instant,
    *,
    detail: str = "",
    lease: Lease | None = None,
    park: bool = False,
    asked_until: Instant | None = None,
    resumes: bool = False,
    check: str = "",
    story: Sequence[Event] = (),
) -> Step:
    """What a happening does to a task.

    `detail` says what went wrong or why; `lease` is the new one (leased) or the one that reports
    (late success); `park` parks after a failure though attempts are left; `asked_until` is how
    long a provider asked to wait; `resumes`: the next attempt goes on with its session; `check`
    is the one that failed; `story` are the task's last events, told if this is refused.
    """
    rule = rule_for(task, happening, story)
    case = _Case(
        task, happening, policy, now, detail, lease, park, asked_until, resumes, check, story
    )  # fmt: skip
    return _RULES[rule.name](case)


def _lease(case: _Case) -> Step:
    if case.lease is None:
        raise ValueError("a task is leased with a lease")
    task = case.task
    lease = case.lease
    if lease.attempt != task.attempts + 1:
        lease = changed(lease, attempt=task.attempts + 1)
    leased = changed(
        task,
        status=Status.LEASED,
        attempts=lease.attempt,
        lease=lease,
        ready_since=task.entry.ready_since,
        backoff_until=None,
        lost_fence=None,
        reason="",
    )
    data = {"lease": lease.id, "worker": lease.worker, "expires_at": lease.expires_at}
    return Step(leased, events=(("leased", _attempt(leased) | data),))


def _start(case: _Case) -> Step:
    task = case.task
    if task.status is Status.RUNNING:
        return Step(task)
    lease = task.lease or Lease(attempt=task.attempts)
    if lease.started_at is None:
        lease = changed(lease, started_at=case.now)
    started = changed(task, status=Status.RUNNING, lease=lease)
    return Step(started, events=(("started", _attempt(started)),))


def _end(case: _Case) -> Step:
    """The attempt is over: what it counts as decides what follows."""
    if case.happening is Happening.STOPPED and not case.task.stop_requested:
        case.refuse("Nobody asked for its stop.")
    outcome = counts_as(OUTCOMES[case.happening], case.task.stop_requested)
    if outcome is Outcome.SUCCEEDED:
        return _succeeded(case)
    if outcome is Outcome.CANCELED:
        return _canceled(case)
    if outcome is Outcome.CHECK_FAILED:
        return _check_failed(case)
    if outcome in FAILURES:
        return _failed(case, outcome)
    return _given_back(case, outcome)


def _succeeded(case: _Case) -> Step:
    done = _cleared(case.task, status=Status.DONE, ended_at=case.now)
    data = _attempt(case.task) | {"detail": case.detail}
    return Step(done, Outcome.SUCCEEDED, (("succeeded", data),), freed=True)


def _canceled(case: _Case) -> Step:
    """A cancel that was asked for is carried out: the attempt has ended."""
    task = case.task
    reason = stop_detail(task.stop_requested) or case.detail or "canceled"
    canceled = _cleared(task, status=Status.CANCELED, reason=reason, ended_at=case.now)
    data = _attempt(task) | {"reason": reason}
    return Step(canceled, Outcome.CANCELED, (("canceled", data),), freed=True)


def _check_failed(case: _Case) -> Step:
    """Queued again at once with its session and its place; one time too often, it has failed."""
    task = case.task
    rounds = task.check_rounds + 1
    if not case.resumes or rounds > case.policy.checks.rounds:
        after = _failed(case, Outcome.FAILED)
        (_, data), *more = after.events
        events = (("check_failed", {**data, "check": case.check}), *more)
        return after._replace(outcome=Outcome.CHECK_FAILED, events=events)
    queued = _ended(
        case,
        status=Status.QUEUED,
        check_rounds=rounds,
        launch_failures=0,
        ready_since=task.entry.ready_since,
        reason=case.detail,
    )
    data = _attempt(task) | {"check": case.check, "detail": case.detail, "round": rounds}
    return Step(queued, Outcome.CHECK_FAILED, (("check_failed", data),), freed=True)


def _failed(case: _Case, outcome: Outcome) -> Step:
    task, policy = case.task, case.policy
    detail = case.detail
    if stop_kind(task.stop_requested) is Stop.TIMEOUT and outcome is Outcome.FAILED:
        detail = task.stop_requested
    in_a_row = task.launch_failures + 1 if outcome is Outcome.LAUNCH_FAILED else 0
    ended = _ended(case, failures=task.failures + 1, launch_failures=in_a_row, check_rounds=0)
    most = attempts_max(task.max_attempts, policy)
    if task.half_opened:
        most = max(most, ended.failures)  # the half-open try is extra
    data = {"detail": detail, "failures": ended.failures, "of": most}
    first = (str(outcome), _attempt(task) | data)
    follows = status_after(outcome, task.failures, task.launch_failures, task.max_attempts, policy)
    is_check = case.happening is Happening.CHECK_FAILED and detail == case.detail
    why = f"check {case.check}" if is_check and case.check else detail
    what = f"{outcome}: {why}" if why else str(outcome)
    reason = f"{what} (attempt {ended.failures} of {most})"
    if case.park or follows is Status.PARKED:
        parked = changed(ended, status=Status.PARKED, reason=reason, parked_at=case.now)
        return Step(parked, outcome, (first, ("parked", {"reason": reason})), freed=True)
    wait = wait_after(policy.retry, ended.failures, task.id, task.attempts)
    wait = max(wait, own_wait(policy, in_a_row))
    since = _ready_at(task, case.now + wait)
    queued = changed(_waiting(ended, case.now, wait), ready_since=since, reason=reason)
    return Step(queued, outcome, (first, *_backoff(queued, wait)), freed=True)


def _given_back(case: _Case, outcome: Outcome) -> Step:
    """Back to queued without a failure and without losing its place."""
    task = case.task
    waits = outcome is Outcome.ENVIRONMENT or _waits_alone(task, outcome)
    setbacks = task.setbacks + 1 if waits else 0
    releases = task.releases + 1 if outcome is Outcome.RELEASED else 0
    launched = task.status is Status.RUNNING or outcome is Outcome.THROTTLED
    ended = _ended(
        case,
        setbacks=setbacks,
        releases=releases,
        launch_failures=0 if launched else task.launch_failures,
        ready_since=task.entry.ready_since,
    )
    wait = _wait_given_back(case, outcome, setbacks or releases - 1)
    queued = _waiting(ended, case.now, wait)
    detail = case.detail
    if outcome is Outcome.RELEASED and stop_kind(task.stop_requested) is Stop.BUDGET:
        detail = task.stop_requested
    first = (str(outcome), _attempt(task) | {"detail": detail})
    return Step(queued, outcome, (first, *_backoff(queued, wait)), freed=True)


def _waits_alone(task: Task, outcome: Outcome) -> bool:
    """Whether a throttle is waited for by the task itself: it has no pool that could cool down."""
    return outcome is Outcome.THROTTLED and task.pool is None


def _wait_given_back(case: _Case, outcome: Outcome, n: int) -> Micros:
    """After the n-th in a row: never at once, whatever the base of the retries is."""
    task, own = case.task, own_wait(case.policy, n)
    if outcome is Outcome.THROTTLED:
        asked = (case.asked_until or case.now) - case.now
        return max(asked, own) if _waits_alone(task, outcome) else 0
    return max(wait_after(case.policy.retry, n, task.id, task.attempts), own)


def _cancel(case: _Case) -> Step:
    reason = case.detail or "canceled"
    canceled = _cleared(case.task, status=Status.CANCELED, reason=reason, ended_at=case.now)
    return Step(canceled, events=(("canceled", {"reason": reason}),))


def _ask_stop(case: _Case) -> Step:
    asked = request_stop(case.task, Stop.CANCEL, case.detail)
    if asked == case.task:
        return Step(asked)
    data = _attempt(asked) | {"stop": asked.stop_requested}
    return Step(asked, events=(("stop_requested", data),))


def _retry(case: _Case) -> Step:
    task, now = case.task, case.now
    queued = _cleared(task, status=Status.QUEUED, ready_since=_ready_at(task, now))
    return Step(queued, events=(("retried", {"failures": task.failures}),))


def _hurry(case: _Case) -> Step:
    until = case.task.backoff_until
    if until is None or until <= case.now:
        hint = "It is in the queue already. "
        case.refuse(hint + "Only a task that is parked, or waits after a failure, can be retried.")
    return _retry(case)


def _again(case: _Case) -> Step:
    task, now = case.task, case.now
    since = _ready_at(task, now)
    queued = _cleared(task, status=Status.QUEUED, created_at=now, ready_since=since)
    return Step(queued, events=(("added_again", {"was": str(task.status)}),))


def _half_open(case: _Case) -> Step:
    due = half_open_at(case.task, case.policy)
    if due is None or due > case.now:
        case.refuse("It is not due for another try by itself; `retry` puts it back.")
    queued = changed(
        case.task,
        status=Status.QUEUED,
        half_opened=True,
        parked_at=None,
        reason="",
        ready_since=_ready_at(case.task, case.now),
    )
    return Step(queued, events=(("half_opened", {"launch_failures": queued.launch_failures}),))


def _late(case: _Case) -> Step:
    fence = case.task.lost_fence
    if fence is None or (case.lease is not None and case.lease.fence != fence):
        case.refuse("Its last attempt was not lost, or it was retried or leased again since.")
    done = _cleared(case.task, status=Status.DONE, ended_at=case.now)
    data = {"attempt": case.task.attempts, "fence": fence, "detail": case.detail, "late": True}
    return Step(done, Outcome.SUCCEEDED, (("succeeded", data),))


_RULES: dict[str, Callable[[_Case], Step]] = {
    "lease": _lease,
    "start": _start,
    **dict.fromkeys(("succeed", "fail", "check", "give_back", "release", "stop"), _end),
    "cancel": _cancel,
    "ask_stop": _ask_stop,
    "retry": _retry,
    "hurry": _hurry,
    "again": _again,
    "half_open": _half_open,
    "late": _late,
}


#: Every count and trace of a task's attempts, except their number.
_CLEAN: dict[str, object] = {
    "failures": 0,
    "launch_failures": 0,
    "setbacks": 0,
    "releases": 0,
    "check_rounds": 0,
    "half_opened": False,
    "backoff_until": None,
    "parked_at": None,
    "ended_at": None,
    "lost_fence": None,
    "reason": "",
    "stop_requested": "",
    "lease": None,
}


def _cleared(task: Task, **changes: object) -> Task:
    """The task with every count and trace of its attempts cleared, except their number."""
    return changed(task, **(_CLEAN | changes))


def _ended(case: _Case, **changes: object) -> Task:
    """The task without its lease; rows of setbacks are broken, a lost attempt is remembered."""
    task = case.task
    fence = task.lease.fence if task.lease else 0
    ended: dict[str, object] = {
        "lease": None,
        "stop_requested": "",
        "setbacks": 0,
        "releases": 0,
        "backoff_until": None,
        "lost_fence": fence if case.happening is Happening.LOST else None,
    }
    return changed(task, **(ended | changes))


def _waiting(task: Task, now: Instant, wait: Micros) -> Task:
    """Queued, in backoff where there is a wait."""
    return changed(task, status=Status.QUEUED, backoff_until=now + wait if wait else None)


def _ready_at(task: Task, when: Instant) -> Instant:
    return max(when, task.not_before or when)


def _backoff(task: Task, wait: Micros) -> tuple[Logged, ...]:
    return (("backoff", {"until": task.backoff_until, "wait": wait}),) if wait else ()


def _attempt(task: Task) -> dict[str, object]:
    """What every event of an attempt names."""
    return {"attempt": task.attempts, "fence": task.lease.fence if task.lease else None}
