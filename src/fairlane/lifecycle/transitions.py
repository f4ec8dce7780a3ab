"""The one table of what may follow what; whatever is not in it is refused."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from fairlane.lifecycle.backoff import gives_up
from fairlane.model.errors import Refused
from fairlane.model.event import Event, Happening
from fairlane.model.instant import show_instant
from fairlane.model.record import dataclass, replace
from fairlane.model.task import FAILURES, Outcome, Status, Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlane.model.instant import Instant
    from fairlane.model.snapshot import InFlight
    from fairlane.policy.policy import Policy


#: How many of a task's last events an error tells.
STORY_MAX = 10


@dataclass(frozen=True, slots=True)
class Rule:
    """What one happening does: its name, where it may lead, and the sentence for the reader."""

    name: str
    to: tuple[Status, ...]  # empty: the status stays
    text: str


_Q, _L, _R = Status.QUEUED, Status.LEASED, Status.RUNNING
_D, _P, _C = Status.DONE, Status.PARKED, Status.CANCELED
_H = Happening

LEASE = Rule("lease", (_L,), "A new attempt, with a lease of its own.")
START = Rule("start", (_R,), "Its process runs; told twice, nothing changes.")
SUCCEED = Rule("succeed", (_D,), "Done, whatever was asked meanwhile; every counter is cleared.")
FAIL = Rule("fail", (_Q, _P, _C), "One failure more: backoff, or parked; canceled if asked.")
CHECK = Rule(
    "check", (_Q, _P, _C), "Its session resumes at once, no failure; after some in a row as failed."
)
GIVE_BACK = Rule("give_back", (_Q, _C), "No failure, its place is kept; canceled if asked.")
RELEASE = Rule(
    "release", (_Q, _P, _C), "The same; if it was a timeout that stopped it, one failure more."
)
STOP = Rule(
    "stop",
    (_C, _Q, _P),
    "Its process is dead, as was asked: canceled; by a timeout as failed, by a budget as released.",
)
CANCEL = Rule("cancel", (_C,), "Canceled at once.")
ASK_STOP = Rule("ask_stop", (), "Its stop is asked for; what it holds is freed at its end.")
RETRY = Rule("retry", (_Q,), "Put back by a person: counters and backoff are cleared.")
HURRY = Rule("hurry", (_Q,), "Only in backoff: it starts at once, counters cleared.")
AGAIN = Rule("again", (_Q,), "Added again: as new, but attempts go on growing.")
HALF_OPEN = Rule("half_open", (_Q,), "Only if launch failures alone parked it, once: one more try.")
LATE = Rule(
    "late", (_D,), "Only of the lost attempt, until a retry, cancel or new lease: it succeeded."
)

_ENDS = {
    _H.SUCCEEDED: SUCCEED,
    _H.FAILED: FAIL,
    _H.CHECK_FAILED: CHECK,
    _H.LAUNCH_FAILED: FAIL,
    _H.LOST: FAIL,
    _H.THROTTLED: GIVE_BACK,
    _H.ENVIRONMENT: GIVE_BACK,
    _H.RELEASED: RELEASE,
    _H.STOPPED: STOP,
    _H.CANCEL: ASK_STOP,
}

TRANSITIONS: dict[tuple[Status, Happening], Rule] = {
    (_Q, _H.LEASED): LEASE,
    (_Q, _H.CANCEL): CANCEL,
    (_Q, _H.RETRY): HURRY,
    (_Q, _H.LATE_SUCCESS): LATE,
    (_L, _H.STARTED): START,
    **{(_L, happening): rule for happening, rule in _ENDS.items()},
    (_R, _H.STARTED): START,
    **{(_R, happening): rule for happening, rule in _ENDS.items()},
    (_P, _H.CANCEL): CANCEL,
    (_P, _H.RETRY): RETRY,
    (_P, _H.HALF_OPEN): HALF_OPEN,
    (_P, _H.LATE_SUCCESS): LATE,
    (_D, _H.AGAIN): AGAIN,
    (_C, _H.AGAIN): AGAIN,
}


class IllegalTransition(Refused):
    """Something happened to a task that its status does not allow; carries its last events."""

    def __init__(
        self, task: Task, happening: Happening, story: Sequence[Event] = (), why: str = ""
    ) -> None:
        self.task, self.happening = task, happening
        self.story, self.why = tuple(story)[-STORY_MAX:], why
        message = f'{task.id}: {task.status} -> {goals(happening)[0]} on "{happening}" is refused'
        if happening in _ASKED:
            message = f"{task.id} is {task.status} and cannot be {_ASKED[happening]}"
        lines = [why or _CAN_BE.get(happening) or _what_can(task.status)]
        if happening is Happening.RETRY and task.status.final:
            lines.append(f"`fairlane add --id {task.id} --again` puts it back.")
        if self.story:
            lines += [f"Last events of {task.id}:", *(f"  {_tell(event)}" for event in self.story)]
        super().__init__(message, "\n".join(lines))

    def with_story(self, story: Sequence[Event]) -> IllegalTransition:
        """The same refusal, told with the task's last events."""
        return IllegalTransition(self.task, self.happening, story, self.why)


def rule_for(task: Task, happening: Happening, story: Sequence[Event] = ()) -> Rule:
    """The rule for this status and happening, or the refusal."""
    rule = TRANSITIONS.get((task.status, happening))
    if rule is None:
        raise IllegalTransition(task, happening, story)
    return rule


def goals(happening: Happening) -> tuple[Status, ...]:
    """Every status that a happening can lead to, the usual one first."""
    statuses = [
        to for (_, other), rule in TRANSITIONS.items() if other is happening for to in rule.to
    ]
    return tuple(dict.fromkeys(statuses))


#: What people ask for -> what they want to be done.
_ASKED = {_H.RETRY: "retried", _H.CANCEL: "canceled"}
#: What people ask for -> of which tasks it can be asked.
_CAN_BE = {
    _H.RETRY: "Only a task that is parked, or waits after a failure, can be retried.",
    _H.CANCEL: "What is done or canceled stays so.",
}
#: Facts that are times.
_TIMES = ("until", "expires_at")


def _what_can(status: Status) -> str:
    allowed = [str(happening) for (other, happening) in TRANSITIONS if other is status]
    return f"Of a {status} task there can be: {', '.join(allowed)}."


def _tell(event: Event) -> str:
    """One event on one line: time, kind and what is known of it."""
    facts = "".join(
        f" {key}={show_instant(value) if key in _TIMES and isinstance(value, int) else value}"
        for key, value in event.data.items()
        if value not in ("", None)
    )
    return f"{show_instant(event.at)} {event.kind}{facts}"


class Stop(StrEnum):
    """Who wants it stopped; `Task.stop_requested` is `KIND[: detail]`."""

    CANCEL = "cancel"
    TIMEOUT = "timeout"
    BUDGET = "budget"


#: The ends that a stop can cause; other ends keep their outcome.
_CAUSED = frozenset({Outcome.CANCELED, Outcome.FAILED, Outcome.LOST, Outcome.RELEASED})


def stop_text(kind: Stop, detail: str = "") -> str:
    """What is kept with the task."""
    return f"{kind}: {detail}" if detail else str(kind)


def stop_kind(stop_requested: str) -> Stop | None:
    """The kind of a stop that was requested; None: none was. A reason of no kind is a cancel."""
    if not stop_requested:
        return None
    word = stop_requested.partition(":")[0].strip()
    return Stop(word) if word in set(Stop) else Stop.CANCEL


def stop_detail(stop_requested: str) -> str:
    """What was said about the stop, without its kind."""
    word, _, rest = stop_requested.partition(":")
    return rest.strip() if word.strip() in set(Stop) else stop_requested


def request_stop(task: Task, kind: Stop, detail: str = "") -> Task:
    """The task with the stop requested, durably. The first request counts, but a cancel wins."""
    now_wanted = stop_kind(task.stop_requested)
    if now_wanted is Stop.CANCEL or (now_wanted is not None and kind is not Stop.CANCEL):
        return task
    return replace(task, stop_requested=stop_text(kind, detail))


def counts_as(outcome: Outcome, stop_requested: str) -> Outcome:
    """What the end of an attempt counts as when a stop was requested; a success wins over all."""
    kind = stop_kind(stop_requested)
    if kind is None or outcome is Outcome.SUCCEEDED:
        return outcome
    if kind is Stop.CANCEL:
        return Outcome.CANCELED
    if outcome not in _CAUSED:
        return outcome
    return Outcome.FAILED if kind is Stop.TIMEOUT else Outcome.RELEASED


def expired(in_flight: InFlight, now: Instant) -> bool:
    """Whether the lease has run out and its process was not seen alive."""
    lease = in_flight.lease
    return lease.expires_at is not None and lease.expires_at <= now and not lease.alive


def status_after_loss(in_flight: InFlight, policy: Policy, stop_requested: str = "") -> Status:
    """What `step` makes of the task when this attempt is lost."""
    outcome = counts_as(Outcome.LOST, stop_requested)
    failures = in_flight.lane.failures
    return status_after(
        outcome, failures, in_flight.launch_failures, in_flight.max_attempts, policy
    )


def status_after(
    outcome: Outcome, failures: int, launch_failures: int, max_attempts: int | None, policy: Policy
) -> Status:
    """The status that follows the end of an attempt, given the counts before it."""
    if outcome is Outcome.SUCCEEDED:
        return Status.DONE
    if outcome is Outcome.CANCELED:
        return Status.CANCELED
    if outcome not in FAILURES:
        return Status.QUEUED
    parks = gives_up(outcome, failures, launch_failures, max_attempts, policy)
    return Status.PARKED if parks else Status.QUEUED
