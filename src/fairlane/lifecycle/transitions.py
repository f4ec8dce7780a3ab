"""The one table of what may follow what; whatever is not in it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.model.errors import Refused
from fairlane.model.event import Event, Happening
from fairlane.model.instant import show_instant
from fairlane.model.record import dataclass
from fairlane.model.task import Status, Task

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        self,
        task: str,
        status: Status,
        happening: Happening,
        story: Sequence[Event] = (),
        why: str = "",
    ) -> None:
        self.task, self.status, self.happening = task, status, happening
        self.story, self.why = tuple(story)[-STORY_MAX:], why
        goal = goals(happening)[0]
        message = f'{task}: {status} -> {goal} on "{happening}" is refused'
        lines = [why or _CAN_BE.get(happening) or _what_can(status)]
        if self.story:
            lines += [f"Last events of {task}:", *(f"  {_tell(event)}" for event in self.story)]
        super().__init__(message, "\n".join(lines))

    def with_story(self, story: Sequence[Event]) -> IllegalTransition:
        """The same refusal, told with the task's last events."""
        return IllegalTransition(self.task, self.status, self.happening, story, self.why)


def rule_for(task: Task, happening: Happening, story: Sequence[Event] = ()) -> Rule:
    """The rule for this status and happening, or the refusal."""
    rule = TRANSITIONS.get((task.status, happening))
    if rule is None:
        raise IllegalTransition(task.id, task.status, happening, story)
    return rule


def goals(happening: Happening) -> tuple[Status, ...]:
    """Every status that a happening can lead to, the usual one first."""
    found = [to for (_, each), rule in TRANSITIONS.items() if each is happening for to in rule.to]
    return tuple(dict.fromkeys(found))


#: What people ask for -> of which tasks it can be asked.
_CAN_BE = {
    _H.RETRY: "Only a task that is parked, or waits after a failure, can be retried.",
    _H.CANCEL: "What is done or canceled stays so.",
}
#: Facts that are times.
_TIMES = ("until", "expires_at")


def _what_can(status: Status) -> str:
    allowed = [str(happening) for (each, happening) in TRANSITIONS if each is status]
    return f"Of a {status} task there can be: {', '.join(allowed)}."


def _tell(event: Event) -> str:
    """One event on one line: time, kind and what is known of it."""
    facts = "".join(
        f" {key}={show_instant(value) if key in _TIMES and isinstance(value, int) else value}"
        for key, value in event.data.items()
        if value not in ("", None)
    )
    return f"{show_instant(event.at)} {event.kind}{facts}"
