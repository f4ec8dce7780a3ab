"""Course: an attempt from its launch to its end, as its fate, its timeout and its provider say.

What it prints is not simulated: `attempt.silence` ends nothing here.
"""

from __future__ import annotations

from fairlane.engine.end_attempt import Counters
from fairlane.model.instant import Instant, Micros
from fairlane.model.record import changed, dataclass
from fairlane.model.task import Outcome, Task
from fairlane.policy.policy import Policy
from fairlane.simulation.provider import Provider, Refusal
from fairlane.simulation.world import Fate, World


@dataclass(frozen=True, slots=True)
class Course:
    """One attempt: when it tells of its usage, and what it has used by then."""

    pool: str | None
    begun: Instant
    fate: Fate

    @property
    def end(self) -> Instant:
        """When it ends, unless something stops it."""
        return self.begun + self.fate.lasts

    def report_at(self, number: int) -> Instant:
        """When it tells of its usage for the n-th time; the last time is its end."""
        return self.begun + self.fate.lasts * number // (self.fate.reports + 1)

    def used(self, at: Instant) -> tuple[Counters, int | None]:
        """Tokens and micro-dollars by an instant: it uses them evenly over its time."""
        fate, ran = self.fate, min(max(0, at - self.begun), self.fate.lasts)
        first, second, third, fourth = (count * ran // fate.lasts for count in fate.tokens)
        usd = None if fate.usd is None else fate.usd * ran // fate.lasts
        return (first, second, third, fourth), usd


def course_of(
    world: World,
    provider: Provider,
    policy: Policy,
    seed: int,
    task: Task,
    attempt: int,
    at: Instant,
) -> Course:
    """The course of an attempt that begins at an instant."""
    fate = provider.admit(task.pool, _timed(world.fate(seed, task, attempt), task, policy), at)
    return Course(task.pool, at, fate)


def course_under_way(
    world: World, policy: Policy, seed: int, task: Task, attempt: int, begun: Instant, now: Instant
) -> Course:
    """The course of an attempt that runs when the simulation begins; its provider let it in."""
    fate = _timed(world.fate(seed, task, attempt, max(0, now - begun)), task, policy)
    lasts = max(fate.lasts, now - begun + 1)  # it has not ended yet
    return Course(task.pool, begun, fate if lasts == fate.lasts else changed(fate, lasts=lasts))


def use(provider: Provider, course: Course, before: Instant, now: Instant) -> Refusal | None:
    """Book at the provider what an attempt used since it told last; the refusal it gets next."""
    if not provider.watches(course.pool):
        return None
    return provider.use(
        course.pool, billed(course.used(now)[0]) - billed(course.used(before)[0]), now
    )


def billed(tokens: Counters) -> int:
    """The tokens that providers limit: all but those read from a cache."""
    return tokens[0] + tokens[1] + tokens[3]


def _timed(fate: Fate, task: Task, policy: Policy) -> Fate:
    """A fate that lasts some time, and no longer than the attempt may."""
    timeout: Micros | None = task.timeout or policy.attempt.timeout
    if timeout is None or fate.lasts <= timeout:
        return fate if fate.lasts > 0 else changed(fate, lasts=1)
    used, usd = Course(None, 0, fate).used(timeout)
    return changed(
        fate, lasts=timeout, outcome=Outcome.FAILED, tokens=used, usd=usd, detail="timeout",
        retry_after=None, resets_at=None,
    )  # fmt: skip
