"""The demo as a world: each attempt works, uses and ends as the simulated agent draws it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlane.agents.demo import STEPS, USD_PER_TOKEN, Work
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Counters
from fairlane.model.instant import DAY, SECOND, Instant, Micros
from fairlane.model.record import dataclass, field
from fairlane.model.task import Outcome, Task
from fairlane.service import projects
from fairlane.simulation.provider import Limits
from fairlane.simulation.world import Act, Arrival, Fate, Shift

#: How an attempt ends that is drawn to end so; one that dies without a word has failed.
_OUTCOMES = {
    "succeeded": Outcome.SUCCEEDED,
    "failed": Outcome.FAILED,
    "lost": Outcome.FAILED,
    "throttled": Outcome.THROTTLED,
}


@dataclass(frozen=True, slots=True)
class DemoWorld:
    """Tasks of the simulated agent, all there at the begin."""

    records: tuple[Mapping[str, object], ...]
    weights: Mapping[str, int] = field(default_factory=dict)  # by project
    begin: Instant = 20_000 * DAY
    overhead: Micros = 0  # from the lease to the first step of the agent
    days: int | None = None
    limits: Mapping[str, Limits] = field(default_factory=dict)

    def prepare(self, context: Context) -> None:
        """The projects."""
        for name, weight in self.weights.items():
            projects.add_project(context, name, {"weight": weight})

    def arrivals(self, seed: int) -> Sequence[Arrival]:
        """Everything comes in one call."""
        return (Arrival(self.begin, self.records),)

    def shifts(self) -> Iterable[Shift]:
        """One worker, that stays."""
        return ()

    def acts(self) -> Iterable[Act]:
        """Nobody interferes."""
        return ()

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        """What the simulated agent draws; its seed is in the task's environment."""
        env = {**task.env, "FAIRLANE_TASK": task.id, "FAIRLANE_ATTEMPT": str(attempt)}
        return fate_of(Work(env), self.overhead)


def fate_of(work: Work, overhead: Micros) -> Fate:
    """One attempt of the simulated agent."""
    throttled, lost = work.ending == "throttled", work.ending == "lost"
    told = work.step - 1 if throttled or lost else STEPS  # steps of which it tells
    worked = work.step if lost else told
    used = work.tokens * told // STEPS
    return Fate(
        lasts=overhead + round(work.seconds * SECOND) * worked // STEPS,
        outcome=_OUTCOMES[work.ending],
        tokens=_counters(work, told),
        usd=round(used * USD_PER_TOKEN * 1_000_000),
        retry_after=round(work.retry_after * SECOND) if throttled else None,
        reports=max(0, told - 1),
    )


def _counters(work: Work, steps: int) -> Counters:
    used = work.used(steps)["tokens"]
    assert isinstance(used, dict)
    return used["input"], used["output"], used["cache_read"], used["cache_write"]
