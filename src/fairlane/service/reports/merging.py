"""What became of a task's work after it was done, as lists and `show` tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from fairlane.model.instant import show_instant
from fairlane.model.task import Attempt, Status, Task

if TYPE_CHECKING:
    from fairlane import workspaces
    from fairlane.model.documents import work as documents

#: States of a merge that a person must decide about.
_NEEDS_PERSON = ("conflict", "failed")
#: What merges were before attempts recorded them: a task was done when its merge had succeeded.
_DONE_BEFORE = {"merge": "merged", "pr": "offered"}


def recorded(attempts: Sequence[Attempt]) -> Attempt | None:
    """The last attempt that recorded what it changed."""
    return next((row for row in reversed(attempts) if row.work is not None), None)


def _merge_of(attempt: Attempt | None) -> workspaces.MergeRecord | None:
    """What an attempt recorded of its merge; None: nothing."""
    work = attempt.work if attempt is not None else None
    return cast("workspaces.MergeRecord | None", (work or {}).get("merge"))


def state_of(task: Task, last: Attempt | None, worked: bool) -> str:
    """The state alone, by the last attempt with a record; `worked`: it has used a repository."""
    merge = _merge_of(last)
    if merge:
        return merge["state"]
    if last is None and worked and task.status is Status.DONE:
        return _DONE_BEFORE.get(task.merge, "none")
    return "none"


def may_have_merged(task: Task) -> bool:
    """Whether its attempts must be asked what became of its merge."""
    ended = task.status in (Status.DONE, Status.PARKED) and task.attempts > 0
    return ended and task.merge != "keep"


def needs_person(task: Task, last: Attempt | None, state: str) -> bool:
    """Whether nothing goes on with it until a person decides."""
    if task.status is Status.PARKED or state in _NEEDS_PERSON:
        return True
    return last is not None and waits_for_approval(last) is not None


def waits_for_approval(attempt: Attempt) -> str | None:
    """Why a person must look at its work before it is merged; None: nobody must."""
    merge = _merge_of(attempt)
    hold = merge["hold"] if merge and merge["state"] == "waiting" else None
    return hold["reason"] if hold is not None and hold["code"] == "approval" else None


def merge_state(
    task: Task, attempts: Sequence[Attempt], has_repo: bool
) -> documents.MergeStateDocument:
    """What became of the work after its task was done."""
    last = recorded(attempts)
    work = cast("workspaces.WorkRecord | None", last.work if last is not None else None)
    merge = _merge_of(last)
    state = state_of(task, last, has_repo and bool(attempts))
    merged = [row for row in attempts if _merge_of(row)]
    settled = last is not None and last.ended_at is not None and state != "none"
    return {
        "state": state,
        "mode": task.merge,
        "base": work["base"] if work is not None else task.base,
        "position": None,
        "head": work["head"] if work is not None else None,
        "commit": merge["commit"] if merge else None,
        "url": merge["url"] if merge else None,
        "carries": list(merge["carries"]) if merge else [],
        "files": list(merge["files"]) if merge else [],
        "check": None,
        "detail": merge["detail"] if merge else "",
        "tries": len(merged) if state != "none" else 0,
        "at": show_instant(last.ended_at or 0) if settled and last is not None else None,
        "by": None,
        "hold": _hold(merge),
    }


def _hold(merge: workspaces.MergeRecord | None) -> documents.MergeHoldDocument | None:
    hold = merge["hold"] if merge else None
    if hold is None:
        return None
    return {
        "gate": hold["gate"],
        "code": hold["code"],
        "reason": hold["reason"],
        "until": hold["until"],
    }
