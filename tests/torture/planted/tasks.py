"""Planted bugs: what becomes of tasks: counts, waits, who depends on them."""

from __future__ import annotations

from fairlane.engine import round, task_changes
from fairlane.engine.task_changes import TaskChanges
from fairlane.lifecycle import step
from fairlane.lifecycle.transitions import RETRY, TRANSITIONS
from fairlane.model.event import Happening
from fairlane.model.task import Status
from fairlane.service import tasks
from fairlane.store.memory.store import Memory
from tests.torture.planted.bug import Bug, bug, entry, line

BUGS: list[Bug] = [
    bug(
        "throttle uses an attempt up",
        "A throttle counts as a failure.",
        "failures counted, parked in time",
        line(
            step._given_back,
            (
                "setbacks=setbacks,",
                "setbacks=setbacks, failures=task.failures + (outcome is Outcome.THROTTLED),",
            ),
        ),
    ),
    bug(
        "retry keeps failures",
        "A task that is put back has its failures still, and parks at the first one more.",
        "put back",
        line(
            step._retry,
            (
                "task, now))",
                "task, now), failures=task.failures)",
            ),
        ),
    ),
    bug(
        "retry of what runs",
        "A task that runs can be retried: it is queued while its attempt goes on.",
        "transitions, in flight agrees, put back",
        entry(TRANSITIONS, (Status.RUNNING, Happening.RETRY), RETRY),
    ),
    bug(
        "added again in front",
        "What is added again has the place that it had when it came in first.",
        "back at the end",
        line(step._again, ("since = _ready_at(task, now)", "since = task.ready_since or now")),
    ),
    bug(
        "backoff of the first failure",
        "Every failure is waited for as long as the first.",
        "waits grow",
        line(
            step._failed,
            (
                "wait_after(policy.retry, ended.failures, task.id",
                "wait_after(policy.retry, 1, task.id",
            ),
        ),
    ),
    bug(
        "not before, after an edit",
        "A task that is edited stays where it stood.",
        "placed truly",
        line(
            tasks.edit,
            (
                "task_changes.settle(edited(router, task, values, empty, now))",
                "task_changes.settle(task)._replace(task=edited(router, task, values, empty, now))",
            ),
        ),
    ),
    bug(
        "artifacts of the parent",
        "Artifacts are looked for in the folder of the task that waits for them.",
        "everything ends",
        line(round._folder, ('"artifacts" / task.parent', '"artifacts" / task.id')),
    ),
    bug(
        "compacted too early",
        "Compaction forgets finished tasks that unfinished ones need.",
        "the store agrees",
        line(Memory._unnamed, (" if row.placed.task.id not in named", "")),
    ),
    bug(
        "dependents forgotten",
        "Of several tasks that end at once only those that wait for the first are placed anew.",
        "placed truly, upstream followed",
        line(
            TaskChanges.close,
            ("in ended:\n", "in ended[:1]:\n"),
        ),
    ),
    bug(
        "half-open never",
        "A parked task has no timer, so nobody tries it once more.",
        "placed truly",
        line(task_changes.place, ('Placed(task, "", half_open_at(task, policy))', "Placed(task)")),
    ),
    bug(
        "upstream outlived",
        "What needs a task that was canceled stays, though the policy cancels it with it.",
        "upstream followed, placed truly",
        line(TaskChanges.reconsider, ("(*task.needs, *parents)", "parents")),
    ),
    bug(
        "lost counted twice",
        "A lost attempt counts as two failures.",
        "failures counted",
        line(
            step._failed,
            (
                "failures=task.failures + 1, launch",
                "failures=task.failures + 1 + (outcome is Outcome.LOST), launch",
            ),
        ),
    ),
]
