"""Stats: shares against targets with the bound, waits, durations, and how good estimates were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlane.lifecycle.usage import Tokens, counted, minute_of
from fairlane.model.instant import HOUR, MINUTE, Instant, show_instant
from fairlane.model.project import CLOCK_SCALE, Project
from fairlane.model.record import dataclass
from fairlane.model.task import Outcome
from fairlane.planner.rules import Caps
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.reports.documents import dollars
from fairlane.service.reports.past import Past, ended_since, percentile, spread
from fairlane.service.reports.status import round_to
from fairlane.service.slots import slots_of
from fairlane.store.base import Booking, Reading

#: A plot has about so many points along time, and so many bars.
POINTS = 120
BARS_MAX = 2_000


def stats(desk: Desk, since: Instant | None = None) -> dict[str, Any]:
    """Shares, waits, durations, throughput and estimates since then (the share window)."""
    now = desk.now()
    with desk.store.read() as reading:
        policy = desk.policy_for_reading(reading)
        start = minute_of(now - policy.share.window if since is None else since)
        past = ended_since(reading, policy, start)
        sums = reading.usage_sums("project:", start)
        projects = reading.projects()
        bound = _Bound.of(desk, reading, policy, past)
        series = _series(reading, policy, projects, start, now)
    done = [each for each in past if each.attempt.outcome == Outcome.SUCCEEDED]
    hours = max(1, (now - start) // HOUR)
    return {
        "schema": SCHEMA,
        "since": show_instant(start),
        "now": show_instant(now),
        "projects": _projects(projects, sums, policy, past, bound),
        "throughput": {"done": len(done), "per_hour": round_to(len(done) / hours)},
        "waits": spread(_waits(past), 50, 95),
        "durations": spread((each.duration for each in past), 50, 95),
        "estimates": _estimates(past),
        "series": series,
        "timeline": [_bar(each) for each in past[-BARS_MAX:]],
    }


@dataclass(frozen=True, slots=True)
class _Bound:
    """What the published bound is made of."""

    cost: int  # C: the largest estimate or cost of one attempt
    most: Mapping[str, int]  # k: most tasks in flight, by project
    guarantee: int  # starts that the guarantee may add

    @classmethod
    def of(cls, desk: Desk, reading: Reading, policy: Policy, past: Iterable[Past]) -> _Bound:
        costs = [max(each.attempt.estimate, each.tokens) for each in past]
        costs += [attempt.estimate for attempt in reading.open_attempts()]
        projects = reading.projects()
        caps = Caps(policy, projects)
        slots = sum(worker.slots or 0 for worker in reading.workers())
        room = caps["all"] if caps["all"] is not None else slots or slots_of(desk.settings, policy)
        most = {}
        for name in projects:
            own = caps[f"project:{name}"]
            most[name] = room if own is None else min(own, room)
        owed = policy.share.guarantee if "guarantee" in policy.order else 0
        return cls(max(costs, default=policy.share.default_estimate), most, owed)

    def part(self, project: Project) -> int:
        """One project's part: (k + 1 + guaranteed) · C / w."""
        starts = self.most[project.name] + 1 + self.guarantee
        return starts * self.cost // project.weight


def _projects(
    projects: Mapping[str, Project],
    sums: Mapping[str, Booking],
    policy: Policy,
    past: Iterable[Past],
    bound: _Bound,
) -> list[dict[str, Any]]:
    """Each project that used or started anything, or could now."""
    mine: dict[str, list[Past]] = {}
    for each in past:
        mine.setdefault(each.attempt.project, []).append(each)
    shown = {name for name in projects if f"project:{name}" in sums or projects[name].present}
    shown |= mine.keys() & projects.keys()
    weights = sum(projects[name].weight for name in shown)
    used = {name: _tokens(sums.get(f"project:{name}"), policy) for name in shown}
    total = sum(used.values())
    rows = []
    for name in sorted(shown):
        project, booked = projects[name], sums.get(f"project:{name}") or Booking("", 0)
        ended = mine.get(name, [])
        rows.append(
            {
                "project": name,
                "weight": project.weight,
                "tokens": used[name],
                "usd": dollars(booked.usd),
                "share": round_to(used[name] / total) if total else 0.0,
                "target": round_to(project.weight / weights) if weights else 0.0,
                "starts": booked.starts,
                "completions": booked.completions,
                "waits": spread(_waits(ended), 50, 95),
                "durations": spread((each.duration for each in ended), 50, 95),
            }
            | _lag(project, projects, policy, bound)
        )
    return rows


def _lag(
    project: Project, projects: Mapping[str, Project], policy: Policy, bound: _Bound
) -> dict[str, Any]:
    """How far it is behind the present project that is furthest ahead, in weighted tokens.

    Clocks stand still while a project is not present, so only time present together counts.
    """
    nothing = {"lag": None, "bound": None, "behind": None}
    if policy.share.mode != "virtual-time" or not project.weight or not project.present:
        return nothing
    others = [
        each
        for each in projects.values()
        if each.present and each.weight and each.name != project.name and each.clock is not None
    ]
    if not others or project.clock is None:
        return nothing
    ahead = max(others, key=lambda each: (each.clock or 0, each.name))
    lag = max(0, (ahead.clock or 0) - project.clock) // CLOCK_SCALE
    return {"lag": lag, "bound": bound.part(project) + bound.part(ahead), "behind": ahead.name}


def _estimates(past: Iterable[Past]) -> list[dict[str, Any]]:
    """What was reserved beside what was used; at the 70th percentile 70 % should be within."""
    groups: dict[tuple[str, str, str], list[Past]] = {}
    for each in past:
        attempt = each.attempt
        if attempt.estimate and each.tokens:
            key = (attempt.project, attempt.kind, attempt.agent or "")
            groups.setdefault(key, []).append(each)
    rows = []
    for (project, kind, agent), found in sorted(groups.items()):
        within = sum(each.tokens <= each.attempt.estimate for each in found)
        rows.append(
            {
                "project": project,
                "kind": kind,
                "agent": agent or None,
                "attempts": len(found),
                "estimated": percentile((each.attempt.estimate for each in found), 50),
                "used": percentile((each.tokens for each in found), 50),
                "within": round_to(within / len(found)),
            }
        )
    return rows


def _series(
    reading: Reading,
    policy: Policy,
    projects: Mapping[str, Project],
    start: Instant,
    now: Instant,
) -> dict[str, Any]:
    """Usage over time, one list of points a project: what `--plot` draws."""
    step = max(MINUTE, -(-(now - start) // POINTS // MINUTE) * MINUTE)
    count = (now - start) // step + 1
    found = {}
    for name in sorted(projects):
        bookings = reading.usage(f"project:{name}", start)
        if not bookings:
            continue
        points = [{"tokens": 0, "starts": 0, "completions": 0} for _ in range(count)]
        for each in bookings:
            point = points[min(count - 1, max(0, (each.minute - start) // step))]
            point["tokens"] += _tokens(each, policy)
            point["starts"] += each.starts
            point["completions"] += each.completions
        found[name] = points
    at = [show_instant(start + step * number) for number in range(count)]
    return {"at": at, "step_seconds": step // 1_000_000, "projects": found}


def _bar(past: Past) -> dict[str, Any]:
    attempt = past.attempt
    told = {"task": attempt.task, "project": attempt.project, "worker": attempt.worker}
    told |= {"from": show_instant(attempt.leased_at), "to": show_instant(past.ended_at)}
    return told | {"outcome": attempt.outcome}


def _waits(past: Iterable[Past]) -> list[int]:
    return [each.wait for each in past if each.wait is not None]


def _tokens(booked: Booking | None, policy: Policy) -> int:
    return counted(Tokens(*booked.tokens), policy.usage.count) if booked else 0
