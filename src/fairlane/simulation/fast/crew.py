"""The crew of the fast engine: rounds in one transaction, planned from what is kept."""

from __future__ import annotations

from collections.abc import Container

from fairlane.clock import VirtualClock
from fairlane.engine.context import Context
from fairlane.engine.look.planned import PlannedRound
from fairlane.engine.round import Committed, carry_out
from fairlane.engine.task_changes import TaskChanges, bring_in, follow_policy, has_other_rules
from fairlane.engine.usage import Books
from fairlane.model.event import Happening
from fairlane.model.instant import Instant
from fairlane.model.plan import Decided
from fairlane.model.record import NamedTuple, changed
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Attempt, Task
from fairlane.policy.policy import Policy
from fairlane.simulation.engine.crew import Crew, Member, Rounds, on
from fairlane.simulation.fast.memory import WatchedStore
from fairlane.simulation.fast.view import View
from fairlane.store.base import Writing


class Seen(NamedTuple):
    """What one worker has planned last."""

    snapshot: Snapshot
    decided: Decided


class FastCrew(Crew):
    """The workers, each with a view of its own."""

    def __init__(
        self, context: Context, clock: VirtualClock, running: Container[str], store: WatchedStore
    ) -> None:
        super().__init__(context, clock, running)
        self._store = store
        self._views: dict[str, tuple[Member, View]] = {}
        self._all = View(context, store.memory, None)
        self._nobody: View | None = None  # what is seen while nobody works
        self.seen: dict[str, Seen] = {}  # in the last rounds, by worker

    def rounds(self) -> Rounds:
        self.seen = {}
        return super().rounds()

    def round(self, member: Member, found: Rounds) -> Committed:
        if self._store.memory.waits_for_files:
            return self._round_in_full(member, found)
        context = member.context
        with on(member.name), self._store.transaction as tx:
            policy, now = context.policy(), context.now()
            self._bring_in(tx, policy, now)
            seen = Seen(*self._view_of(member).decide(policy, now))
            self.seen[member.name], plan = seen, seen.decided.plan
            if not plan.picks and not plan.reclaims:
                return Committed(seen.decided, (), (), ())
            attempts = {lost.task: tx.attempt(lost.lease) for lost in plan.reclaims}
            planned = PlannedRound(
                policy, now, tx.mark(), seen.snapshot, seen.decided,
                {task: row for task, row in attempts.items() if row is not None},
                frozenset(), member.asker,
            )  # fmt: skip
            changes, books = TaskChanges(tx, policy, now), Books(tx, policy, now)
            committed = carry_out(planned, changes, books)
            started = [_begin(changes, books, *pair) for pair in committed.started]
            changes.close()
            books.close()
        found.started += started
        return changed(committed, started=tuple(started))

    def _round_in_full(self, member: Member, found: Rounds) -> Committed:
        """As the full engine does: it looks at files."""
        committed = super().round(member, found)
        planned = found.plans[member.name]
        self.seen[member.name] = Seen(planned.snapshot, planned.decided)
        return committed

    def see_all(self) -> Seen:
        """What would be planned for all workers together."""
        context, view = self._context, self._all
        if not self.working():
            view = self._nobody = self._nobody or View(self.unmanned(), self._store.memory, None)
        with self._store.read():
            return Seen(*view.decide(context.policy(), context.now()))

    def _view_of(self, member: Member) -> View:
        known = self._views.get(member.name)
        if known is not None and known[0] is not member:
            known[1].close()
            known = None
        if known is None:
            view = View(member.context, self._store.memory, member.asker)
            known = self._views[member.name] = member, view
        return known[1]

    def _bring_in(self, tx: Writing, policy: Policy, now: Instant) -> None:
        """Timers that have passed, and rules of readiness that are new."""
        due = tx.next_due()
        if (due is not None and due <= now) or has_other_rules(tx, policy):
            changes = TaskChanges(tx, policy, now)
            follow_policy(changes)
            bring_in(changes)


def _begin(
    changes: TaskChanges, books: Books, task: Task, attempt: Attempt
) -> tuple[Task, Attempt]:
    """Its process runs: it is known by its lease."""
    begun = changed(attempt, handle=attempt.lease, started_at=attempt.leased_at)
    books.keep(begun)
    return changes.happen(task, Happening.STARTED).task, begun
