"""Profile: how long attempts of one kind of work take, what they use, how they end."""

from __future__ import annotations

from fairlane.engine.end_attempt import Counters
from fairlane.model.amounts import MICRO_DOLLARS_MAX, TOKENS_MAX
from fairlane.model.instant import DAY, MINUTE, SECOND, Micros
from fairlane.model.record import dataclass, field
from fairlane.model.task import Outcome
from fairlane.simulation.draws import (
    CACHE_READ,
    CACHE_WRITE,
    DURATION,
    ENDING,
    INPUT,
    MILLION,
    ONE,
    OUTPUT,
    PART,
    below,
    draws,
    which,
)
from fairlane.simulation.quantiles import Constant, Distribution
from fairlane.simulation.world import Fate

#: The outcomes that have a rate.
RATED = (
    Outcome.FAILED, Outcome.LOST, Outcome.LAUNCH_FAILED, Outcome.THROTTLED, Outcome.ENVIRONMENT,
    Outcome.CHECK_FAILED,
)  # fmt: skip
#: These end before the work begins.
_AT_ONCE = (Outcome.LAUNCH_FAILED, Outcome.ENVIRONMENT)
#: How long an attempt takes that never begins its work.
BEGINNING: Micros = 2 * SECOND
#: Longest attempt: tails of distributions end here.
LASTS_MAX: Micros = 365 * DAY
_PLACES = (INPUT, OUTPUT, CACHE_READ, CACHE_WRITE)
_NOTHING = Constant(0)


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of work. Tokens are input, output, cache read, cache write."""

    duration: Distribution
    tokens: tuple[Distribution, Distribution, Distribution, Distribution] = (_NOTHING,) * 4
    usd: tuple[int, int, int, int] | None = None  # micro-dollars for a million of each
    rates: tuple[int, ...] = (0,) * len(RATED)  # of each outcome, in millionths
    retry_after: Micros | None = MINUTE  # what a throttle asks for
    reports: int = field(default=0)  # how often an attempt tells of its usage before its end

    def fate(self, seed: int, task: str, attempt: int, ran: Micros = 0) -> Fate:
        """What becomes of one attempt, that has run so long already."""
        drawn = draws(seed, task, attempt)
        lasts = (
            longer(self.duration, ran, drawn[DURATION])
            if ran
            else self.duration.at(drawn[DURATION])
        )
        lasts = min(max(lasts, 1), LASTS_MAX)
        used = [
            min(counter.at(drawn[place]), TOKENS_MAX)
            for counter, place in zip(self.tokens, _PLACES, strict=True)
        ]
        ending = which(self.rates, drawn[ENDING])
        outcome = Outcome.SUCCEEDED if ending is None else RATED[ending]
        retry_after = self.retry_after if outcome is Outcome.THROTTLED else None
        if outcome in _AT_ONCE and not ran:
            lasts, used = min(lasts, BEGINNING), [0, 0, 0, 0]
        elif outcome not in (Outcome.SUCCEEDED, Outcome.CHECK_FAILED):
            part = below(MILLION, drawn[PART])
            lasts = ran + max(1, (lasts - ran) * part // MILLION)
            used = [count * part // MILLION for count in used]
        counters = (used[0], used[1], used[2], used[3])
        return Fate(
            lasts, outcome, counters, self._cost(counters),
            retry_after=retry_after, reports=self.reports,
        )  # fmt: skip

    def _cost(self, tokens: Counters) -> int | None:
        if self.usd is None:
            return None
        cost = sum(count * price for count, price in zip(tokens, self.usd, strict=True))
        return min(cost // MILLION, MICRO_DOLLARS_MAX)


def longer(lengths: Distribution, ran: Micros, drawn: int) -> Micros:
    """A length among those that are longer; beyond all of them as much again."""
    low, high = 0, ONE
    while low < high:
        middle = (low + high) // 2
        if lengths.at(middle) > ran:
            high = middle
        else:
            low = middle + 1
    return 2 * ran if low == ONE else lengths.at(low + below(ONE - low, drawn))
