"""Cases: what was used adds up, per scope and minute."""

from __future__ import annotations

from fairlane.model.instant import MINUTE
from fairlane.store.base import Booking, Store
from fairlane.testing.stores.builders import undone


class UsageCases:
    """Bookings and their sums."""

    def test_bookings_add_up(self, store: Store) -> None:
        with store.write() as writing:
            writing.book([Booking("all", 2 * MINUTE, (1, 2, 3, 4), 5, 1, 0)])
            writing.book(
                [
                    Booking("all", 2 * MINUTE, (10, 20, 30, 40), 50, 0, 1),
                    Booking("all", MINUTE, (7, 0, 0, 0)),
                    Booking("all", 3 * MINUTE, usd=9),
                    Booking("pool:x", 2 * MINUTE, starts=2),
                ]
            )
        with store.write() as writing:
            writing.book([Booking("all", MINUTE, (1, 0, 0, 0))])
        wanted = [
            Booking("all", MINUTE, (8, 0, 0, 0)),
            Booking("all", 2 * MINUTE, (11, 22, 33, 44), 55, 1, 1),
            Booking("all", 3 * MINUTE, usd=9),
        ]
        with store.read() as reading:
            assert reading.usage("all", None) == wanted
            assert reading.usage("all", 2 * MINUTE) == wanted[1:]
            assert reading.usage("all", 2 * MINUTE + 1) == wanted[2:]
            assert reading.usage("all", 9 * MINUTE) == []
            assert reading.usage("none", None) == []

    def test_sums_of_the_scopes_with_a_prefix(self, store: Store) -> None:
        scopes = (
            "project:a",
            "project:ab",
            "project:a_",
            "project:%",
            "Project:a",
            "pool:a",
            "all",
        )
        with store.write() as writing:
            for number, scope in enumerate(scopes, 1):
                for minute in (1, 5, 9):
                    writing.book(
                        [Booking(scope, minute * MINUTE, (number, 0, 0, 1), 2, starts=minute)]
                    )
        with store.read() as reading:
            sums = reading.usage_sums("project:", 5 * MINUTE)
            assert sums == {
                scope: Booking(scope, 5 * MINUTE, (2 * number, 0, 0, 2), 4, starts=14)
                for number, scope in enumerate(scopes[:4], 1)
            }
            assert set(reading.usage_sums("project:a", 0)) == set(scopes[:3])
            assert set(reading.usage_sums("project:a_", 0)) == {"project:a_"}
            assert set(reading.usage_sums("", 0)) == set(scopes)
            assert reading.usage_sums("project:", 10 * MINUTE) == {}
            assert reading.usage_sums("none:", 0) == {}

    def test_usage_is_undone_with_its_transaction(self, store: Store) -> None:
        with store.write() as writing:
            writing.book([Booking("all", 5 * MINUTE, (1, 1, 1, 1), 1, 1, 1)])
        with undone(store) as writing:
            writing.book([Booking("all", at * MINUTE, (9, 9, 9, 9), 9) for at in (5, 1, 7)])
            writing.book([Booking("new", MINUTE, usd=1)])
        with store.read() as reading:
            assert reading.usage("all", None) == [Booking("all", 5 * MINUTE, (1, 1, 1, 1), 1, 1, 1)]
            assert set(reading.usage_sums("", 0)) == {"all"}
