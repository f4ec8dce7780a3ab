"""Clocks: waiting ends for what is ready, and in virtual time nothing takes time."""

from __future__ import annotations

from contextlib import closing

import pytest

from fairlane.clock import SYSTEM, FixedClock, VirtualClock, Waker
from fairlane.model.instant import SECOND


def test_a_wait_ends_for_what_is_ready() -> None:
    with closing(Waker()) as waker, closing(Waker()) as other:
        assert SYSTEM.wait(0.0, waker, other) == []
        waker.set()
        assert SYSTEM.wait(None, waker, other) == [waker]
        assert waker.is_set
        waker.clear()
        assert SYSTEM.wait(0.0, waker, other) == []


def test_a_waker_that_is_set_often_and_closed_early_does_not_fail() -> None:
    waker = Waker()
    for _ in range(100_000):  # more than a pipe holds
        waker.set()
    waker.close()
    waker.set()


def test_a_fixed_clock_decides_by_its_instant_and_waits_for_real() -> None:
    clock = FixedClock(7)
    before = clock.monotonic()
    assert clock.wait(0.001) == []
    assert (clock.now(), clock.monotonic() > before) == (7, True)


def test_virtual_time_passes_by_waiting_and_stops_at_alarms() -> None:
    clock, rung = VirtualClock(5 * SECOND), []
    clock.after(3.0, lambda: rung.append("second"))
    clock.after(2.0, lambda: rung.append("first"))
    clock.wait(10.0)
    assert (clock.now(), rung) == (7 * SECOND, ["first"])
    clock.wait(None)
    assert (clock.monotonic(), rung) == (3.0, ["first", "second"])
    clock.wait(3600.0)
    assert clock.now() == 3608 * SECOND
    with pytest.raises(RuntimeError, match="nothing would ever end"):
        clock.wait(None)


def test_an_alarm_ends_a_virtual_wait_through_a_waker() -> None:
    clock = VirtualClock(0)
    with closing(Waker()) as waker:
        clock.after(1.0, waker.set)
        assert clock.wait(60.0, waker) == [waker]
        assert clock.monotonic() == 1.0
        assert clock.wait(60.0, waker) == [waker]  # until it is cleared
        assert clock.monotonic() == 1.0
