"""Past: what has happened to a task elsewhere, and what attempts used there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from fairlane.engine.usage import SAMPLES, knows_samples, learn_from, scopes_of
from fairlane.model.errors import listed
from fairlane.model.instant import Instant, minute_of
from fairlane.model.project import Project, usage_scopes
from fairlane.model.record import replace
from fairlane.model.task import Status, Task, agent_of
from fairlane.policy.policy import Policy
from fairlane.service.conversion.base import NAMED_MAX, Brought, Converted, Spent
from fairlane.settings import Settings
from fairlane.store.base import Booking, Reading, Writing

#: The kind of a task that names none.
_KIND = Task("").kind


def with_past(task: Task, past: Brought, now: Instant) -> Task:
    """A new task with what has happened to it elsewhere."""
    created = min(past.created_at or now, now)
    ended = min(past.ended_at or now, now)
    return replace(
        task,
        status=past.status,
        created_at=created,
        ready_since=created if task.ready_since is not None else None,
        failures=past.failures,
        attempts=past.failures + past.begun + (past.status is Status.DONE),
        parked_at=now if past.status is Status.PARKED else None,
        ended_at=ended if past.status.final else None,
        reason="" if past.status is Status.QUEUED else past.reason,
        paused=past.paused,
    )


def note_others(
    reading: Reading, tasks: Iterable[Brought], new: Collection[str], converted: Converted
) -> None:
    """Name the ids that tasks of another age have here: they may be other work."""
    known = {str(task.record["id"]): task.created_at for task in tasks}
    known = {name: at for name, at in known.items() if at is not None and name not in new}
    rows = reading.tasks(list(known))
    others = [name for name, task in rows.items() if task.created_at != known[name]]
    if others:
        converted.note(
            "Tasks of another age have these ids here already. They stay as they are, and what "
            f"the files say of them is not brought over: {listed(others, NAMED_MAX)}. A home of "
            "its own takes everything: `fairlane --home DIR convert …`."
        )


def completions(tx: Writing, tasks: Sequence[Task]) -> list[Booking]:
    """A start and a completion for each that is done, when it was done."""
    return [
        Booking(scope, minute_of(task.ended_at), starts=1, completions=1)
        for task in tasks
        if task.status is Status.DONE and task.ended_at is not None
        for scope in scopes_of(tx, task)
    ]


def book_spent(
    tx: Writing,
    policy: Policy,
    settings: Settings,
    now: Instant,
    origin: str,
    spent: Sequence[Spent],
) -> bool:
    """Book what was used elsewhere at its time, and learn estimates from it; once.

    A ledger only grows: of each project, entries that are newer than those of the last conversion
    are new. Whether there were any.
    """
    projects, value = tx.table(Project), f"converted:{origin}"
    marks: dict[str, Instant] = dict(tx.value(value) or {})
    new = [entry for entry in spent if entry.at > marks.get(entry.project, -1)]
    if not new:
        return False
    sums: dict[tuple[str, Instant], int] = {}
    used: dict[tuple[str, str], list[int]] = {}
    for entry in sorted(new, key=lambda entry: -entry.at):
        marks[entry.project] = max(entry.at, marks.get(entry.project, -1))
        agent = agent_of(entry.agent, projects[entry.project].agent, settings.agent, False)
        used.setdefault((entry.project, agent), []).append(entry.tokens)
        pool = settings.agent_pool(agent)
        for scope in usage_scopes(entry.project, pool, None, lambda _: None):
            place = (scope, minute_of(min(entry.at, now)))
            sums[place] = sums.get(place, 0) + entry.tokens
    tx.book([Booking(*place, (0, tokens, 0, 0)) for place, tokens in sums.items()])
    tx.put_value(value, marks)
    _learn(tx, policy, used)
    return True


def _learn(tx: Writing, policy: Policy, used: Mapping[tuple[str, str], Sequence[int]]) -> None:
    """The newest entries of each project and agent stand for attempts."""
    for (project, agent), tokens in used.items():
        samples = [count for count in tokens if count][:SAMPLES]
        if samples and not knows_samples(tx, project, _KIND, agent):
            learn_from(tx, policy, project, _KIND, agent, samples)
