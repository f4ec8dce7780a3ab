"""Which task and attempt a caller means: the last attempt, or the one with a number."""

from __future__ import annotations

from fairlane.model.errors import NotFound
from fairlane.model.task import Attempt, Task
from fairlane.store.base import Reading


def unknown_task(task: str) -> NotFound:
    """No task has this id."""
    hint = "`fairlane list` shows what there is."
    return NotFound(f"there is no task {task!r}", hint, code="unknown_task")


def task_named(reading: Reading, task: str) -> Task:
    """The task of an id."""
    found = reading.task(task)
    if found is None:
        raise unknown_task(task)
    return found


def attempt_named(
    reading: Reading, task: str, number: int | None, code: str = "no_attempt"
) -> Attempt:
    """The attempt with this number, or the last; `code`: of the error where there is none."""
    attempts = {attempt.number: attempt for attempt in reading.attempts(task)}
    if not attempts:
        hint = f"`fairlane why {task}` tells why."
        raise NotFound(f"{task} has not been started", hint, code=code)
    if number is None:
        return attempts[max(attempts)]
    if number not in attempts:
        known = ", ".join(map(str, attempts))
        raise NotFound(f"{task} has no attempt {number}", f"It has {known}.", code=code)
    return attempts[number]
