"""Metrics: how things stand, and what has happened since this server began to count.

What stands is read when it is asked for, out of lanes and tallies. What has ended is taken from
the event log as it comes, so that no counter goes back, whatever is compacted or edited.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlane.app.shared_queue import SharedQueue
from fairlane.engine.context import Context
from fairlane.http.messages import Answer
from fairlane.http.routes import Call
from fairlane.http.streams import Streams
from fairlane.model.documents.reports import StatusAnswer
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import SECOND, Instant, parse_instant
from fairlane.model.project import Tokens
from fairlane.model.task import Attempt, Outcome, Status, Task
from fairlane.service.reports import status
from fairlane.store.base import Reading

#: Upper bounds of waits and durations, in seconds: from a blink to a day.
SECONDS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)
#: Most series of one family; the rest is summed up under `other`.
SERIES_MAX = 1_000
Labels = tuple[tuple[str, str], ...]
Rows = Iterable[tuple[Mapping[str, str], float]]


class Sums:
    """A counter that only grows, by labels."""

    def __init__(self) -> None:
        self.values: dict[Labels, float] = {}

    def add(self, labels: Mapping[str, str], amount: float = 1) -> None:
        """So much more."""
        key = series(labels, self.values)
        self.values[key] = self.values.get(key, 0) + amount


class Histogram:
    """How often what lasted how long, by labels."""

    def __init__(self) -> None:
        self.counts: dict[Labels, list[int]] = {}
        self.totals: dict[Labels, float] = {}

    def add(self, labels: Mapping[str, str], seconds: float) -> None:
        """One more that lasted so long."""
        key = series(labels, self.counts)
        counts = self.counts.setdefault(key, [0] * (len(SECONDS) + 1))
        counts[bisect_left(SECONDS, seconds)] += 1
        self.totals[key] = self.totals.get(key, 0.0) + seconds


class Page:
    """A page of families."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def gauge(self, name: str, about: str, value: float | Rows) -> None:
        """A gauge: one value, or one for each series."""
        self._family(
            name, "gauge", about, [({}, value)] if isinstance(value, int | float) else value
        )

    def sums(self, name: str, about: str, counted: Sums) -> None:
        """A counter."""
        self._family(name, "counter", about, ((dict(key), n) for key, n in counted.values.items()))

    def histogram(self, name: str, about: str, counted: Histogram) -> None:
        """A histogram; its buckets add up."""
        self._head(name, "histogram", about)
        for key, counts in counted.counts.items():
            labels, sofar = dict(key), 0
            for bound, count in zip((*SECONDS, "+Inf"), counts, strict=True):
                sofar += count
                self._lines.append(f"{name}_bucket{_shown(labels | {'le': str(bound)})} {sofar}")
            self._lines.append(f"{name}_sum{_shown(labels)} {_number(counted.totals[key])}")
            self._lines.append(f"{name}_count{_shown(labels)} {sofar}")

    def text(self) -> str:
        """The page."""
        return "\n".join(self._lines) + "\n"

    def _family(self, name: str, kind: str, about: str, rows: Rows) -> None:
        self._head(name, kind, about)
        self._lines += [f"{name}{_shown(labels)} {_number(value)}" for labels, value in rows]

    def _head(self, name: str, kind: str, about: str) -> None:
        self._lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def series(labels: Mapping[str, str], known: Mapping[Labels, object]) -> Labels:
    """The labels as a key; where there are too many, every new one is `other`."""
    key = tuple(labels.items())
    if key in known or len(known) < SERIES_MAX:
        return key
    return tuple((name, "other") for name in labels)


def _shown(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return repr(value) if isinstance(value, float) and not value.is_integer() else str(int(value))


#: How often ended attempts are counted without a request.
FEED_SECONDS = 60.0
#: Events of one read.
PAGE = 1000
_ENDINGS = frozenset(map(str, Outcome)) | {"stopped", "late_success"}
_TYPE = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]
METHODS = ("GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "PUT")


class Metrics:
    """Counts requests and ends of attempts, and tells everything when asked."""

    def __init__(self, queue: SharedQueue, streams: Streams, now: Callable[[], Instant]) -> None:
        self._queue, self._streams, self._now = queue, streams, now
        self._answered, self._ended = Sums(), Sums()
        self._tokens, self._dollars = Sums(), Sums()
        self._waits, self._durations = Histogram(), Histogram()
        self._counted = 0  # the number of the last event that was counted
        self._one = asyncio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Count from here on."""
        self._counted = self._queue.events.newest
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
                    method = scope["method"] if scope["method"] in METHODS else "other"
                    labels = {"method": method, "route": scope.get("fairlane.route", "other")}
                    self._answered.add(labels | {"status": str(message["status"])})
                await send(message)

            await app(scope, receive, counting_send)

        return counted

    async def answer(self, call: Call) -> Answer:
        """Everything."""
        await self._feed()
        page = await self._queue.read(self._standing)
        page.sums("fairlane_attempts_ended_total", "Attempts by how they ended.", self._ended)
        page.histogram("fairlane_wait_seconds", "From ready to leased.", self._waits)
        page.histogram("fairlane_duration_seconds", "From leased to ended.", self._durations)
        page.sums("fairlane_tokens_total", "Tokens of ended attempts.", self._tokens)
        page.sums("fairlane_cost_dollars_total", "Dollars of ended attempts.", self._dollars)
        page.sums("fairlane_http_requests_total", "Requests answered.", self._answered)
        page.gauge("fairlane_event_streams", "Open event streams.", self._streams.count)
        return Answer(200, page.text().encode(), _TYPE)

    # Counters

    async def _feed_always(self) -> None:
        while True:
            await asyncio.sleep(FEED_SECONDS)
            if self._queue.events.newest != self._counted:
                with suppress(FairlaneError):  # busy: the next look finds it
                    await self._feed()

    async def _feed(self) -> None:
        """Every end since the last look, once."""
        async with self._one:
            while True:
                after = self._counted
                last, ended = await self._queue.read(partial(_ends, after=after))
                for attempt, task, how in ended:
                    self._count(attempt, task, how)
                self._counted = last
                if last == after:
                    return

    def _count(self, attempt: Attempt, task: Task, how: str) -> None:
        where = {"project": attempt.project, "kind": attempt.kind, "agent": attempt.agent or ""}
        self._ended.add({**where, "outcome": how})
        if how == "late_success":  # what it used was counted when it was lost
            return
        for counter, amount in zip(Tokens._fields, Tokens(*attempt.tokens), strict=True):
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

    # Gauges

    def _standing(self, context: Context) -> Page:
        page, now = Page(), self._now()
        now_status = status.status(context)
        with context.store.read() as reading:
            page.gauge("fairlane_tasks", "Tasks by status.", _by_status(reading))
            lag, about = _lag(reading, now), "Age of the oldest ready task of a project."
            page.gauge("fairlane_lag_seconds", about, lag)
            seconds = reading.value("cycle_seconds")
            leases = len(reading.open_attempts())
        _tell_status(page, now_status, now)
        page.gauge("fairlane_leases", "Leases that have not ended.", leases)
        if seconds is not None:
            about = "What the last cycle of the daemon that started something took."
            page.gauge("fairlane_cycle_seconds", about, seconds)
        return page


def _ends(context: Context, after: int) -> tuple[int, list[tuple[Attempt, Task, str]]]:
    """The next events' last number, and the attempts that ended in them."""
    ended: list[tuple[Attempt, Task, str]] = []
    with context.store.read() as reading:
        events = reading.events(after, PAGE)
        ends = [row for row in events if row.kind in _ENDINGS and row.task is not None]
        tasks = reading.tasks({str(row.task) for row in ends})
        for event in ends:
            number, task = event.data.get("attempt"), tasks.get(str(event.task))
            if task is not None:
                tried = reading.attempts(task.id)
                ended += [(row, task, event.kind) for row in tried if row.number == number]
    return (events[-1].number if events else after), ended


def _tell_status(page: Page, answer: StatusAnswer, now: Instant) -> None:
    queued = [({"queue": row}, answer["queued"][row]) for row in ("ready", "waiting", "held")]
    holds = [({"hold": code}, count) for code, count in answer["by_hold"].items()]
    pools = [({"pool": row["name"]}, _left(row["until"], now)) for row in answer["pools"]]
    room = answer["capacity"]
    page.gauge("fairlane_queued", "Queued tasks; held is part of ready.", queued)
    page.gauge("fairlane_held", "Queued tasks by what holds them.", holds)
    page.gauge("fairlane_in_flight", "Tasks in flight.", room["in_flight"])
    page.gauge("fairlane_cooldown_seconds", "How long a pool still cools down.", pools)
    page.gauge("fairlane_pauses", "Scopes that are paused.", len(answer["paused"]))
    if room["cap"] is not None:
        page.gauge("fairlane_cap", "Most tasks in flight.", room["cap"])
    budgets = [
        ({"scope": row["scope"], "window": row["window"], "unit": row["unit"]}, row["fraction"])
        for row in answer["budgets"]
    ]
    page.gauge("fairlane_budget_ratio", "Used and reserved, of the limit.", budgets)


def _by_status(reading: Reading) -> Rows:
    counts: Counter[tuple[str, Status]] = Counter()
    for tally in reading.tallies():
        counts[tally.project, tally.status] += tally.count
    for project in sorted({project for project, _ in counts}):
        for name in Status:
            yield {"status": str(name), "project": project}, counts[project, name]


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
