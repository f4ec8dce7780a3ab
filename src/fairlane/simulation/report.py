"""A run becomes a document: waits, shares, use of slots, cost. The same run, the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from fairlane.model.instant import DAY, SECOND, Instant, Micros, show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.record import dataclass
from fairlane.model.task import Status
from fairlane.service.reports.stats import part_of, seconds, spread90
from fairlane.service.reports.status import round_to

if TYPE_CHECKING:
    from fairlane.model.documents import simulation as documents
    from fairlane.simulation.run import AttemptLine, Run, TaskLine

#: How `attempts` names those that still run when the simulation ends.
RUNNING = "running"


def answer(workload: str, runs: Sequence[Run]) -> documents.SimulateAnswer:
    """The whole answer: one row a policy, in the order given."""
    first = runs[0]
    return {
        "schema": SCHEMA,
        "workload": workload,
        "seed": first.seed,
        "days": round_to(max(run.end - run.begin for run in runs) / DAY),
        "begin": show_instant(first.begin),
        "policies": [policy_row(run) for run in runs],
    }


def together(answers: Sequence[documents.SimulateAnswer]) -> documents.SimulateAnswer:
    """One answer of several about the same workload, in their order."""
    return {
        **answers[0],
        "days": max(each["days"] for each in answers),
        "policies": [row for each in answers for row in each["policies"]],
    }


def policy_row(run: Run) -> documents.PolicyFlowDocument:
    """What one policy made of the work."""
    used = _Used.of(run)
    lag = max(run.lag.values(), default=None)
    return {
        "name": run.policy,
        **_flow(run, run.tasks, used),
        "ends_per_day": _per_day(run),
        "took": _took(run) / SECOND,
        "utilisation": utilisation(run),
        "by_project": _by_project(run, used),
        "by_kind": _by_kind(run, used),
        "refused": run.refused,
        "attempts": _counts(attempt.outcome or RUNNING for attempt in run.attempts),
        "statuses": _counts(task.status for task in run.tasks),
        "lag": lag,
        "bound": None if lag is None else run.bound,
        "late": _late(run),
        "undone": [{"at": show_instant(at), "do": do, "why": why} for at, do, why in run.undone],
        "held": {code: run.held[code] / SECOND for code in sorted(run.held)},
    }


@dataclass(frozen=True, slots=True)
class _Used:
    """Tokens and micro-dollars by task."""

    tokens: Counter[str]
    usd: Counter[str]

    @classmethod
    def of(cls, run: Run) -> _Used:
        tokens: Counter[str] = Counter()
        usd: Counter[str] = Counter()
        for attempt in run.attempts:
            tokens[attempt.task] += attempt.tokens
            usd[attempt.task] += attempt.usd
        return cls(tokens, usd)


def _flow(run: Run, tasks: Sequence[TaskLine], used: _Used) -> documents.FlowDocument:
    return {
        "tasks": len(tasks),
        "done": sum(task.status == Status.DONE for task in tasks),
        "waits": _waits(wait for task in tasks if (wait := wait_of(task, run.end)) is not None),
        "tokens": sum(used.tokens[task.task] for task in tasks),
        "usd": sum(used.usd[task.task] for task in tasks) / 1_000_000,
    }


def wait_of(task: TaskLine, end: Instant) -> Micros | None:
    """From ready to the first start; so far for a task that still waits for it.

    Without the tasks that still wait, a policy that starves some would look better for it.
    """
    if task.ready_at is None:
        return None
    if task.started_at is None and task.status != Status.QUEUED:
        return None  # canceled before it started
    return max(0, (end if task.started_at is None else task.started_at) - task.ready_at)


def _waits(lengths: Iterable[Micros]) -> documents.WaitsDocument:
    listed = list(lengths)
    return {**spread90(listed), "max": seconds(max(listed, default=None))}


def _took(run: Run) -> Micros:
    ends = (ended(attempt, run.end) for attempt in run.attempts)
    return max(ends, default=run.begin) - run.begin


def _per_day(run: Run) -> float:
    done = sum(task.status == Status.DONE for task in run.tasks)
    return round_to(done * DAY / (run.end - run.begin)) if run.end > run.begin else 0.0


def utilisation(run: Run) -> float | None:
    """The part of the slots' time in which attempts ran; None where there were no slots."""
    ends = [*(at for at, _ in run.slots[1:]), *(run.end for _ in run.slots[-1:])]
    room = sum(
        count * max(0, min(until, run.end) - max(since, run.begin))
        for (since, count), until in zip(run.slots, ends, strict=True)
    )
    busy = sum(
        max(0, ended(attempt, run.end) - max(attempt.leased_at, run.begin))
        for attempt in run.attempts
    )
    return part_of(busy, room) if room else None


def ended(attempt: AttemptLine, end: Instant) -> Instant:
    """When an attempt left its slot; the end of the simulation for those that still run."""
    return min(at for at in (attempt.ended_at, attempt.gone_at, end) if at is not None)


def _by_project(run: Run, used: _Used) -> list[documents.ProjectFlowDocument]:
    groups = _grouped(run.tasks, lambda task: task.project)
    total = sum(used.tokens.values())
    weights = sum(run.weights.get(name, 0) for name in groups)
    rows: list[documents.ProjectFlowDocument] = []
    for name, tasks in groups.items():
        flow, weight = _flow(run, tasks, used), run.weights.get(name, 0)
        rows.append(
            {
                "project": name,
                "weight": weight,
                **flow,
                "share": part_of(flow["tokens"], total),
                "target": part_of(weight, weights),
                "lag": run.lag.get(name),
            }
        )
    return rows


def _by_kind(run: Run, used: _Used) -> list[documents.KindFlowDocument]:
    groups = _grouped(run.tasks, lambda task: task.kind)
    return [{"kind": name, **_flow(run, tasks, used)} for name, tasks in groups.items()]


def _grouped(
    tasks: Iterable[TaskLine], name: Callable[[TaskLine], str]
) -> dict[str, list[TaskLine]]:
    """Tasks by a name, the names in their order."""
    groups: dict[str, list[TaskLine]] = {}
    for task in tasks:
        groups.setdefault(name(task), []).append(task)
    return dict(sorted(groups.items()))


def _late(run: Run) -> documents.LateDocument:
    waits = [
        (wait, task.task) for task in run.tasks if (wait := wait_of(task, run.end)) is not None
    ]
    longest = max(waits, key=lambda row: row[0], default=None)
    starved = (task for task in run.tasks if task.started_at is None and task.ready_at is not None)
    return {
        "task": longest[1] if longest else None,
        "seconds": longest[0] / SECOND if longest else None,
        "never_started": sum(task.status == Status.QUEUED for task in starved),
    }


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
