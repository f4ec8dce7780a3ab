"""Metrics: how things stand, and what has happened since this server began to count.

What stands is read when it is asked for, out of lanes and tallies. What has ended is taken from
the event log as it comes, so that no counter goes back, whatever is compacted or edited.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlane.app.office import Office
from fairlane.http.answers import Answer
from fairlane.http.prometheus import Histogram, Page, Sums
from fairlane.http.streams import Streams
from fairlane.lifecycle.usage import Tokens
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import SECOND, Instant, parse_instant
from fairlane.model.task import Outcome, Status, Task
from fairlane.service.desk import Desk
from fairlane.service.reports import status
from fairlane.service.reports.documents import COUNTERS
from fairlane.store.base import Attempt, Reading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

#: How often what has ended is counted, though nobody asks.
FEED_SECONDS = 60.0
#: Events of one read.
PAGE = 1000
_ENDINGS = frozenset(str(each) for each in Outcome) | {"stopped", "late_success"}
_TYPE = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]
Rows = Iterator[tuple[dict[str, str], float]]


class Metrics:
    """Counts requests and ends of attempts, and tells everything when asked."""

    def __init__(self, office: Office, streams: Streams, now: Callable[[], Instant]) -> None:
        self._office, self._streams, self._now = office, streams, now
        self._answered: Counter[tuple[str, str, int]] = Counter()  # by method, route, status
        self._ended = Sums()
        self._tokens, self._dollars = Sums(), Sums()
        self._waits, self._durations = Histogram(), Histogram()
        self._counted = 0  # the number of the last event that was looked at
        self._one = asyncio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Count from here on."""
        self._counted = self._office.newest
        feeding = asyncio.ensure_future(self._feed_always())
        try:
            yield
        finally:
            feeding.cancel()
            with suppress(asyncio.CancelledError):
                await feeding

    def counting(self, app: ASGIApp) -> ASGIApp:
        """The application, its requests counted by route and status."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return

            async def counting_send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    route = scope.get("fairlane.route", "other")
                    self._answered[_method(scope), route, message["status"]] += 1
                await send(message)

            await app(scope, receive, counting_send)

        return counted

    async def answer(self, scope: Scope) -> Answer:
        """Everything."""
        await self._feed()
        page = await self._office.read(self._standing)
        page.sums("fairlane_attempts_ended_total", "Attempts by how they ended.", self._ended)
        page.histogram("fairlane_wait_seconds", "From ready to leased.", self._waits)
        page.histogram("fairlane_duration_seconds", "From leased to ended.", self._durations)
        page.sums("fairlane_tokens_total", "Tokens of ended attempts.", self._tokens)
        page.sums("fairlane_cost_dollars_total", "Dollars of ended attempts.", self._dollars)
        rows = [
            ({"method": method, "route": route, "status": str(status)}, float(count))
            for (method, route, status), count in self._answered.items()
        ]
        page.family("fairlane_http_requests_total", "counter", "Requests answered.", rows)
        streams = _alone(self._streams.count)
        page.family("fairlane_event_streams", "gauge", "Open event streams.", streams)
        return Answer(200, page.text().encode(), _TYPE)

    # What has ended

    async def _feed_always(self) -> None:
        while True:
            await asyncio.sleep(FEED_SECONDS)
            if self._office.newest != self._counted:
                with suppress(FairlaneError):  # busy: the next look finds it
                    await self._feed()

    async def _feed(self) -> None:
        """Every end since the last look, once."""
        async with self._one:
            while True:
                after = self._counted
                last, ended = await self._office.read(partial(_ends, after=after))
                for attempt, task, how in ended:
                    self._count(attempt, task, how)
                self._counted = last
                if last == after:
                    return

    def _count(self, attempt: Attempt, task: Task, how: str) -> None:
        where = {
            "project": attempt.project,
            "kind": attempt.kind,
            "agent": attempt.agent or "",
        }
        self._ended.add({**where, "outcome": how})
        if how == "late_success":  # what it used was counted when it was lost
            return
        for counter, amount in zip(COUNTERS, Tokens(*attempt.tokens), strict=True):
            if amount:
                self._tokens.add({**where, "counter": counter}, amount)
        if attempt.usd:
            self._dollars.add(where, attempt.usd / 1_000_000)
        own = {"project": attempt.project}
        if attempt.ended_at is not None:
            lasted = max(0, attempt.ended_at - attempt.leased_at)
            self._durations.add(own, lasted / SECOND)
        if task.ready_since is not None and attempt.number == task.attempts and not task.failures:
            self._waits.add(own, max(0, attempt.leased_at - task.ready_since) / SECOND)

    # What stands

    def _standing(self, desk: Desk) -> Page:
        page, now = Page(), self._now()
        told = status.status(desk)
        with desk.store.read() as reading:
            page.family("fairlane_tasks", "gauge", "Tasks by status.", _by_status(reading))
            lag = _lag(reading, now)
            page.family(
                "fairlane_lag_seconds", "gauge", "Age of the oldest ready task of a project.", lag
            )
            seconds = reading.value("cycle_seconds")
            leases = _alone(len(reading.open_attempts()))
        _tell_status(page, told, now)
        page.family("fairlane_leases", "gauge", "Leases that have not ended.", leases)
        if seconds is not None:
            about = "What the last cycle of the daemon that started something took."
            page.family("fairlane_cycle_seconds", "gauge", about, _alone(seconds))
        return page


def _ends(desk: Desk, after: int) -> tuple[int, list[tuple[Attempt, Task, str]]]:
    """The next events' last number, and the attempts that ended in them."""
    found: list[tuple[Attempt, Task, str]] = []
    with desk.store.read() as reading:
        events = reading.events(after, PAGE)
        ends = [each for each in events if each.kind in _ENDINGS and each.task is not None]
        tasks = reading.tasks({str(each.task) for each in ends})
        for event in ends:
            number, task = event.data.get("attempt"), tasks.get(str(event.task))
            if task is not None:
                tried = reading.attempts(task.id)
                found += [(each, task, event.kind) for each in tried if each.number == number]
    return (events[-1].number if events else after), found


def _tell_status(page: Page, told: dict[str, Any], now: Instant) -> None:
    queued = [({"queue": each}, told["queued"][each]) for each in ("ready", "waiting", "held")]
    held = [({"hold": code}, count) for code, count in told["by_hold"].items()]
    flying = _alone(told["capacity"]["in_flight"])
    pools = [({"pool": each["name"]}, _left(each["until"], now)) for each in told["pools"]]
    pauses = _alone(len(told["paused"]))
    page.family("fairlane_queued", "gauge", "Queued tasks; held is part of ready.", queued)
    page.family("fairlane_held", "gauge", "Queued tasks by what holds them.", held)
    page.family("fairlane_in_flight", "gauge", "Tasks in flight.", flying)
    page.family("fairlane_cooldown_seconds", "gauge", "How long a pool still cools down.", pools)
    page.family("fairlane_pauses", "gauge", "Scopes that are paused.", pauses)
    cap = told["capacity"]["cap"]
    if cap is not None:
        page.family("fairlane_cap", "gauge", "Most tasks in flight.", _alone(cap))
    budgets = [
        ({"scope": each["scope"], "window": each["window"], "unit": each["unit"]}, each["fraction"])
        for each in told["budgets"]
    ]
    page.family("fairlane_budget_ratio", "gauge", "Used and reserved, of the limit.", budgets)


def _by_status(reading: Reading) -> Rows:
    counts: dict[tuple[str, str], int] = {}
    for each in reading.tallies():
        key = str(each.status), each.project
        counts[key] = counts.get(key, 0) + each.count
    projects = sorted({project for _, project in counts})
    for project in projects:
        for name in Status:
            yield {"status": str(name), "project": project}, counts.get((str(name), project), 0)


def _lag(reading: Reading, now: Instant) -> Rows:
    oldest: dict[str, Instant] = {}
    for lane in reading.lanes("ready", 1):
        if lane.by_ready:
            since = lane.by_ready[0].ready_since
            oldest[lane.key.project] = min(since, oldest.get(lane.key.project, since))
    for project, since in sorted(oldest.items()):
        yield {"project": project}, max(0, now - since) / SECOND


def _left(until: str | None, now: Instant) -> float:
    return 0.0 if until is None else max(0, parse_instant(until) - now) / SECOND


def _alone(value: float) -> list[tuple[dict[str, str], float]]:
    """A family of one series."""
    return [({}, value)]


def _method(scope: Scope) -> str:
    known = ("GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "PUT")
    return scope["method"] if scope["method"] in known else "other"
