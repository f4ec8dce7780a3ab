"""Checker: is told of every commit and launch, and raises `Broken` at the first broken promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlane.engine import decisions
from fairlane.model.project import Project
from fairlane.model.task import Attempt, Status, Task
from fairlane.testing.torture.model import Model, differences, facts
from fairlane.testing.torture.model.rows import links_of
from fairlane.testing.torture.promises import (
    answers,
    closing,
    holders,
    pools,
    reasons,
    settling,
    spending,
    statuses,
)
from fairlane.testing.torture.promises.base import (
    PROMISES,
    Broken,
    Commit,
    Party,
    Problem,
    Promise,
)
from fairlane.testing.torture.promises.ceilings import Batch
from fairlane.testing.torture.promises.gates import Scene
from fairlane.testing.torture.promises.turns import Shares

if TYPE_CHECKING:
    from fairlane.engine.context import Context
    from fairlane.executors.base import Orders
    from fairlane.model.instant import Instant
    from fairlane.store.base import Decision, Store
    from fairlane.testing.torture.ports import Write
    from fairlane.testing.torture.promises.holders import Ground

_AGREES = Promise(2, "the store agrees", "Every row of the store is as the model has it.")
_REPLAYS = Promise(7, "replay", "Every decision, planned again, has the same bytes.")
_BATCH = Promise(1, "batch", "No more start in one interval than `capacity.batch` says.")
_BOUND = Promise(5, "bound", "Shares of projects that are there differ by the bound at most.")
#: What a task becomes when it is leased again or put back: no late success counts from then on.
_FORGETS = ("leased", "retried", "added_again", "canceled")


class Checker:
    """Keeps a model beside the store, and holds every commit against the promises."""

    def __init__(
        self,
        store: Store,
        party: Callable[[str], Party],
        ground: Ground | None = None,
    ) -> None:
        """`store`: without gates. `party`: by which rules a process goes now, by its name."""
        self.model = Model.of(store)
        self.counts: Counter[str] = Counter()  # promise: how often it was checked
        self.replayed = 0
        self._store, self._party, self._ground = store, party, ground
        self._may: dict[str, int] = {}  # of a task: the lost fence that may still succeed
        self._batch, self._shares, self._launches = Batch(), Shares(), closing.Launches()
        self._stops = holders.Stops()
        self._last_replayed, self._again = 0, decisions.Replay()
        self._done_before: dict[str, list[str]] = {}  # of a lease: what was done of what it needs

    def committed(
        self, process: str, writes: Sequence[Write], true_now: Instant, store_now: Instant
    ) -> None:
        """A process has committed these writes; `store_now`: by the clock that it decides by."""
        commit = Commit(self.model, process, self._party(process), true_now, store_now)
        commit.may = self._may
        commit.clocks = {
            name: row.clock for name, row in self.model.projects.items() if row.clock is not None
        }
        self._read_times(commit, writes)
        for at, write in enumerate(writes):
            if write.what == "decision":
                self._decided(commit, write.values[0], writes[at + 1 :])
                commit.since.clear()
            elif write.what == "clocks":
                self._arrivals(commit, write.values[0])
            elif write.what == "put":
                commit.pools += pools.changes(self.model, write)
            last = self.model.last_fence
            changes = self.model.apply(write)
            if write.what in ("save", "insert"):
                commit.tasks += changes
                commit.since |= {after.task.id for _, after in changes}
                self._note_leased(commit, changes)
            elif write.what == "attempts":
                self._attempts(commit, changes, last)
            elif write.what == "book":
                commit.bookings += write.values
        self._end(commit)
        if any(write.what == "compact" for write in writes):  # seldom, and it touches everything
            self.full()

    def launched(self, process: str, orders: Orders) -> None:
        """A process is about to launch this."""
        self._check("launch", self._launches, self.model, process, orders)
        lease = orders.env.get("FAIRLANE_LEASE")
        if lease in self.model.attempts:
            self._given(lease, answers.told_of("\n".join(orders.argv)))

    def answered(
        self, operation: str, arguments: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> None:
        """Somebody has asked, and gets this answer; a refusal has a code."""
        attempts = self.model.attempts
        if operation in answers.TELLING and answer.get("code", "") in answers.BOOKED:
            attempt = attempts.get(arguments["lease"])
            if attempt is not None:
                self._check("told", attempt, arguments)
        for document in answer.get("leases", ()) if operation == "lease" else ():
            if document["lease"] in attempts:
                self._given(document["lease"], answers.built_on(document))

    def full(self, contexts: Iterable[Context] = (), everything: bool = False) -> None:
        """The whole store against the model, and every decision since the last time replayed.

        `everything`: attempts, events and decisions of all times, by both planners.
        """
        found = differences(self.model, self._store, everything)
        self._tell(_AGREES, [Problem(text) for text in found])
        problems = self._store.check()
        self._tell(_AGREES, [Problem(text) for text in problems])
        for context in list(contexts)[:1]:
            self._replay(context, everything)

    def settled(
        self,
        now: Instant,
        process: str,
        workers: Sequence[str] = (),
    ) -> None:
        """It is quiet: the faults have stopped, and nothing changes any more.

        `process`: by whose rules; `workers`: those that still ask for work.
        """
        party = self._party(process)
        policy = Commit(self.model, process, party, now, now).policy
        rest = settling.Rest(self.model, policy, now, tuple(workers), party.agents, self._ground)
        self._check("end", rest)

    # Inside

    def _given(self, lease: str, names: Sequence[str]) -> None:
        done = self._done_before.get(lease, ())
        self._check("given", names, done, self.model.attempts[lease])

    def _check(self, when: str, *subject: Any) -> None:
        for promise in PROMISES[when]:
            self.counts[promise.name] += 1
            for problem in promise.check(*subject):
                raise Broken(promise, *problem)

    def _tell(self, promise: Promise, problems: Iterable[Problem]) -> None:
        self.counts[promise.name] += 1
        for problem in problems:
            raise Broken(promise, *problem)

    def _read_times(self, commit: Commit, writes: Sequence[Write]) -> None:
        """The times by which the writes were made: one plan may be a second old."""
        for write in writes:
            if write.what == "log":
                commit.events += write.values[1:]
                commit.times |= {e.at for e in write.values[1:] if commit.is_now(e.at)}
            elif write.what == "decision":
                commit.decided_at = write.values[0].at
                if commit.is_now(commit.decided_at):
                    commit.times.add(write.values[0].at)

    def _decided(self, commit: Commit, decision: Decision, after: Sequence[Write]) -> None:
        with self._store.read() as reading:
            plan = self._again.plan(reading, decision)
        planned = reasons.Planned(self.model, decision, plan, _is_alone(after))
        self._check("plan", commit, planned)
        commit.picked.update(planned.picked)

    def _arrivals(self, commit: Commit, clocks: dict[str, tuple[int, bool]]) -> None:
        """A project that comes back is lifted to what the idle credit leaves it."""
        everyone = self.model.values.get("clock") or 0
        for name, (_, present) in clocks.items():
            row: Project | None = self.model.projects.get(name)
            if row is None or row.present or not present:
                continue
            self._shares.arrived(name)
            credit = commit.policy.share.idle_credit
            floor = everyone - facts.clock_time(credit, row.weight)
            lift = max(0, floor - (row.clock or 0)) if row.weight else 0
            commit.moved[name] = commit.moved.get(name, 0) + lift

    @staticmethod
    def _note_leased(commit: Commit, changes: Sequence[Any]) -> None:
        for before, after in changes:
            leased = after.task.status is Status.LEASED
            if before is not None and leased and before.task.status is not Status.LEASED:
                commit.leased_from[after.task.id] = before.task
                commit.waited[after.task.id] = before.wait

    def _attempts(self, commit: Commit, changes: Sequence[Any], last: int) -> None:
        """Attempts were written: new leases against every ceiling, as of this moment."""
        commit.attempts += changes
        for before, after in changes:
            moved = spending.clock_moved(commit, before, after)
            commit.moved[after.project] = commit.moved.get(after.project, 0) + moved
            self._shares.use(before, after)
            self._late(commit, before, after)
            self._check("attempt", commit, before, after, self._ground)
            if before is None:
                self._check("fence", commit, last, after)
                last = after.fence
        flying = self.model.flying()
        for before, after in changes:
            if before is None:
                self._leased(commit, after, flying)

    def _late(self, commit: Commit, before: Attempt | None, after: Attempt) -> None:
        was = before.outcome if before is not None else None
        may = self._may.get(after.task) == after.fence
        if may and (was, after.outcome) == ("lost", "succeeded"):
            commit.late.add(after.task)

    def _leased(self, commit: Commit, attempt: Attempt, flying: list[tuple[Attempt, Task]]) -> None:
        older = [pair for pair in flying if pair[0].fence < attempt.fence]
        scene = Scene(
            self.model, commit.policy, attempt.leased_at, older, attempt.worker,
            commit.party.agents,
        )  # fmt: skip
        task = self.model.task(attempt.task)
        self._check("lease", commit, scene, attempt, task)
        self._tell(_BATCH, _one_too_many(self._batch.exceeded(commit, attempt), task))
        self._done_before[attempt.lease] = [
            name for name in links_of(task) if self.model.status_of(name) is Status.DONE
        ]
        before = commit.leased_from.get(attempt.task)
        if before is None:
            text = "a lease was given out, and its task was not leased"
            raise Broken(statuses.in_flight_agrees, text, task.id)
        self._check("ready", commit, before, commit.waited[attempt.task], attempt)
        if not attempt.direct:
            self._check("turn", commit, scene, attempt, before)
        self._tell(_BOUND, self._shares.start(commit, scene, attempt))

    def _end(self, commit: Commit) -> None:
        """The commit is whole."""
        for before, after in commit.tasks:
            if before is not None:
                self._check("task", commit, before.task, after.task)
        for before_task, after_task, attempt in _ended(commit):
            self._check("ended", commit, before_task, after_task, attempt)
        self._check("commit", commit)
        if commit.decided_at is not None:
            self._check("decision", commit, commit.decided_at)
            self._check("planned", commit, self._stops, self._ground)
        self._remember(commit)

    def _remember(self, commit: Commit) -> None:
        for event in commit.events:
            if event.kind in _FORGETS and event.task is not None:
                self._may.pop(event.task, None)
        for before, after in commit.attempts:
            if after.outcome == "lost" and (before is None or before.outcome is None):
                self._may[after.task] = after.fence

    def _replay(self, context: Context, everything: bool) -> None:
        after = 0 if everything else self._last_replayed
        for planner in ("lanes", "reference") if everything else ("lanes",):
            answer = decisions.replay_after(context, after, planner)
            self.replayed += answer["replayed"]
            self._tell(
                _REPLAYS,
                [
                    Problem(f"decision {row['decision']} by {planner}: {row['differences'][0]}")
                    for row in answer["different"]
                ],
            )
        self._last_replayed = max(self.model.decisions, default=0)


def _is_alone(after: Sequence[Write]) -> bool:
    """Whether a decision was about some tasks only."""
    for write in after:
        if write.what == "decision":
            break
        if write.what == "value" and write.values[0] == "decision":
            value: Any = write.values[1]
            return bool(value and value.get("alone"))
    return False


def _one_too_many(exceeded: bool, task: Task) -> list[Problem]:
    return [Problem("one more started than the batch allows", task.id)] if exceeded else []


def _ended(commit: Commit) -> list[tuple[Task, Task, Attempt]]:
    """The ends of attempts, each with its task before and after it."""
    rows: dict[str, list[Attempt]] = {}
    for was, now in commit.attempts:
        if now.ended_at is not None and (was is None or was.ended_at is None):
            rows.setdefault(now.task, []).append(now)
    found = []
    for before, after in commit.tasks:
        if before is not None and before.task.status.in_flight and not after.task.status.in_flight:
            mine = rows.get(after.task.id)
            if not mine:
                text = f"it became {after.task.status}, and its attempt has not ended"
                raise Broken(statuses.in_flight_agrees, text, after.task.id)
            found.append((before.task, after.task, mine.pop(0)))
    return found
