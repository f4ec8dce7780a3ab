"""Stats: ended attempts counted; shares against targets with the bound, waits, estimates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypedDict

from fairlane.engine.context import Context, slots_of
from fairlane.model.instant import HOUR, MINUTE, SECOND, Instant, Micros, minute_of, show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.project import Project, WorkerRow
from fairlane.model.record import dataclass
from fairlane.model.task import Attempt, Outcome, Task
from fairlane.policy.policy import Policy
from fairlane.service.reports.documents import title_of, tokens_of
from fairlane.service.reports.fairness import Bound, behind
from fairlane.service.reports.status import round_to
from fairlane.store.base import Booking, Reading

if TYPE_CHECKING:
    from fairlane.model.documents import parts, reports

#: Reports look at no more attempts than this, the newest.
ATTEMPTS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Past:
    """One ended attempt."""

    attempt: Attempt
    title: str
    tokens: int  # those that count
    wait: Micros | None  # by `wait_of`
    ended_at: Instant

    @property
    def duration(self) -> Micros:
        """From the lease to its end."""
        return self.ended_at - self.attempt.leased_at


def ended_since(reading: Reading, policy: Policy, since: Instant) -> list[Past]:
    """What ended since then, oldest first."""
    past = []
    for attempt, task in reading.ended_attempts(since, ATTEMPTS_MAX):
        tokens, wait = tokens_of(attempt, policy), wait_of(attempt, task)
        ended_at = attempt.ended_at or attempt.leased_at
        past.append(Past(attempt, title_of(task), tokens, wait, ended_at))
    return sorted(past, key=lambda row: (row.ended_at, row.attempt.fence))


def wait_of(attempt: Attempt, task: Task) -> Micros | None:
    """From ready to leased; None: of an earlier attempt, not kept."""
    if task.ready_since is None or task.failures or attempt.number != task.attempts:
        return None
    return max(0, attempt.leased_at - task.ready_since)


def percentile(values: Iterable[int], percent: int) -> int | None:
    """The smallest value that at least this many of a hundred do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[-(-percent * len(ordered) // 100) - 1] if ordered else None


def seconds(length: Micros | None) -> float | None:
    """A length in seconds, as reports give it."""
    return None if length is None else length / SECOND


def spread90(lengths: Iterable[Micros]) -> parts.Spread90Document:
    """Median and 90th percentile of lengths, in seconds, and how many there are."""
    listed = list(lengths)
    median, p90 = (seconds(percentile(listed, percent)) for percent in (50, 90))
    return {"p50": median, "p90": p90, "count": len(listed)}


def spread95(lengths: Iterable[Micros]) -> parts.Spread95Document:
    """Median and 95th percentile of lengths, in seconds, and how many there are."""
    listed = list(lengths)
    median, p95 = (seconds(percentile(listed, percent)) for percent in (50, 95))
    return {"p50": median, "p95": p95, "count": len(listed)}


#: How many points a plot has along time, and how many bars at most.
POINTS = 120
BARS_MAX = 2_000


def stats(context: Context, since: Instant | None = None) -> reports.StatsAnswer:
    """Shares against targets, waits, durations, tokens, cost."""
    now = context.now()
    with context.store.read() as reading:
        policy = context.policy_for_reading(reading)
        start = minute_of(now - policy.share.window if since is None else since)
        past = ended_since(reading, policy, start)
        sums = reading.usage_sums("project:", start)
        projects = reading.table(Project)
        bound = _bound(context, reading, policy, past)
        series = _series(reading, policy, projects, start, now)
    done = [row for row in past if row.attempt.outcome == Outcome.SUCCEEDED]
    hours = max(1, (now - start) // HOUR)
    return {
        "schema": SCHEMA,
        "since": show_instant(start),
        "now": show_instant(now),
        "projects": _projects(projects, sums, policy, past, bound),
        "throughput": {"done": len(done), "per_hour": round_to(len(done) / hours)},
        "waits": spread95(_waits(past)),
        "durations": spread95(row.duration for row in past),
        "estimates": _estimates(past),
        "checks": _checks(past),
        "series": series,
        "timeline": [_bar(row) for row in past[-BARS_MAX:]],
    }


def _bound(context: Context, reading: Reading, policy: Policy, past: Iterable[Past]) -> Bound:
    """The published bound, from what ended and what is in flight."""
    costs = [max(row.attempt.estimate, row.tokens) for row in past]
    costs += [attempt.estimate for attempt in reading.open_attempts()]
    slots = sum(worker.slots or 0 for worker in reading.table(WorkerRow).values())
    room = slots or slots_of(context.settings, policy)
    return Bound.of(policy, reading.table(Project), max(costs, default=None), room)


class UsedShareDocument(TypedDict):
    """A project's share of the usage, and its target by weight."""

    project: str
    weight: int
    tokens: int
    usd: float
    share: float
    target: float


def share_rows(reading: Reading, policy: Policy, now: Instant) -> list[UsedShareDocument]:
    """Each project that used anything in the share window, or could start something now."""
    sums = reading.usage_sums("project:", minute_of(now - policy.share.window))
    return _shares(reading.table(Project), sums, policy)


def _shares(
    projects: Mapping[str, Project],
    sums: Mapping[str, Booking],
    policy: Policy,
    more: Iterable[str] = (),
) -> list[UsedShareDocument]:
    names = {name for name in projects if f"project:{name}" in sums or projects[name].present}
    names |= projects.keys() & set(more)
    booked = {name: sums.get(f"project:{name}") or Booking("", 0) for name in sorted(names)}
    tokens = {name: tokens_of(used, policy) for name, used in booked.items()}
    total = sum(tokens.values())
    weights = sum(projects[name].weight for name in names)
    return [
        {
            "project": name,
            "weight": projects[name].weight,
            "tokens": tokens[name],
            "usd": used.usd / 1_000_000,
            "share": part_of(tokens[name], total),
            "target": part_of(projects[name].weight, weights),
        }
        for name, used in booked.items()
    ]


def part_of(part: int, total: int) -> float:
    """A share as reports give it: of tokens used, or of weights as its target."""
    return round_to(part / total) if total else 0.0


def _projects(
    projects: Mapping[str, Project],
    sums: Mapping[str, Booking],
    policy: Policy,
    past: Iterable[Past],
    bound: Bound,
) -> list[reports.ShareDocument]:
    """Each project that used or started anything, or could now."""
    ended: dict[str, list[Past]] = {}
    for attempt in past:
        ended.setdefault(attempt.attempt.project, []).append(attempt)
    rows: list[reports.ShareDocument] = []
    for row in _shares(projects, sums, policy, ended):
        name = row["project"]
        booked, mine = sums.get(f"project:{name}") or Booking("", 0), ended.get(name, [])
        lag, most, ahead = _behind(projects[name], projects, policy, bound)
        rows.append(
            {
                **row,
                "starts": booked.starts,
                "completions": booked.completions,
                "waits": spread95(_waits(mine)),
                "durations": spread95(attempt.duration for attempt in mine),
                "lag": lag,
                "bound": most,
                "behind": ahead,
            }
        )
    return rows


def _behind(
    project: Project, projects: Mapping[str, Project], policy: Policy, bound: Bound
) -> tuple[int | None, int | None, str | None]:
    """How far a project is behind the one furthest ahead, the bound of that, and its name."""
    gap = behind(project, projects, policy)
    if gap is None:
        return None, None, None
    return gap.lag, bound.part(project) + bound.part(gap.ahead), gap.ahead.name


def _estimates(past: Iterable[Past]) -> list[reports.EstimateDocument]:
    """Reserved and used tokens; at the 70th percentile 70 % should be within."""
    groups: dict[tuple[str, str, str], list[Past]] = {}
    for row in past:
        attempt = row.attempt
        if attempt.estimate and row.tokens:
            key = (attempt.project, attempt.kind, attempt.agent or "")
            groups.setdefault(key, []).append(row)
    return [
        {
            "project": project,
            "kind": kind,
            "agent": agent or None,
            "attempts": len(rows),
            "estimated": percentile((row.attempt.estimate for row in rows), 50) or 0,
            "used": percentile((row.tokens for row in rows), 50) or 0,
            "within": round_to(sum(row.tokens <= row.attempt.estimate for row in rows) / len(rows)),
        }
        for (project, kind, agent), rows in sorted(groups.items())
    ]


def _checks(past: Iterable[Past]) -> list[reports.CheckStatDocument]:
    """How often each check ran, and how often it was the one that failed first."""
    ran: Counter[tuple[str, str]] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    for row in past:
        for check in row.attempt.checks:
            if check.get("passed") is not None:
                key = (row.attempt.project, str(check["name"]))
                ran[key] += 1
                failed[key] += not check["passed"]
    return [
        {"project": project, "check": name, "runs": runs, "failed": failed[project, name]}
        for (project, name), runs in sorted(ran.items())
    ]


def _series(
    reading: Reading, policy: Policy, projects: Mapping[str, Project], start: Instant, now: Instant
) -> reports.SeriesDocument:
    """Usage over time, one list of points a project: what `--plot` draws."""
    step = max(MINUTE, -(-(now - start) // POINTS // MINUTE) * MINUTE)
    count = (now - start) // step + 1
    series: dict[str, list[reports.PointDocument]] = {}
    for name in sorted(projects):
        bookings = reading.usage(f"project:{name}", start)
        if not bookings:
            continue
        points: list[reports.PointDocument]
        points = [{"tokens": 0, "starts": 0, "completions": 0} for _ in range(count)]
        for booked in bookings:
            point = points[min(count - 1, max(0, (booked.minute - start) // step))]
            point["tokens"] += tokens_of(booked, policy)
            point["starts"] += booked.starts
            point["completions"] += booked.completions
        series[name] = points
    at = [show_instant(start + step * number) for number in range(count)]
    return {"at": at, "step_seconds": step // 1_000_000, "projects": series}


def _bar(past: Past) -> reports.BarDocument:
    attempt = past.attempt
    return {
        "task": attempt.task,
        "project": attempt.project,
        "worker": attempt.worker,
        "from": show_instant(attempt.leased_at),
        "to": show_instant(past.ended_at),
        "outcome": str(attempt.outcome),
    }


def _waits(past: Iterable[Past]) -> list[int]:
    return [row.wait for row in past if row.wait is not None]
