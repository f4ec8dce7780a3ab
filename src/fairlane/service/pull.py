"""The pull protocol as operations: lease, heartbeat, report, complete, release, reclaim."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from fairlane.engine import attempts
from fairlane.engine.attempts import Finished, Progress
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import NOTHING, Ending, Report, unknown_lease
from fairlane.engine.lease_document import public
from fairlane.engine.look.workers import Asker
from fairlane.engine.turn import Renewed
from fairlane.lifecycle.step import HAPPENINGS
from fairlane.model.amounts import DOLLARS_MAX, TOKENS_MAX
from fairlane.model.errors import FairlaneError, Invalid, Refused, did_you_mean
from fairlane.model.instant import SECOND, show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.plan import Reason
from fairlane.model.project import Tokens
from fairlane.model.task import Outcome, Status, Task
from fairlane.model.values import out_of_range

if TYPE_CHECKING:
    from fairlane.model.documents.tasks import HeldAnswer, LeasesAnswer, ReclaimedAnswer
    from fairlane.model.instant import Instant, Micros

#: Totals of an attempt so far, by counter; a bare number is output.
Usage: TypeAlias = Mapping[str, int] | int | None
COUNTERS = Tokens._fields
#: How often a waiting `lease` looks for what no write and no timer tells: files, another policy.
POLL_SECONDS = 1.0
#: How long it rests after a change: a round notes its worker, so waiting workers wake each other.
GATHER_SECONDS = 0.02
#: How a holder can end its attempt.
_ENDS = {
    str(name): happening
    for name, happening in HAPPENINGS.items()
    if name not in (Outcome.LOST, Outcome.CHECK_FAILED)
}


def lease(
    context: Context,
    limit: int | None = None,
    worker: str | None = None,
    labels: Sequence[str] = (),
    wait: Micros | None = None,
) -> LeasesAnswer:
    """Take what may start now, at most `limit`; each is yours until it expires."""
    asker = Asker(worker or context.settings.worker.name, limit)
    give_up = context.clock.monotonic() + (wait or 0) / SECOND
    while True:
        stamp = context.store.stamp() if wait else 0  # a write during the round ends the wait
        leased = attempts.lease(context, asker, labels=labels)
        left = give_up - context.clock.monotonic()
        if leased.documents or left <= 0:
            break
        rest = min(POLL_SECONDS, left)
        if leased.decided.plan.wake_at is not None:
            due_in = (leased.decided.plan.wake_at - context.now()) / SECOND
            rest = min(rest, max(GATHER_SECONDS, due_in))
        if context.store.wait_for_change(stamp, rest, clock=context.clock) != stamp:
            context.clock.wait(min(GATHER_SECONDS, left))
    documents = [public(document) for document in leased.documents]
    return {"schema": SCHEMA, "leases": documents, "reason": str(leased.decided.plan.reason)}


def heartbeat(context: Context, lease: str) -> HeldAnswer:
    """Keep a lease."""
    renewed = attempts.renew(context, [lease])
    answer = _held(lease, renewed)
    answer["expires_at"] = show_instant(renewed.expires_at)
    return answer


def report(
    context: Context,
    lease: str,
    *,
    tokens: Usage = None,
    cost: float | None = None,
    note: str = "",
    session: str | None = None,
) -> HeldAnswer:
    """Tell progress, tokens and cost of what runs: totals so far."""
    used = report_of(tokens, cost)
    context.policy()  # a broken policy file refuses
    news = Progress(used.tokens, used.usd, session, note)
    return _held(lease, attempts.progress(context, {lease: news}, announce=True))


def complete(
    context: Context,
    lease: str,
    *,
    tokens: Usage = None,
    cost: float | None = None,
    result: dict[str, object] | None = None,
    checks: Sequence[Mapping[str, object]] = (),
) -> HeldAnswer:
    """The work is done, and its checks have passed.

    A holder that runs the work itself sends what came of its checks. What the attempt of a daemon
    says is a claim: its checks run when it has ended.
    """
    report = report_of(tokens, cost, result=result, checks=checks)
    return finish(context, lease, "succeeded", report)


def release(
    context: Context,
    lease: str,
    *,
    outcome: str = "released",
    failed: bool = False,
    reason: str = "",
    tokens: Usage = None,
    cost: float | None = None,
    retry_after: Micros | None = None,
    resets_at: Instant | None = None,
) -> HeldAnswer:
    """Give it back: untouched, failed, throttled."""
    if failed:
        if outcome not in ("released", "failed"):
            raise Invalid(f"failed and outcome {outcome!r} contradict each other", "Give one.")
        outcome = "failed"
    report = report_of(tokens, cost, reason, None, retry_after, resets_at)
    return finish(context, lease, outcome, report)


def finish(
    context: Context, lease: str, outcome: str = "succeeded", report: Report = NOTHING
) -> HeldAnswer:
    """End an attempt with this outcome."""
    answer = finish_each(context, [(lease, report)], outcome)[0]
    if isinstance(answer, FairlaneError):
        raise answer
    return answer


def finish_each(
    context: Context, results: Sequence[tuple[str, Report]], outcome: str = "succeeded"
) -> list[HeldAnswer | FairlaneError]:
    """Several ends in one transaction; each has its own answer, or its own error."""
    if outcome not in _ENDS:
        known = ", ".join(_ENDS)
        raise Refused(f"no outcome {outcome!r}", f"Known: {known}.", code="unknown_outcome")
    context.policy()  # a broken policy file refuses
    endings: dict[str, Ending] = {}
    again: list[tuple[int, Report]] = []  # a lease may be named more than once
    for place, (lease, report) in enumerate(results):
        if lease in endings:
            again.append((place, report))
        else:
            endings[lease] = Ending(_ENDS[outcome], report, claim=True)
    finished = attempts.finish(context, endings, strict=True)
    answers = [_answer(lease, finished.get(lease)) for lease, _ in results]
    for place, report in again:
        answers[place] = finish_each(context, [(results[place][0], report)], outcome)[0]
    return answers


def _answer(lease: str, finished: Finished | None) -> HeldAnswer | FairlaneError:
    if finished is None:
        return unknown_lease(lease)
    if finished.refused is not None:
        return finished.refused
    answer = _document(lease, finished.task)
    if finished.repeated:
        answer["code"] = "already_done"
    elif finished.claimed:
        answer["code"] = "checks_pending"
    elif finished.late:
        answer["late"] = True
    return answer


def _held(lease: str, renewed: Renewed) -> HeldAnswer:
    """The answer to a holder; one whose lease has ended is refused."""
    if lease in renewed.lost:
        raise renewed.lost[lease]
    answer = _document(lease, renewed.tasks[lease])
    answer["stop"] = lease in renewed.stop
    return answer


def _document(lease: str, task: Task) -> HeldAnswer:
    return {"schema": SCHEMA, "lease": lease, "task": task.id, "status": str(task.status)}


def reclaim(context: Context) -> ReclaimedAnswer:
    """End the leases that have run out."""
    context.policy()  # a broken policy file refuses
    tasks = attempts.reclaim(context)
    parked = [task.id for task in tasks if task.status is Status.PARKED]
    return {"schema": SCHEMA, "reclaimed": [task.id for task in tasks], "parked": parked}


def report_of(
    tokens: Usage,
    cost: float | None,
    detail: str = "",
    result: dict[str, object] | None = None,
    retry_after: Micros | None = None,
    resets_at: Instant | None = None,
    checks: Sequence[Mapping[str, object]] = (),
) -> Report:
    """What a holder reports; a bare number of tokens is output."""
    counts = {"output": tokens} if isinstance(tokens, int) else tokens
    for name in counts or {}:
        if name not in COUNTERS:
            raise Invalid(f"there is no counter {name!r}", did_you_mean(name, COUNTERS))
    counters = None
    if counts is not None:
        first, second, third, fourth = (
            int(_within(f"tokens.{name}", counts.get(name, 0), TOKENS_MAX)) for name in COUNTERS
        )
        counters = (first, second, third, fourth)
    usd = None if cost is None else round(_within("cost", cost, DOLLARS_MAX) * 1_000_000)
    return Report(counters, usd, detail, result, retry_after, resets_at, tuple(checks))


def _within(name: str, value: float, most: int) -> float:
    """A number that one attempt can have used, or it is refused."""
    if not 0 <= value <= most:
        raise out_of_range(value, 0, most).within(name)
    return value


def batch_key(name: str, arguments: Mapping[str, object]) -> Hashable | None:
    """Calls with the same key are answered as one batch; None: the call has its own turn."""
    if name == "lease" and arguments.get("limit"):
        labels = arguments.get("labels", ())
        return name, arguments.get("worker"), tuple(labels) if isinstance(labels, Sequence) else ()
    return name if name == "complete" else None


def answer_batch(
    context: Context, name: str, calls: Sequence[Mapping[str, Any]]
) -> list[dict[str, object] | FairlaneError]:
    """The answers of calls with one key, or the error of each that was refused."""
    answers: Sequence[LeasesAnswer | HeldAnswer | FairlaneError]
    if name == "lease":
        first, limits = calls[0], [call["limit"] for call in calls]
        answers = lease_batch(context, limits, first.get("worker"), first.get("labels", ()))
    else:
        answers = finish_each(context, [(call["lease"], _result(call)) for call in calls])
    return cast("list[dict[str, object] | FairlaneError]", answers)


def _result(call: Mapping[str, Any]) -> Report:
    used = (call.get("tokens"), call.get("cost"))
    return report_of(*used, result=call.get("result"), checks=call.get("checks", ()))


def lease_batch(
    context: Context, limits: Sequence[int], worker: str | None, labels: Sequence[str]
) -> list[LeasesAnswer]:
    """What one worker would get that asked several times in a row, each time for at least one."""
    answer = lease(context, sum(limits), worker, labels)
    rest, reason = answer["leases"], Reason(answer["reason"])
    answers: list[LeasesAnswer] = []
    for limit in limits:
        mine, rest = rest[:limit], rest[limit:]
        ended = _reason(reason, len(mine), limit, bool(rest))
        answers.append({"schema": SCHEMA, "leases": mine, "reason": str(ended)})
    return answers


def _reason(last: Reason, got: int, limit: int, more: bool) -> Reason:
    """What ended one of several rounds, from what ended the one that was made for all."""
    if last is Reason.PAUSED:
        return last
    if not got:
        return Reason.NONE if last is Reason.READY else last
    if got < limit:
        return last
    return Reason.CAPACITY if more or last is not Reason.READY else Reason.READY
