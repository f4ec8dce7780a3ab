"""Simulate: from instant to instant, what happens then, one round of each worker, what started.

An instant is the next at which the world does something or the plan waits for something. Within
one, attempts report and end first, then workers come and go, people act and add work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fairlane.clock import VirtualClock
from fairlane.engine import attempts, checks
from fairlane.engine.context import Facts
from fairlane.engine.end_attempt import Ending
from fairlane.engine.look.planned import PlannedRound, look_and_plan
from fairlane.model.errors import Invalid, Refused
from fairlane.model.event import Happening
from fairlane.model.instant import DAY, Instant, show_instant
from fairlane.model.project import Project
from fairlane.model.task import Attempt, Status, Task
from fairlane.policy.policy import Policy
from fairlane.service import tasks
from fairlane.settings import Settings
from fairlane.simulation.engine.crew import DESK, Crew, Rounds, on
from fairlane.simulation.engine.flights import GONE, Flights
from fairlane.simulation.engine.notes import Notes
from fairlane.simulation.engine.steady import NOWHERE, Rules, SteadyContext, perform
from fairlane.simulation.engine.upcoming import Upcoming
from fairlane.simulation.run import Run
from fairlane.simulation.world import DAYS_MAX, WORKER, Arrival, Shift, World
from fairlane.store.memory.store import MemoryStore

#: Workers that come and go while nothing else happens: for so long something may still start.
IN_VAIN = 31 * DAY


def simulate(
    world: World, policy: Policy, seed: int = 1, *, name: str = "", days: int | None = None
) -> Run:
    """What becomes of a world under a policy; the same arguments give the same value.

    It ends after the `days`, or those of the world, or when nothing more would happen.
    """
    with on(DESK):
        simulation = Simulation(world, policy, seed)
        return simulation.run(name or policy.preset_name, world.days if days is None else days)


class Simulation:
    """One run of one world."""

    def __init__(
        self, world: World, policy: Policy, seed: int, store: MemoryStore | None = None
    ) -> None:
        self._world, self._seed = world, seed
        self._clock = VirtualClock(world.begin)
        settings = Settings.parse({"worker": {"name": WORKER}})
        store = store or MemoryStore()
        self._context = SteadyContext(
            NOWHERE, store, settings, self._clock, "simulation", rules=Rules(policy)
        )
        world.prepare(self._context)
        self._flights = Flights(world, seed)
        self._crew = Crew(self._context, self._clock, self._flights.running)
        self._notes = Notes(world.begin)
        self._shifts = Upcoming(world.shifts())
        if self._shifts.at is None:
            self._shifts = Upcoming([Shift(world.begin, WORKER)])
        self._arrivals, self._acts = Upcoming(world.arrivals(seed)), Upcoming(world.acts())
        self._deferred: list[Arrival] = []
        self._renewed_at: dict[str, Instant] = {}  # by lease
        self._wake_at: Instant | None = None
        self._moved_at = world.begin  # when something happened last, besides workers

    def run(self, name: str, days: int | None) -> Run:
        """From the begin to the end."""
        begin = self._world.begin
        end = begin + (DAYS_MAX if days is None else days) * DAY
        self._go_on()
        self._instant(begin)
        while (at := self._next()) is not None and at < end:
            self._clock.at = at
            self._notes.pass_time(at)
            self._instant(at)
        if days is None:
            self._refuse_later()
        else:
            self._idle_until(end)
        refused = sum(len(arrival.records) for arrival in self._deferred)
        return self._notes.run(self._context, name, self._seed, refused)

    def _refuse_later(self) -> None:
        """Nobody has asked to leave out work and acts that come after the longest simulation."""
        if (at := self._arrivals.at) is not None:
            first = self._arrivals.take(at)[0].records[:1]
            what = f"task {first[0]['id']}" if first else "an arrival"
        elif (at := self._acts.at) is not None:
            what = f"act {self._acts.take(at)[0].operation}"
        else:
            return
        message = f"{what} at {show_instant(at)}: more than {DAYS_MAX:,} days after the begin"
        hint = "Give it an earlier time, or set `days`: what comes later is left out then."
        raise Invalid(message, hint)

    def _idle_until(self, end: Instant) -> None:
        """Nothing happens any more, but workers come and go: there are slots that nobody uses."""
        while (at := self._shifts.at) is not None and at < end:
            self._clock.at = at
            self._notes.pass_time(at)
            self._change_shifts(at)
            self._see_slots()
        self._clock.at = end
        self._notes.pass_time(end)

    def _go_on(self) -> None:
        """What runs already goes on."""
        with self._context.store.read() as reading:
            flying = reading.open_attempts()
            known = reading.tasks([attempt.task for attempt in flying])
        for attempt in flying:
            self._notes.see_start(known[attempt.task])
            now, policy = self._clock.now(), self._context.policy()
            self._flights.go_on(known[attempt.task], attempt, policy, now)

    def _next(self) -> Instant | None:
        """The next instant at which something happens; None: nothing more does."""
        ahead = (self._flights.at, self._acts.at, self._arrivals.at, self._wake_at)
        known = [at for at in ahead if at is not None]
        if self._shifts.at is not None and (known or self._may_start_by(self._shifts.at)):
            known.append(self._shifts.at)
        return min(known, default=None)

    def _may_start_by(self, at: Instant) -> bool:
        """Whether a worker that comes may find work, where nothing else happens before."""
        return at <= self._moved_at + IN_VAIN and self._is_open()

    def _is_open(self) -> bool:
        """Whether anything waits for a start, or for the end of an attempt that is lost."""
        with self._context.store.read() as reading:
            statuses = {tally.status for tally in reading.tallies()}
        return any(status is Status.QUEUED or status.in_flight for status in statuses)

    def _instant(self, now: Instant) -> None:
        if now != self._shifts.at:
            self._moved_at = now
        self._end_attempts(now)
        self._renew(now)
        self._change_shifts(now)
        for act in self._acts.take(now):
            self._notes.see_act(act, perform(self._context, act))
        self._arrive(now)
        self._stop(now)
        self._crew.present(now, {flight.worker for flight in self._flights.running.values()})
        rounds = self._crew.rounds()
        self._begin(rounds.started, now)
        self._look(rounds)

    # What happens

    def _end_attempts(self, now: Instant) -> None:
        due = self._flights.due(now)
        if due.reports:
            attempts.progress(self._context, due.reports)
        for lease, ending in due.endings.items():
            if ending.happening is Happening.STOPPED:  # a person canceled it, and nobody else will
                tasks.cancel(self._context, [self._flights.running[lease].task])
        self._finish(due.endings)

    def _finish(self, endings: Mapping[str, Ending]) -> None:
        """Ends of attempts, each told by its worker; what passed its checks says so first."""
        by_worker: dict[str, dict[str, Ending]] = {}
        for lease, ending in endings.items():
            flight = self._flights.running[lease]
            self._check(flight.attempt, ending.happening)
            by_worker.setdefault(flight.worker, {})[lease] = ending
        for worker in sorted(by_worker):
            self._crew.finish(worker, by_worker[worker])
        self._flights.end(endings)
        for lease in endings:
            self._renewed_at.pop(lease, None)

    def _check(self, attempt: Attempt, happening: Happening) -> None:
        """The checks of an attempt ran: all passed, or the last one failed."""
        passed = {Happening.SUCCEEDED: 0, Happening.CHECK_FAILED: 1}.get(happening)
        if passed is None or not attempt.checks:
            return
        *before, last = attempt.checks
        rows = [{**row, "exit": 0, "passed": True, "seconds": 0.0} for row in before]
        rows.append({**last, "exit": passed, "passed": not passed, "seconds": 0.0})
        checks.record(self._context, attempt.lease, rows)

    def _renew(self, now: Instant) -> None:
        """What runs keeps its lease: it is renewed every third of its time, as daemons do."""
        third, renewed_at = self._context.policy().lease.ttl // 3, self._renewed_at
        due = [lease for lease in self._flights.running if now - renewed_at.get(lease, 0) >= third]
        if due:
            attempts.renew(self._context, due)
            renewed_at.update(dict.fromkeys(due, now))

    def _change_shifts(self, now: Instant) -> None:
        for shift in self._shifts.take(now):
            if shift.slots != 0:
                self._crew.come(shift)
                lost = self._flights.lost_by(shift.worker)
                if lost:
                    self._crew.finish(shift.worker, dict.fromkeys(lost, GONE))
            elif shift.sudden:
                self._crew.vanish(shift.worker)
                self._notes.see_gone(self._flights.vanish(shift.worker))
            else:
                self._crew.leave(shift.worker)

    def _arrive(self, now: Instant) -> None:
        """Work comes in; what the queue is too deep for is tried again when it moves."""
        waiting, self._deferred = [*self._deferred, *self._arrivals.take(now)], []
        for number, arrival in enumerate(waiting):
            created = self._offer(arrival)
            if created is None:
                self._deferred = waiting[number:]
                return
            if arrival.at < now:
                self._notes.came_at.update(dict.fromkeys(created, arrival.at))
            if created and self._context.policy().capacity.mode == "direct":
                self._begin(self._crew.start_now(created), now)

    def _offer(self, arrival: Arrival) -> list[str] | None:
        """The same as `_add`; a project that was archived takes none of it."""
        try:
            return self._add(arrival)
        except Refused as error:
            if error.error_code != "archived":
                raise
            self._notes.see_add_refused(arrival.at, error.message)
            return []

    def _add(self, arrival: Arrival) -> list[str] | None:
        """The ids of new tasks; None: the queue is too deep for them."""
        answer = tasks.add(self._context, arrival.records)
        if answer["deferred"]:
            return None
        return [row["id"] for row in answer["tasks"] if row["created"]]

    def _stop(self, now: Instant) -> None:
        """Attempts whose stop was requested end at once; that may use up another budget."""
        while stops := attempts.stops(self._context, self._flights.running):
            self._finish(self._flights.stopped(stops, now))

    def _begin(self, started: Sequence[tuple[Task, Attempt]], now: Instant) -> None:
        """What has a lease is launched: each worker pauses between two launches."""
        policy = self._context.policy() if started else None
        launched: Counter[str | None] = Counter()
        for task, attempt in started:
            assert policy is not None
            self._notes.see_start(task)
            at = now + launched[attempt.worker] * policy.capacity.spawn_delay
            self._flights.begin(task, attempt, policy, at)
            self._renewed_at[attempt.lease] = now
            launched[attempt.worker] += 1

    # What is to be seen

    def _look(self, rounds: Rounds) -> None:
        plans = list(rounds.plans.values())
        wakes = [row.decided.plan.wake_at for row in plans if row.decided.plan.wake_at is not None]
        self._wake_at = min(wakes, default=None)
        policy = self._context.policy()
        self._see_slots()
        with self._context.store.read() as reading:
            projects = reading.table(Project)
        self._notes.see_shares(projects, policy)
        planned = plans[0] if len(plans) == 1 else self._preview()
        self._notes.see_usage(planned.snapshot.usage, projects, policy)
        stranded = 0 if len(plans) == 1 else len(planned.decided.plan.picks)
        is_manned = bool(self._crew.working())
        self._notes.see_waits(planned.decided.held, stranded, is_manned)

    def _see_slots(self) -> None:
        self._notes.see_slots(self._crew.slots(self._flights.by_worker()))

    def _preview(self) -> PlannedRound:
        """The plan for all workers together: each alone holds what another one could start."""
        context = self._context if self._crew.working() else self._crew.unmanned()
        with self._context.store.read() as reading:
            now, policy = self._clock.now(), self._context.policy()
            return look_and_plan(context, reading, policy, now, facts=Facts())
