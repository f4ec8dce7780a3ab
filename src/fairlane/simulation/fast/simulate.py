"""The fast engine: the same simulation over what is kept from round to round.

The driver, the rules and the bookkeeping are those of the full engine. What differs: planning
reads a view that follows the changes; no decisions and no events are recorded; leases of attempts
that are seen to run are written as renewed when that could make a difference, and not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from heapq import heapify, heappop, heappush

from fairlane.intake.fields import Records
from fairlane.intake.submit import collector_stopped
from fairlane.model.instant import Instant
from fairlane.model.project import Project
from fairlane.model.record import changed
from fairlane.model.task import Attempt, Task
from fairlane.policy.policy import Policy
from fairlane.service.tasks import Intake, RollBack
from fairlane.simulation.engine.crew import DESK, Rounds, on
from fairlane.simulation.engine.simulate import Simulation
from fairlane.simulation.fast.crew import FastCrew
from fairlane.simulation.fast.memory import WatchedStore
from fairlane.simulation.run import Run
from fairlane.simulation.world import Arrival, World


def simulate(
    world: World, policy: Policy, seed: int = 1, *, name: str = "", days: int | None = None
) -> Run:
    """What becomes of a world under a policy: the same value as the full engine's."""
    with on(DESK), collector_stopped():
        simulation = FastSimulation(world, policy, seed)
        return simulation.run(name or policy.preset_name, world.days if days is None else days)


class FastSimulation(Simulation):
    """One run of one world."""

    def __init__(self, world: World, policy: Policy, seed: int) -> None:
        self._store = WatchedStore()
        super().__init__(world, policy, seed, self._store)
        self._fast_crew = FastCrew(self._context, self._clock, self._flights.running, self._store)
        self._crew = self._fast_crew
        self._not_ours: set[str] = set()  # leases of attempts that run since before the begin
        self._unwritten: dict[str, Instant] = {}  # lease -> until when it was renewed
        self._renewals: list[tuple[Instant, str]] = []  # renewed at, lease
        self._shares_seen = -1

    # Leases

    def _go_on(self) -> None:
        super()._go_on()
        self._not_ours = set(self._flights.running)

    def _begin(self, started: Sequence[tuple[Task, Attempt]], now: Instant) -> None:
        super()._begin(started, now)
        for _, attempt in started:
            heappush(self._renewals, (now, attempt.lease))

    def _renew(self, now: Instant) -> None:
        """Nobody else sees the leases of the only worker: what runs there is known to live."""
        alone = len(self._crew.members) == len(self._crew.working()) == 1
        if not alone or self._not_ours & self._flights.running.keys():
            self._settle()
            super()._renew(now)
            self._renewals = [(at, lease) for lease, at in self._renewed_at.items()]
            heapify(self._renewals)
            return
        ttl, renewed_at = self._context.policy().lease.ttl, self._renewed_at
        while self._renewals and now - self._renewals[0][0] >= ttl // 3:
            at, lease = heappop(self._renewals)
            if renewed_at.get(lease) == at:
                renewed_at[lease], self._unwritten[lease] = now, now + ttl
                heappush(self._renewals, (now, lease))

    def _settle(self) -> None:
        """Write the leases as they were renewed."""
        renewed, self._unwritten = self._unwritten, {}
        if not renewed:
            return
        with self._store.transaction as tx:
            rows = {lease: tx.attempt(lease) for lease in renewed}
            tx.put_attempts(
                [
                    changed(row, expires_at=renewed[lease])
                    for lease, row in rows.items()
                    if row is not None and row.ended_at is None
                ]
            )

    def _change_shifts(self, now: Instant) -> None:
        for coming in (self._shifts.at, self._acts.at):
            if coming is not None and coming <= now:
                self._settle()
        super()._change_shifts(now)

    # What happens

    def _stop(self, now: Instant) -> None:
        if self._store.memory.stop_asked:
            super()._stop(now)
            self._store.memory.stop_asked = False

    def _add(self, arrival: Arrival) -> list[str] | None:
        with suppress(RollBack), self._store.transaction as tx:
            intake = Intake(self._context, tx)
            batch = intake.submit(Records.of(list(arrival.records)))
            if isinstance(intake.write(batch), str):
                raise RollBack
            return list(batch.new)
        return None

    # What is to be seen

    def _look(self, rounds: Rounds) -> None:
        crew, memory = self._fast_crew, self._store.memory
        seen = list(crew.seen.values())
        wakes = [row.decided.plan.wake_at for row in seen]
        self._wake_at = min((at for at in wakes if at is not None), default=None)
        policy = self._context.policy()
        self._see_slots()
        changes = memory.changes_of(Project)
        if changes != self._shares_seen:
            self._shares_seen = changes
            self._notes.see_shares(memory.table(Project), policy)
        one = seen[0] if len(seen) == 1 else crew.see_all()
        if one.snapshot.usage:
            self._notes.see_usage(one.snapshot.usage, memory.table(Project), policy)
        stranded = 0 if len(seen) == 1 else len(one.decided.plan.picks)
        self._notes.see_waits(one.decided.held, stranded, bool(crew.working()))
