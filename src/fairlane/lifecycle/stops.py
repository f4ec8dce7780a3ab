"""Why an attempt in flight is being stopped, and what its end then counts as."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from fairlane.model.task import Outcome, Task


class Stop(StrEnum):
    """Who wants it stopped; `Task.stop_requested` is `KIND[: detail]`."""

    CANCEL = "cancel"
    TIMEOUT = "timeout"
    BUDGET = "budget"


#: The ends that a stop can cause itself; what others say stands beside it.
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
    """The task with the stop requested, durably. The first one stands, but a cancel wins."""
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
