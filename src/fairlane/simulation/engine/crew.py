"""Crew: the workers of a simulation, each on a host of its own, with the rounds that they make."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fairlane.clock import VirtualClock
from fairlane.engine import attempts
from fairlane.engine.context import Context, slots_of
from fairlane.engine.end_attempt import Ending
from fairlane.engine.look.planned import PlannedRound
from fairlane.engine.look.workers import Asker
from fairlane.engine.round import Committed, committed_round
from fairlane.executors.base import Gone, Handle, Running, State
from fairlane.model.instant import Instant
from fairlane.model.record import dataclass, field, replace
from fairlane.model.task import Attempt, Task
from fairlane.settings import HOST, WorkerSettings
from fairlane.simulation.processes import Machine, VirtualExecutor
from fairlane.simulation.world import Shift

#: Where people and their commands are: no worker runs there.
DESK = "desk"


@contextmanager
def on(host: str) -> Iterator[None]:
    """What is done in this block is done on a host."""
    token = HOST.set(host)
    try:
        yield
    finally:
        HOST.reset(token)


class Sight(VirtualExecutor):
    """Sees which attempts run; it launches nothing, and leaves no files."""

    def __init__(self, clock: VirtualClock, running: Container[str]) -> None:
        super().__init__(Machine(clock))
        self._running = running

    def poll(self, handle: Handle) -> State:
        """Whether the attempt runs: its handle is its lease."""
        return Running() if handle.text in self._running else Gone()


@dataclass(slots=True)
class Rounds:
    """What the workers did at one instant: the last plan of each, and what they started."""

    plans: dict[str, PlannedRound] = field(default_factory=dict)
    started: list[tuple[Task, Attempt]] = field(default_factory=list)


@dataclass(slots=True)
class Member:
    """One worker; on its host it is alone."""

    name: str
    context: Context
    leaving: bool = False  # it takes no more work
    seen_at: Instant | None = None

    @property
    def asker(self) -> Asker:
        """As whom it asks for work."""
        return Asker(self.name, None, self.context.settings.worker.executor, self.name)

    @property
    def slots(self) -> int:
        """How many attempts it may run at once."""
        if self.leaving:
            return 0
        return slots_of(self.context.settings, self.context.policy())


class Crew:
    """The workers that are there, by name."""

    def __init__(self, context: Context, clock: VirtualClock, running: Container[str]) -> None:
        self._context, self._sight = context, Sight(clock, running)
        self.members: dict[str, Member] = {}

    def slots(self, running: Mapping[str, int]) -> int:
        """How many attempts may run at once on all of them.

        `running`: how many each runs now. What runs has its slot until it ends, also where its
        worker has left or has fewer slots than before.
        """
        cap, free = (
            self._context.policy().caps.get("all"),
            {m.name: m.slots for m in self.working()},
        )
        slots = sum(max(free.get(name, 0), running.get(name, 0)) for name in {*free, *running})
        return slots if cap is None else max(min(cap, slots), sum(running.values()))

    def working(self) -> list[Member]:
        """Those that take work."""
        return [member for member in self.members.values() if not member.leaving]

    def unmanned(self) -> Context:
        """The context of people while nobody works: a plan in it assumes no free slot."""
        settings = self._context.settings
        none = replace(settings.worker, slots=0)
        return replace(self._context, settings=replace(settings, worker=none))

    def come(self, shift: Shift) -> None:
        """A worker arrives, or has other slots and labels from now on."""
        executor = self._context.settings.worker.executor
        worker = WorkerSettings(shift.worker, shift.slots, shift.labels, executor)
        settings = replace(self._context.settings, worker=worker)
        context = replace(self._context, settings=settings, executors={executor: self._sight})
        self.members[shift.worker] = Member(shift.worker, context)
        self.members = dict(sorted(self.members.items()))

    def leave(self, worker: str) -> None:
        """A worker takes no more work; what it runs goes on to its end."""
        member = self.members.get(worker)
        if member is None:
            return
        none = replace(member.context.settings.worker, slots=0)
        member.context.settings = replace(member.context.settings, worker=none)
        member.leaving, member.seen_at = True, None

    def vanish(self, worker: str) -> None:
        """A worker is gone, and says nothing."""
        self.members.pop(worker, None)

    def present(self, now: Instant, busy: Container[str]) -> None:
        """Each worker shows that it lives, as often as daemons do; those that left are forgotten.

        `busy`: workers that have something to do.
        """
        ttl = self._context.policy().lease.ttl
        for member in list(self.members.values()):
            if member.seen_at is None or now - member.seen_at >= ttl // 3:
                with on(member.name):
                    attempts.present(member.context)
                member.seen_at = now
            if member.leaving and member.name not in busy:
                del self.members[member.name]

    def finish(self, worker: str, endings: Mapping[str, Ending]) -> None:
        """Attempts of a worker have ended."""
        with on(worker):
            attempts.finish(self.context_of(worker), endings)

    def context_of(self, worker: str) -> Context:
        """The context of a worker; of one that is not here, that of people."""
        member = self.members.get(worker)
        return self._context if member is None else member.context

    def rounds(self) -> Rounds:
        """Each worker looks, plans and commits, until nobody has a reason to look again.

        What one starts or gives back is news for the others; what it gives back, for itself too.
        """
        found = Rounds()
        waiting = {member.name for member in self.working()}
        while waiting:
            for member in self.working():
                if member.name not in waiting:
                    continue
                waiting.discard(member.name)
                committed = self.round(member, found)
                if committed.started or committed.reclaimed:
                    waiting |= {other.name for other in self.working() if other is not member}
                if committed.reclaimed:
                    waiting.add(member.name)
        return found

    def round(self, member: Member, found: Rounds) -> Committed:
        """One round of one worker."""
        with on(member.name):
            with committed_round(member.context, member.asker) as (_, planned, committed):
                pass
            found.plans[member.name] = planned
            if committed.started:
                leases = [attempt.lease for _, attempt in committed.started]
                found.started += _begin(member, leases)
        return committed

    def start_now(self, tasks: Sequence[str]) -> list[tuple[Task, Attempt]]:
        """The first worker starts these, whatever the caps say: `capacity.mode = "direct"`."""
        for member in self.working()[:1]:
            with on(member.name):
                leased = attempts.lease(member.context, member.asker, only=tasks).documents
                return _begin(member, [document["lease"] for document in leased])
        return []


def _begin(member: Member, leases: Sequence[str]) -> list[tuple[Task, Attempt]]:
    """Their processes run: each is known by its lease."""
    attempts.start(member.context, {lease: lease for lease in leases})
    with member.context.store.read() as reading:
        rows = [row for lease in leases if (row := reading.attempt(lease)) is not None]
        tasks = reading.tasks([row.task for row in rows])
    return [(tasks[row.task], row) for row in rows]
