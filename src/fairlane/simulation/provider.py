"""Providers: quotas of requests and tokens, and outages; beyond them every request gets a 429."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairlane.model.instant import MINUTE, SECOND, Instant, Micros
from fairlane.model.record import changed, dataclass
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from fairlane.simulation.world import Fate

#: How long a refused request takes.
REFUSAL: Micros = 2 * SECOND


class Quota(NamedTuple):
    """What one pool may use in a window; None: without limit.

    A rate limit (`resets` false) asks callers to wait until the window has passed. A plan's quota
    (`resets` true) is used up until its window ends, and the provider says when that is.
    """

    window: Micros
    requests: int | None = None
    tokens: int | None = None
    resets: bool = False


class Outage(NamedTuple):
    """A time in which nothing works; nobody says when it ends."""

    begin: Instant
    end: Instant
    outcome: Outcome = Outcome.THROTTLED  # of whoever asks
    retry_after: Micros | None = MINUTE  # what a throttle asks for


@dataclass(frozen=True, slots=True)
class Limits:
    """What one pool may use, and when it is away."""

    quotas: tuple[Quota, ...] = ()
    outages: tuple[Outage, ...] = ()


class Refusal(NamedTuple):
    """How an attempt ends that asks in vain: how long to wait, or when the window opens again."""

    retry_after: Micros | None = None
    resets_at: Instant | None = None
    outcome: Outcome = Outcome.THROTTLED


@dataclass(slots=True)
class _Window:
    """What was used since the window began; it begins with the first request after its end."""

    quota: Quota
    begin: Instant
    requests: int = 0
    tokens: int = 0

    def turn(self, now: Instant) -> None:
        """Begin again, if the window is over."""
        if now >= self.begin + self.quota.window:
            self.begin, self.requests, self.tokens = now, 0, 0

    @property
    def out_of_requests(self) -> bool:
        """Whether no further request is allowed."""
        return self.quota.requests is not None and self.requests >= self.quota.requests

    @property
    def out_of_tokens(self) -> bool:
        """Whether every token is used."""
        return self.quota.tokens is not None and self.tokens >= self.quota.tokens

    def refusal(self, now: Instant) -> Refusal:
        """What a request gets that is too much."""
        end = self.begin + self.quota.window
        return Refusal(resets_at=end) if self.quota.resets else Refusal(retry_after=end - now)


class Provider:
    """The accounts behind the pools of one simulation."""

    def __init__(self, limits: Mapping[str, Limits]) -> None:
        self._limits, self._windows = limits, dict[str, list[_Window]]()

    def admit(self, pool: str | None, fate: Fate, now: Instant) -> Fate:
        """An attempt begins: its fate as the provider lets it be.

        It is refused at once, or cut off by an outage that begins while it runs.
        """
        if pool is None or pool not in self._limits:
            return fate
        refusal = self.request(pool, now)
        if refusal is not None:
            return _ended(fate, REFUSAL, refusal, _NO_TOKENS)
        met = (row for row in self._limits[pool].outages if now < row.begin < now + fate.lasts)
        outage = min(met, key=lambda row: row.begin, default=None)
        if outage is None:
            return fate
        ran = outage.begin - now
        used = [count * ran // fate.lasts for count in fate.tokens]
        return _ended(fate, ran, _during(outage), (used[0], used[1], used[2], used[3]))

    def request(self, pool: str | None, now: Instant) -> Refusal | None:
        """An attempt begins: refused while its pool is away or beyond a limit."""
        limits = self._limits.get(pool or "")
        if pool is None or limits is None:
            return None
        for outage in limits.outages:
            if outage.begin <= now < outage.end:
                return _during(outage)
        windows = self._turned(pool, limits, now)
        used_up = [row for row in windows if row.out_of_requests or row.out_of_tokens]
        for window in windows if not used_up else ():
            window.requests += 1
        return _longest(used_up, now)

    def use(self, pool: str | None, tokens: int, now: Instant) -> Refusal | None:
        """Tokens are used; the refusal that every further request gets, if that was too much."""
        limits = self._limits.get(pool or "")
        if pool is None or limits is None:
            return None
        windows = self._turned(pool, limits, now)
        for window in windows:
            window.tokens += tokens
        return _longest([window for window in windows if window.out_of_tokens], now)

    def watches(self, pool: str | None) -> bool:
        """Whether a pool has limits."""
        return pool in self._limits

    def _turned(self, pool: str, limits: Limits, now: Instant) -> list[_Window]:
        windows = self._windows.get(pool)
        if windows is None:
            windows = self._windows[pool] = [_Window(quota, now) for quota in limits.quotas]
        for window in windows:
            window.turn(now)
        return windows


_NO_TOKENS = (0, 0, 0, 0)


def _during(outage: Outage) -> Refusal:
    throttled = outage.outcome is Outcome.THROTTLED
    return Refusal(outage.retry_after if throttled else None, None, outage.outcome)


def _longest(used_up: Sequence[_Window], now: Instant) -> Refusal | None:
    """The refusal that lasts longest: a short wait is in vain while a plan is used up."""
    last = max(used_up, key=lambda window: window.begin + window.quota.window, default=None)
    return None if last is None else last.refusal(now)


def _ended(fate: Fate, lasts: Micros, refusal: Refusal, tokens: tuple[int, int, int, int]) -> Fate:
    """A fate that a refusal ends; what it cost is in the proportion of its tokens."""
    whole = sum(fate.tokens)
    usd = None if fate.usd is None else fate.usd * sum(tokens) // whole if whole else 0
    return changed(
        fate,
        lasts=lasts,
        outcome=refusal.outcome,
        tokens=tokens,
        usd=usd,
        detail="refused by the provider",
        retry_after=refusal.retry_after,
        resets_at=refusal.resets_at,
        reports=0,
    )
