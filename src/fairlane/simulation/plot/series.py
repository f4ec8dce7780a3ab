"""What a run looks like over time: tasks waiting and running, slots, tokens; one mean a column."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from fairlane.model.instant import Instant
from fairlane.model.record import dataclass
from fairlane.model.task import Status
from fairlane.simulation.report import ended

if TYPE_CHECKING:
    from fairlane.simulation.run import Run

#: A change of a level at an instant.
Change = tuple[Instant, int]
#: One value a column.
Values = Sequence[float]
#: Projects beyond these share one colour.
PROJECTS_MAX = 8
OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Series:
    """The curves of one run, those of projects by name."""

    waiting: Mapping[str, Values]
    running: Mapping[str, Values]
    shares: Mapping[str, Values]  # of the tokens used so far
    targets: Mapping[str, float]
    slots: Values


def shown_projects(runs: Iterable[Run]) -> dict[str, str]:
    """Project -> the name it is drawn under: the largest have their own."""
    sizes = Counter(task.project for run in runs for task in run.tasks)
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))
    if len(largest) > PROJECTS_MAX:
        largest = largest[: PROJECTS_MAX - 1]
    return {name: name if name in largest else OTHERS for name in sorted(sizes)}


def drawn(shown: Mapping[str, str]) -> list[str]:
    """The names that are drawn, the shared one last."""
    return sorted(
        set(shown.values()), key=lambda name: (name == OTHERS and OTHERS not in shown, name)
    )


def series_of(run: Run, shown: Mapping[str, str], columns: int, until: Instant) -> Series:
    """The curves of a run up to an instant at or after its end, each with this many columns."""
    borders = [run.begin + (until - run.begin) * at // columns for at in range(columns + 1)]
    names = drawn(shown)
    running, waiting = _changes(run, shown)
    steps = zip((0, *(count for _, count in run.slots)), run.slots, strict=False)
    return Series(
        {name: means(waiting[name], borders) for name in names},
        {name: means(running[name], borders) for name in names},
        _shares(run, shown, borders),
        _targets(run, shown),
        means([(at, count - before) for before, (at, count) in steps], borders),
    )


def _changes(
    run: Run, shown: Mapping[str, str]
) -> tuple[defaultdict[str, list[Change]], defaultdict[str, list[Change]]]:
    """By name, how many tasks run, and how many could run and do not."""
    running: defaultdict[str, list[Change]] = defaultdict(list)
    waiting: defaultdict[str, list[Change]] = defaultdict(list)
    project = {task.task: shown[task.project] for task in run.tasks}
    last: dict[str, Instant] = {}
    for attempt in run.attempts:
        name, stop = project[attempt.task], ended(attempt, run.end)
        running[name] += [(attempt.leased_at, 1), (stop, -1)]
        waiting[name] += [(attempt.leased_at, -1), (stop, 1)]
        last[attempt.task] = stop
    for task in run.tasks:
        if task.ready_at is not None:
            parked = last.get(task.task) if task.status == Status.PARKED else None
            left = task.ended_at if task.ended_at is not None else parked
            waiting[project[task.task]] += [(task.ready_at, 1)]
            waiting[project[task.task]] += [] if left is None else [(left, -1)]
    return running, waiting


def means(changes: Iterable[Change], borders: Sequence[Instant]) -> list[float]:
    """The mean of a level between each two borders."""
    area = [0] * (len(borders) - 1)
    end, since, level = borders[-1], borders[0], 0
    for at, change in [*sorted(changes), (end, 0)]:
        until = min(max(at, since), end)
        for column, part in _columns(since, until, borders):
            area[column] += level * part
        since, level = until, level + change
    widths = [after - before for before, after in pairwise(borders)]
    return [part / width if width else 0.0 for part, width in zip(area, widths, strict=True)]


def _columns(
    since: Instant, until: Instant, borders: Sequence[Instant]
) -> Iterable[tuple[int, int]]:
    """The columns that a stretch of time covers, each with the length covered."""
    column = bisect_right(borders, since) - 1
    while since < until:
        stop = min(until, borders[column + 1])
        yield column, stop - since
        since, column = stop, column + 1


def _shares(
    run: Run, shown: Mapping[str, str], borders: Sequence[Instant]
) -> dict[str, list[float]]:
    """Of the tokens used so far, the part of each; an attempt uses its tokens evenly."""
    project = {task.task: shown[task.project] for task in run.tasks}
    used = {name: [0.0] * (len(borders) - 1) for name in drawn(shown)}
    for attempt in run.attempts:
        stop = ended(attempt, run.end)
        life = max(1, stop - attempt.leased_at)
        for column, part in _columns(attempt.leased_at, stop, borders):
            used[project[attempt.task]][column] += attempt.tokens * part / life
    sums = {name: list(accumulate(values)) for name, values in used.items()}
    totals = [sum(column) for column in zip(*sums.values(), strict=True)]
    return {
        name: [part / total if total else 0.0 for part, total in zip(values, totals, strict=True)]
        for name, values in sums.items()
    }


def _targets(run: Run, shown: Mapping[str, str]) -> dict[str, float]:
    weights: Counter[str] = Counter()
    for project, name in shown.items():
        weights[name] += run.weights.get(project, 0)
    total = sum(weights.values()) or 1
    return {name: weights[name] / total for name in drawn(shown)}
