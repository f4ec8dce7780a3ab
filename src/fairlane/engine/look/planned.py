"""Look and plan: one round as it would be, or as it is about to be committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from fairlane.engine.context import Context, Facts
from fairlane.engine.liveness import observe
from fairlane.engine.look.lanes import WINDOW, WINDOW_GROWTH
from fairlane.engine.look.view import View
from fairlane.engine.look.workers import Asker
from fairlane.model.instant import Instant
from fairlane.model.plan import Decided, Plan, decided
from fairlane.model.record import dataclass, replace
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Attempt, LaneKey
from fairlane.planner import lanes
from fairlane.planner.lanes import WindowUsedUp
from fairlane.policy.policy import Policy
from fairlane.store.base import Reading
from fairlane.store.news import Mark

if TYPE_CHECKING:
    from fairlane.planner.warm import WarmPlanner

#: No executor was asked.
NO_FACTS = Facts()


class LastCycle(TypedDict):
    """What the last round did."""

    at: Instant
    picks: int
    reclaims: int
    refused: int
    reason: str


@dataclass(frozen=True, slots=True)
class PlannedRound:
    """What was seen, the plan made of it, and the lanes of which more had to be read."""

    policy: Policy
    now: Instant
    mark: Mark  # of the store, before this transaction wrote anything
    snapshot: Snapshot
    decided: Decided
    attempts: dict[str, Attempt]  # whose lease is over, or that it ends, by task
    widened: frozenset[LaneKey] = frozenset()
    asker: Asker | None = None
    alone: bool = False  # of some tasks only, not of the whole queue
    window: int = WINDOW  # how many tasks of every other lane were read
    facts: Facts = NO_FACTS
    planner: WarmPlanner | None = None  # that can say it in full
    whole: Plan | None = None  # where it was made in full

    @property
    def plan(self) -> Plan:
        """The plan in full, with what holds the rest: that costs what is in flight."""
        if self.whole is not None:
            return self.whole
        make = lanes.plan if self.planner is None else self.planner.in_full
        return make(self.snapshot, self.policy, self.now)


def look(
    context: Context,
    reading: Reading,
    policy: Policy,
    now: Instant,
    facts: Facts = NO_FACTS,
    asker: Asker | None = None,
) -> Snapshot:
    """What planning reads, all of it read anew."""
    view = View()
    view.follow(reading, policy)
    return view.look(context, reading, now, facts, asker, WINDOW)[0]


def look_and_plan(
    context: Context,
    reading: Reading,
    policy: Policy,
    now: Instant,
    asker: Asker | None = None,
    window: int = WINDOW,
    facts: Facts | None = None,
    view: View | None = None,
) -> PlannedRound:
    """Look, then plan; a plan that used up a lane's window is made again with a larger one.

    Without `facts` it only previews: processes and files are looked at here, and the plan is that
    of a round which has brought in first what has arrived. Without `view` all is read anew.
    """
    ahead, warm = facts is None, view is not None
    view = view or View()
    view.follow(reading, policy)
    facts = observe(context, view.flights.attempts.values()) if facts is None else facts
    snapshot, window = view.look(context, reading, now, facts, asker, window)
    if ahead and _may_arrive(reading, now, snapshot):
        from fairlane.engine.round import with_arrivals

        snapshot = with_arrivals(context, reading, policy, now, snapshot)
    widened: set[LaneKey] = set()
    wider = window
    while True:
        try:
            if warm:
                moved = view.flights.take_moved()
                short, whole = view.planner.decide(snapshot, policy, now, moved), None
            else:
                whole = lanes.plan(snapshot, policy, now)
                short = decided(whole)
        except WindowUsedUp as used_up:
            wider *= WINDOW_GROWTH
            widened |= used_up.lanes
            more = view.wider(reading, widened, wider)
            read = tuple([more.get(lane.key, lane) for lane in snapshot.lanes])
            snapshot = replace(snapshot, lanes=read)
            continue
        attempts = {attempt.task: attempt for attempt in view.expired(now)}
        attempts |= {lost.task: view.flights.attempts[lost.task] for lost in short.plan.reclaims}
        return PlannedRound(
            policy, now, reading.mark(), snapshot, short, attempts, frozenset(widened), asker,
            window=window, facts=facts, planner=view.planner if warm else None,
            whole=whole,
        )  # fmt: skip


def _may_arrive(reading: Reading, now: Instant, snapshot: Snapshot) -> bool:
    """Whether a timer has passed, or somebody waits for a file that may be there."""
    due = reading.next_due()
    passed = due is not None and due <= now
    return passed or any(count.code == "artifact" for count in snapshot.wait_counts)


def preview(context: Context, reading: Reading) -> tuple[Snapshot, Plan, Policy]:
    """The plan that a round would make now; changes nothing."""
    policy = context.policy_for_reading(reading)
    planned = look_and_plan(context, reading, policy, context.now())
    return planned.snapshot, planned.plan, policy


def last_cycle(reading: Reading) -> LastCycle | None:
    """What the last round that did something did."""
    cycle: LastCycle | None = reading.value("last_cycle")
    return cycle
