"""The pull protocol: lease, heartbeat, report, complete, release, reclaim."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event as Signal
from time import monotonic
from typing import Any

from fairlane.model.errors import FairlaneError, NotFound, Refused
from fairlane.model.event import Happening
from fairlane.model.frozen import changed
from fairlane.model.instant import SECOND, Instant, Micros, show_instant
from fairlane.model.task import Outcome, Status, Task
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA, budgets
from fairlane.service.booking import Books
from fairlane.service.desk import Desk
from fairlane.service.ending import NOTHING, Report, end_attempt, may_still_succeed, succeed_late
from fairlane.service.journal import Journal
from fairlane.service.looking import Asker
from fairlane.service.rounds import Committed, commit_round
from fairlane.settings import host_name
from fairlane.store.base import Attempt, WorkerRow, Writing

#: How often a waiting `lease` looks again.
POLL_SECONDS = 0.2
_HAPPENING = {
    "succeeded": Happening.SUCCEEDED,
    "failed": Happening.FAILED,
    "launch_failed": Happening.LAUNCH_FAILED,
    "throttled": Happening.THROTTLED,
    "environment": Happening.ENVIRONMENT,
    "released": Happening.RELEASED,
    "canceled": Happening.STOPPED,
}
OUTCOMES = tuple(_HAPPENING)


def lease(
    desk: Desk,
    limit: int | None = None,
    worker: str | None = None,
    labels: Sequence[str] = (),
    wait: Micros = 0,
) -> dict[str, Any]:
    """Take all that may start now, at most `limit`; with `wait`, until there is something."""
    name = worker or desk.settings.worker.name
    give_up = monotonic() + wait / SECOND  # whatever the clock on the wall does
    while True:
        committed = _lease_once(desk, name, limit, labels)
        left = give_up - monotonic()
        if committed.started or left <= 0:
            break
        Signal().wait(min(POLL_SECONDS, left))
    leases = [_lease_document(task, attempt) for task, attempt in committed.started]
    return {"schema": SCHEMA, "leases": leases, "reason": str(committed.plan.reason)}


def heartbeat(desk: Desk, lease: str) -> dict[str, Any]:
    """Renew a lease; the first heartbeat makes the task running."""
    with desk.store.write() as tx:
        # A broken policy file costs nobody a lease: the last good one says how long it runs.
        held = _Held.one(desk, tx, lease, desk.policy_for_reading(tx))
        held.refuse_ended()
        attempt = held.renew()
        held.start(attempt)
        document = held.close()
    stop = bool(held.task.stop_requested)
    return document | {"expires_at": show_instant(attempt.expires_at), "stop": stop}


def report(
    desk: Desk,
    lease: str,
    told: Report = NOTHING,
    note: str = "",
    session: str | None = None,
) -> dict[str, Any]:
    """A running attempt tells its tokens, its cost, a note; usage is booked, however late."""
    with desk.store.write() as tx:
        held = _Held.one(desk, tx, lease)
        attempt = held.book(told, ended=held.attempt.ended_at is not None)
        error = held.ended_error()
        if error is None:
            attempt = changed(
                attempt, note=note or attempt.note, session=session or attempt.session
            )
            held.start(attempt)
            if note:
                held.journal.note("progress", held.task, note=note)
        document = held.close()
    if error is not None:
        raise error
    return document | {"stop": bool(held.task.stop_requested)}


def complete(desk: Desk, leases: Sequence[str], told: Report = NOTHING) -> dict[str, Any]:
    """The work is done. One lease gives its own document, several a list of them."""
    done = []
    for answer in complete_each(desk, [(lease, told) for lease in dict.fromkeys(leases)]):
        if isinstance(answer, FairlaneError):
            raise answer
        done.append(answer)
    return (
        {"schema": SCHEMA, **done[0]} if len(leases) == 1 else {"schema": SCHEMA, "completed": done}
    )


def complete_each(
    desk: Desk, told: Sequence[tuple[str, Report]]
) -> list[dict[str, Any] | FairlaneError]:
    """Several results in one transaction; each has its own answer, or its own error."""
    answers: dict[int, dict[str, Any] | FairlaneError] = {}
    again: list[int] = []  # a second result of one task is taken in when the first is written
    with desk.store.write() as tx:
        many: dict[str, tuple[int, Attempt]] = {}
        for at, (lease, _) in enumerate(told):
            attempt = tx.attempt(lease)
            if attempt is None:
                answers[at] = _unknown(lease)
            elif attempt.task in many:
                again.append(at)
            else:
                many[attempt.task] = at, attempt
        tasks, held = tx.tasks(many), None
        for at, attempt in many.values():
            held = _Held(desk, tx, attempt, tasks[attempt.task], held)
            document, problem = _complete(held, told[at][1])
            answers[at] = problem or document | {"status": str(held.task.status)}
        if held is not None:
            held.write()
    rest = complete_each(desk, [told[at] for at in again]) if again else []
    answers |= dict(zip(again, rest, strict=True))
    return [answers[at] for at in range(len(told))]


def release(
    desk: Desk, lease: str, outcome: str = "released", told: Report = NOTHING
) -> dict[str, Any]:
    """The holder gives it back: untouched, failed, throttled, or as the outcome says."""
    if outcome == Outcome.SUCCEEDED:
        return complete(desk, [lease], told)
    if outcome not in _HAPPENING:
        known = ", ".join(OUTCOMES)
        raise Refused(f"no outcome {outcome!r}", f"Known: {known}.", code="unknown_outcome")
    with desk.store.write() as tx:
        held = _Held.one(desk, tx, lease)
        error = held.ended_error()
        if error is None:
            held.end(_HAPPENING[outcome], told)
        else:
            held.book(told, ended=True)
        document = held.close()
    if error is not None:
        raise error
    return document


def reclaim(desk: Desk) -> dict[str, Any]:
    """End every lease that has expired and whose process is not proved alive."""
    from fairlane.lifecycle.reclaim import expired
    from fairlane.service.alive import revoke_expired
    from fairlane.service.looking import look

    with desk.store.write() as tx:
        policy, now = desk.policy(), desk.now()  # as of the turn, not of the wait for it
        attempts = {attempt.task: attempt for attempt in tx.open_attempts()}
        revoke_expired(desk.home, attempts.values(), now)
        seen = look(desk, tx, policy, now, attempts).in_flight
        lost = [each.task for each in seen if expired(each, now)]
        journal, books = Journal(tx, policy, now, desk.actor), Books(tx, policy, now)
        tasks = [
            end_attempt(journal, books, task, attempts[task.id], Happening.LOST)
            for task in tx.tasks(lost).values()
        ]
        budgets.close(journal, books)
    parked = [task.id for task in tasks if task.status is Status.PARKED]
    return {"schema": SCHEMA, "reclaimed": [task.id for task in tasks], "parked": parked}


class _Held:
    """One lease in a transaction, with what is written about it."""

    def __init__(
        self,
        desk: Desk,
        tx: Writing,
        attempt: Attempt,
        task: Task,
        beside: _Held | None,
        policy: Policy | None = None,
    ) -> None:
        self.tx = tx
        self.policy: Policy = policy or (beside.policy if beside else desk.policy())
        self.now: Instant = beside.now if beside else desk.now()
        self.journal: Journal = (
            beside.journal if beside else Journal(tx, self.policy, self.now, desk.actor)
        )
        self.books: Books = beside.books if beside else Books(tx, self.policy, self.now)
        self.attempt, self.task = attempt, task

    @classmethod
    def one(cls, desk: Desk, tx: Writing, lease: str, policy: Policy | None = None) -> _Held:
        """One lease."""
        attempt = _known(tx, lease)
        return cls(desk, tx, attempt, tx.tasks([attempt.task])[attempt.task], None, policy)

    def ended_error(self) -> FairlaneError | None:
        """What a holder is told whose lease has ended."""
        attempt = self.attempt
        if attempt.ended_at is None:
            return None
        if attempt.outcome == Outcome.LOST:
            message = f"lease {attempt.lease} of {attempt.task} expired and was reclaimed"
            hint = "Only a success is still taken, until a new lease, a retry or a cancel."
            return Refused(message, hint, code="lease_lost")
        message = f"lease {attempt.lease} of {attempt.task} has ended ({attempt.outcome})"
        return Refused(message, "A lease ends once; take a new one.", code="lease_ended")

    def refuse_ended(self) -> None:
        """Only a lease that has not ended goes on."""
        error = self.ended_error()
        if error is not None:
            raise error

    def renew(self) -> Attempt:
        """The lease runs on from now."""
        return changed(self.attempt, expires_at=self.now + self.policy.lease.ttl)

    def start(self, attempt: Attempt) -> None:
        """The first sign of life makes the task running."""
        if self.task.status is Status.LEASED:
            attempt = changed(attempt, started_at=max(self.now, attempt.leased_at))
            self.task = self.journal.happen(self.task, Happening.STARTED).task
        self.attempt = attempt
        self.books.keep(attempt)

    def book(self, told: Report, ended: bool) -> Attempt:
        """Usage goes to its attempt, however late."""
        return self.books.use(self.attempt, self.task, told.tokens, told.usd, ended=ended)

    def end(self, happening: Happening, told: Report) -> None:
        """The attempt is over."""
        self.task = end_attempt(self.journal, self.books, self.task, self.attempt, happening, told)

    def write(self) -> None:
        """Everything that was collected, into the transaction."""
        stopped = budgets.close(self.journal, self.books)
        self.task = stopped.get(self.task.id, self.task)

    def close(self) -> dict[str, Any]:
        """Write, and answer."""
        self.write()
        return {"schema": SCHEMA, **self.document()}

    def document(self) -> dict[str, Any]:
        """As every interface shows it."""
        lease, task = self.attempt.lease, self.task
        return {"lease": lease, "task": task.id, "status": str(task.status)}


def _known(tx: Writing, lease: str) -> Attempt:
    attempt = tx.attempt(lease)
    if attempt is None:
        raise _unknown(lease)
    return attempt


def _unknown(lease: str) -> NotFound:
    hint = "It was never given out, or its task was compacted."
    return NotFound(f"no lease {lease!r}", hint, code="unknown_lease")


def _complete(held: _Held, told: Report) -> tuple[dict[str, Any], FairlaneError | None]:
    error = held.ended_error()
    if error is None:
        held.end(Happening.SUCCEEDED, told)
        return held.document(), None
    if held.attempt.outcome == Outcome.SUCCEEDED:
        held.book(told, ended=True)
        return held.document() | {"code": "already_done"}, None
    if not may_still_succeed(held.task, held.attempt):
        held.book(told, ended=True)
        return held.document(), error
    held.task = succeed_late(held.journal, held.books, held.task, held.attempt, told)
    return held.document() | {"late": True}, None


def _lease_once(desk: Desk, worker: str, limit: int | None, labels: Sequence[str]) -> Committed:
    with desk.store.write() as tx:
        policy, now = desk.policy(), desk.now()  # as of the turn, not of the wait for it
        _register(tx, worker, labels, now)
        return commit_round(desk, tx, policy, now, Asker(worker, limit))


def _register(tx: Writing, worker: str, labels: Sequence[str], now: Instant) -> None:
    """A worker is known from its first `lease` on; each one says that it lives."""
    known = {row.name: row for row in tx.workers()}
    row = known.get(worker) or WorkerRow(worker, host_name())
    wanted = tuple(sorted(set(labels))) or row.labels
    tx.put_worker(changed(row, labels=wanted, seen_at=now))


def _lease_document(task: Task, attempt: Attempt) -> dict[str, Any]:
    return {
        "lease": attempt.lease,
        "task": task.id,
        "fence": attempt.fence,
        "attempt": attempt.number,
        "expires_at": show_instant(attempt.expires_at),
        "worker": attempt.worker,
        "project": task.project,
        "kind": task.kind,
        "agent": task.agent,
        "title": task.title,
        "prompt": task.prompt,
        "command": list(task.command),
        "workspace": attempt.workspace,
        "vars": dict(task.vars),
        "estimate_tokens": attempt.estimate,
    }
