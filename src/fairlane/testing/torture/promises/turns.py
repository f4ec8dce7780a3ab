"""Turns: nobody is overtaken, and between projects whoever is furthest behind goes first."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from fairlane.model.instant import MINUTE, Instant
from fairlane.model.project import Project
from fairlane.model.task import Attempt, LaneKey, Task
from fairlane.testing.torture.model import Model, facts
from fairlane.testing.torture.promises.base import Commit, Problem, Problems, promise
from fairlane.testing.torture.promises.gates import Scene, hold_of


def since(task: Task, scene: Scene) -> Instant:
    """The instant from which its age counts."""
    if scene.policy.score.age_from == "created":
        return task.created_at
    return task.entry.ready_since


def lanes_then(
    commit: Commit, attempt: Attempt, project: str
) -> Iterator[tuple[LaneKey, list[Task]]]:
    """The lanes of a project as they were just before a start: with what was started after it.

    What has become ready since the plan was made could not be picked by it.
    """
    later: dict[LaneKey, list[Task]] = {}
    for row in commit.started():
        if row.fence > attempt.fence and row.project == project:
            task = commit.leased_from[row.task]
            later.setdefault(task.lane, []).append(task)
    lanes = commit.model.ready.get(project, {})
    for key in [*lanes, *(key for key in later if key not in lanes)]:
        there = [task for name, task in lanes.get(key, {}).items() if name not in commit.since]
        if there or key in later:
            yield key, [*there, *later.get(key, ())]


@promise("turn", 4)
def first_in_first_out(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> Problems:
    """Inside a lane the oldest starts first."""
    mine = (since(task, scene), task.seq)
    for key, others in lanes_then(commit, attempt, task.project):
        for other in others if key == task.lane else ():
            if (since(other, scene), other.seq) < mine:
                yield Problem(f"{other.id} of the same lane is older, and was overtaken", task.id)


@promise("turn", 4)
def nobody_overdue_is_overtaken(
    commit: Commit, scene: Scene, attempt: Attempt, task: Task
) -> Problems:
    """A task that is overdue and may start is not overtaken by a younger one of its project."""
    after, order = scene.policy.overdue.after, scene.policy.order
    if after is None or "overdue" not in order:
        return
    if not set(order[: order.index("overdue")]) <= {"guarantee", "share"}:
        return
    for _, others in lanes_then(commit, attempt, task.project):
        other = min(others, key=lambda each: (since(each, scene), each.seq))
        overdue = scene.now - since(other, scene) > after
        older = since(other, scene) < since(task, scene)
        if overdue and older and can_start(commit, scene, attempt, other):
            yield Problem(f"{other.id} is overdue, could start, and was overtaken", task.id)


def can_start(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> bool:
    """Whether a task could have started in place of this attempt."""
    if scene.agents is None and task.agent not in (None, attempt.agent):
        return False  # nobody knows whether its agent is known there
    return not hold_of(scene, task) and not _is_reserved(commit, scene, attempt, task)


def _is_reserved(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> bool:
    """Whether another overdue task may have reserved what it needs."""
    after, locks = scene.policy.overdue.after, facts.locks_of(task, scene.policy)
    needs_place = task.workspace or scene.model.projects[task.project].workspaces is not None
    if after is None or not (locks or needs_place):
        return False
    for project in commit.model.ready:
        for _, others in lanes_then(commit, attempt, project):
            for other in others:
                late = scene.now - since(other, scene) > after and other.id != task.id
                same = needs_place and other.project == task.project
                if late and (same or locks & facts.locks_of(other, scene.policy)):
                    return True
    return False


@promise("turn", 5)
def furthest_behind_first(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> Problems:
    """No project starts while one that is further behind its share has something that may start."""
    if not by_share(scene):
        return
    clocks = clocks_then(commit, attempt)
    mine, projects = clocks[task.project], commit.model.projects
    for name, clock in clocks.items():
        row = projects[name]
        if name == task.project or not row.weight or row.status != "active":
            continue
        behind = clock < mine or not projects[task.project].weight
        if not behind or owed(commit, scene, attempt, task.project) < owed(
            commit, scene, attempt, name
        ):
            continue
        for _, others in lanes_then(commit, attempt, name):
            other = min(others, key=lambda each: (since(each, scene), each.seq))
            if can_start(commit, scene, attempt, other):
                yield Problem(
                    f"project {task.project} started at clock {mine}, though {other.id} of"
                    f" {name} could start, which is at {clock}",
                    task.id,
                )


@promise("lease", 5)
def everyones_clock(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> Problems:
    """The clock for all follows whoever is furthest behind of those that are there."""
    later = [row.fence for row in commit.started() if row.weight]
    if not attempt.weight or attempt.fence != max(later):
        return
    projects, clocks = commit.model.projects, clocks_then(commit, attempt)
    there = [clocks[name] for name, row in projects.items() if row.present and name in clocks]
    wanted = max(commit.everyone, min(there, default=commit.everyone))
    found = commit.model.values.get("clock") or 0
    if found != wanted:
        yield Problem(f"the clock for all is at {found}, it must be at {wanted}", task.id)


def by_share(scene: Scene) -> bool:
    """Whether the share decides between projects."""
    order = scene.policy.order
    if scene.policy.share.mode != "virtual-time" or "share" not in order:
        return False
    return set(order[: order.index("share")]) <= {"guarantee"}


def clocks_then(commit: Commit, attempt: Attempt) -> dict[str, int]:
    """The share clocks just before a start: without what it and those after it were charged."""
    clocks = {
        name: row.clock for name, row in commit.model.projects.items() if row.clock is not None
    }
    for row in commit.started():
        if row.fence >= attempt.fence and row.project in clocks:
            clocks[row.project] -= facts.clock_time(row.estimate, row.weight)
    return clocks


def owed(commit: Commit, scene: Scene, attempt: Attempt, name: str) -> int:
    """0: the project has had fewer starts than it is guaranteed, so it goes first."""
    rules, order = scene.policy.share, scene.policy.order
    row: Project = commit.model.projects[name]
    if "guarantee" not in order or not row.weight:
        return 1
    begin = (scene.now - rules.window) // MINUTE * MINUTE
    sums = commit.model.booked(f"project:{name}", begin)
    if rules.guarantee_counts == "completions":
        return 0 if sums[6] < rules.guarantee else 1
    before = sum(each.project == name and each.fence < attempt.fence for each in commit.started())
    return 0 if sums[5] + before < rules.guarantee else 1


class Shares:
    """What projects have received since both of a pair were last there, against the bound."""

    def __init__(self) -> None:
        #: Of a pair of projects: what both had received when they met, and their gap then.
        self._met: dict[tuple[str, str], tuple[Fraction, Fraction]] = {}
        self._most: dict[str, int] = {}  # in flight at once
        self._largest = 1  # estimate or cost of one attempt
        self._owed: dict[str, int] = {}  # starts that the share did not decide
        self._weights: dict[str, int] = {}
        self._least: dict[str, int] = {}  # weight that a project ever had

    def use(self, before: Attempt | None, attempt: Attempt) -> None:
        """An attempt costs so much; what is told after its end is owed to nobody's turn."""
        self._largest = max(self._largest, attempt.charged, attempt.estimate)
        late = before is not None and before.ended_at is not None
        if late and before is not None and before.charged != attempt.charged:
            self._owed[attempt.project] = self._owed.get(attempt.project, 0) + 1

    def start(self, commit: Commit, scene: Scene, attempt: Attempt) -> Problems:
        """A start: its project meets those that are ahead of it, and leaves those behind."""
        model, name, clocks = commit.model, attempt.project, clocks_then(commit, attempt)
        mine = sum(row.project == name for row, _ in scene.flying) + 1
        self._most[name] = max(self._most.get(name, 0), mine)
        self.use(None, attempt)
        guaranteed = not owed(commit, scene, attempt, name)
        if attempt.direct or guaranteed or not by_share(scene):
            self._owed[name] = self._owed.get(name, 0) + 1
        self._forget_changed(model)
        for other, clock in clocks.items():
            row = model.projects[other]
            if other == name or not row.weight or not attempt.weight or name not in clocks:
                continue
            pair = (min(name, other), max(name, other))
            if clock < clocks[name] and not attempt.direct:
                self._met.pop(pair, None)  # it had nothing that could start
            else:
                yield from self._within(clocks, pair)

    def arrived(self, name: str) -> None:
        """A project was away."""
        self._met = {pair: met for pair, met in self._met.items() if name not in pair}

    def _forget_changed(self, model: Model) -> None:
        for name, row in model.projects.items():
            if self._weights.get(name) != row.weight:
                self._weights[name] = row.weight
                self._least[name] = min(self._least.get(name, row.weight or 1), row.weight or 1)
                self.arrived(name)

    def _within(self, clocks: dict[str, int], pair: tuple[str, str]) -> Problems:
        one, other = pair
        gap = Fraction(clocks[one] - clocks[other], 10**6)
        if pair not in self._met:
            self._met[pair] = (abs(gap), self._owed_of(pair))
            return
        first, owed_then = self._met[pair]
        bound = first + self._bound(pair) + self._owed_of(pair) - owed_then
        if abs(gap) > bound + 2:  # every quotient is rounded down
            yield Problem(
                f"projects {one} and {other} are {float(abs(gap)):.0f} tokens per weight apart,"
                f" the bound is {float(bound):.0f}"
            )

    def _bound(self, pair: tuple[str, str]) -> Fraction:
        return self._sum({name: self._most.get(name, 0) + 1 for name in pair})

    def _owed_of(self, pair: tuple[str, str]) -> Fraction:
        return self._sum({name: self._owed.get(name, 0) for name in pair})

    def _sum(self, counts: dict[str, int]) -> Fraction:
        """So many times the largest cost, each by the least weight of its project."""
        parts = (
            Fraction(count * self._largest, self._least.get(name, 1))
            for name, count in counts.items()
        )
        return sum(parts, Fraction(0))
