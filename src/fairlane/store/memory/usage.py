"""What was used: per scope and minute, with running sums, so that a window costs two look-ups."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence, Set

from fairlane.model.instant import DAY, Instant
from fairlane.store.base import Booking
from fairlane.store.memory.undo_log import UndoLog

Amounts = tuple[int, int, int, int, int, int, int]  # four sorts of tokens, usd, starts, completions
NOTHING: Amounts = (0, 0, 0, 0, 0, 0, 0)


class Account:
    """The bookings of one scope by minute."""

    __slots__ = ("_last", "_minutes", "_sums", "scope")

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self._minutes: list[Instant] = []
        self._sums: list[Amounts] = []  # of this minute and all before it
        self._last: tuple[int, Amounts] | None = None  # the sum that was asked for last

    def add(self, minute: Instant, amounts: Amounts) -> None:
        """Books; nearly always into the last minute."""
        self._last = None
        at = bisect_left(self._minutes, minute)
        if at == len(self._minutes) or self._minutes[at] != minute:
            self._minutes.insert(at, minute)
            self._sums.insert(at, self._sums[at - 1] if at else NOTHING)
        for place in range(at, len(self._sums)):
            self._sums[place] = _plus(self._sums[place], amounts)

    def holds(self, minute: Instant) -> bool:
        """Whether something was booked in this minute."""
        at = bisect_left(self._minutes, minute)
        return at < len(self._minutes) and self._minutes[at] == minute

    def take(self, minute: Instant, amounts: Amounts, whole: bool) -> None:
        """The opposite of a booking; `whole`: the minute was not there before."""
        self.add(minute, _minus(NOTHING, amounts))
        if whole:
            at = bisect_left(self._minutes, minute)
            del self._minutes[at], self._sums[at]
            self._last = None

    def since(self, when: Instant | None) -> list[Booking]:
        """What was booked in every minute from then on."""
        start = 0 if when is None else bisect_left(self._minutes, when)
        bookings = []
        for at in range(start, len(self._minutes)):
            before = self._sums[at - 1] if at else NOTHING
            amounts = _minus(self._sums[at], before)
            bookings.append(booking(self.scope, self._minutes[at], amounts))
        return bookings

    def sum(self, when: Instant) -> Booking | None:
        """What was booked from then on; None: nothing."""
        amounts = self.total(when)
        return None if amounts is None else booking(self.scope, when, amounts)

    def total(self, when: Instant) -> Amounts | None:
        """The same as numbers; the very same ones until they change."""
        start = bisect_left(self._minutes, when)
        if start == len(self._minutes):
            return None
        if self._last is None or self._last[0] != start:
            before = self._sums[start - 1] if start else NOTHING
            self._last = start, _minus(self._sums[-1], before)
        return self._last[1]

    def first(self, when: Instant) -> Instant | None:
        """The first minute from then on in which something was booked."""
        start = bisect_left(self._minutes, when)
        return self._minutes[start] if start < len(self._minutes) else None


class Usage(UndoLog):
    """The accounts of all scopes."""

    def __init__(self) -> None:
        super().__init__()
        self._accounts: dict[str, Account] = {}
        self._scopes: list[str] = []  # by name

    def usage(self, scope: str, since: Instant | None) -> list[Booking]:
        account = self._accounts.get(scope)
        return account.since(since) if account is not None else []

    def usage_sums(self, prefix: str, since: Instant) -> dict[str, Booking]:
        sums = {}
        for at in range(bisect_left(self._scopes, prefix), len(self._scopes)):
            scope = self._scopes[at]
            if not scope.startswith(prefix):
                break
            used = self._accounts[scope].sum(since)
            if used is not None:
                sums[scope] = used
        return sums

    def book(self, bookings: Sequence[Booking]) -> None:
        for row in bookings:
            self._news.scopes.add(row.scope)
            account = self._accounts.get(row.scope)
            if account is None:
                account = Account(row.scope)
                self._note(self._remove_account, row.scope)
                self._put_account(account)
            amounts = amounts_of(row)
            self._note(account.take, row.minute, amounts, not account.holds(row.minute))
            account.add(row.minute, amounts)

    def _put_account(self, account: Account) -> None:
        if account.scope not in self._accounts:
            insort(self._scopes, account.scope)
        self._accounts[account.scope] = account

    def _remove_account(self, scope: str) -> None:
        del self._accounts[scope]
        self._scopes.remove(scope)

    def _fold(self, scope: str, minutes: Set[Instant]) -> None:
        """These minutes become part of their days."""
        old, new = self._accounts[scope], Account(scope)
        for row in old.since(None):
            minute = row.minute // DAY * DAY if row.minute in minutes else row.minute
            new.add(minute, amounts_of(row))
        self._note(self._put_account, old)
        self._put_account(new)


def amounts_of(row: Booking) -> Amounts:
    """The numbers of a booking."""
    return (*row.tokens, row.usd, row.starts, row.completions)


def booking(scope: str, minute: Instant, amounts: Amounts) -> Booking:
    """A booking from its numbers."""
    tokens = (amounts[0], amounts[1], amounts[2], amounts[3])
    return Booking(scope, minute, tokens, *amounts[4:])


def _plus(one: Amounts, other: Amounts) -> Amounts:
    a, b, c, d, e, f, g = one
    h, i, j, k, m, n, p = other
    return (a + h, b + i, c + j, d + k, e + m, f + n, g + p)


def _minus(one: Amounts, other: Amounts) -> Amounts:
    a, b, c, d, e, f, g = one
    h, i, j, k, m, n, p = other
    return (a - h, b - i, c - j, d - k, e - m, f - n, g - p)
