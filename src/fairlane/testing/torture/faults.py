"""Chooser: who goes on next, what goes wrong, how much time passes; each with a rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.model.record import dataclass
from fairlane.testing.torture.cast import Cast
from fairlane.testing.torture.dice import Dice
from fairlane.testing.torture.history import Choice
from fairlane.testing.torture.stage import STORE, Strand
from fairlane.testing.torture.world import HOSTS, WITH_DAEMON, World

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Gates at which a fault of the store can be met.
_STORE_GATES = ("read", "write", "share")
#: How long it takes until somebody looks again, in seconds.
PAUSES = (0.3, 1.0, 5.0, 20.0, 100.0, 600.0, 3600.0, 6 * 3600.0, 26 * 3600.0)


@dataclass(frozen=True, slots=True)
class Rates:
    """In thousandths of all choices, unless something else is said."""

    act: int = 120  # somebody does something
    crash: int = 45  # a process ends where it stands
    inside: int = 120  # of writes: it ends inside the transaction
    away: int = 15  # of transactions: the store cannot be used this time
    outage: int = 3  # the store cannot be used for a while
    freeze: int = 8  # a process is stopped for a while
    clock: int = 3  # a clock is set
    die: int = 5  # an agent vanishes
    tear: int = 3  # a run folder is damaged
    reboot: int = 1  # a host loses everything that runs
    down: int = 3  # a daemon is told to end
    settle: int = 30  # everybody goes on until all wait
    early: int = 25  # time passes though somebody could go on


def _habits(seed: int) -> Rates:
    """In some histories much is done, in some much goes wrong."""
    dice = Dice(seed, "rates")
    act, crash, settle = dice.one((80, 120, 300)), dice.one((25, 45, 75)), dice.one((20, 30, 80))
    return Rates(act=act, crash=crash, settle=settle)


class Chooser:
    """Draws the choices of a history while it happens."""

    def __init__(self, seed: int, world: World, rates: Rates | None = None) -> None:
        self._dice, self._world = Dice(seed, "choices"), world
        self._cast, self._rates = Cast(Dice(seed, "cast"), world), rates or _habits(seed)

    def choices(self) -> Iterator[Choice]:
        """One choice after the other, for ever."""
        yield self._cast.rules()
        yield from (("up", host) for host in WITH_DAEMON)
        while True:
            yield from self._next()

    def _next(self) -> list[Choice]:
        dice, rates = self._dice, self._rates
        if dice.chance(rates.act):
            return self._cast.act()
        drawn = dice.below(1000)
        for rate, fault in (
            (rates.crash, self._crash), (rates.outage, self._outage), (rates.freeze, self._freeze),
            (rates.clock, self._clock), (rates.die, self._die), (rates.tear, self._tear),
            (rates.reboot, self._reboot), (rates.down, self._down),
        ):  # fmt: skip
            drawn -= rate
            if drawn < 0:
                return fault()
        missing = [host for host in WITH_DAEMON if f"up-{host}" not in self._world.stage.processes]
        if missing and dice.chance(200):
            return [("up", dice.one(missing))]
        return self._go_on()

    def _go_on(self) -> list[Choice]:
        dice, ready = self._dice, self._world.stage.ready()
        if not ready or dice.chance(self._rates.early):
            return [("let_pass", self._pause())]
        if dice.chance(self._rates.settle):
            return [("settle", dice.one((20, 60, 200)))]
        strand = dice.one(ready)
        order = self._order(strand)
        return [("go", strand.name, order) if order else ("go", strand.name)]

    def _order(self, strand: Strand) -> str:
        """The fault that a thread meets at the gate where it is."""
        dice = self._dice
        if strand.gate == "write" and dice.chance(self._rates.inside):
            return "inside"
        if strand.gate in _STORE_GATES and dice.chance(self._rates.away):
            return dice.one(("busy", "full") if strand.gate != "read" else ("unreachable",))
        return ""

    def _pause(self) -> float:
        """How much time passes: to what happens next, or so much that it has been missed."""
        dice, stage = self._dice, self._world.stage
        wake, alarm = stage.next_wake(), stage.clock.next_alarm()
        if wake is not None and dice.chance(350):
            return max(0.0, wake - stage.clock.elapsed)
        if alarm is not None and dice.chance(500):
            return max(0.0, alarm - stage.clock.elapsed)
        weights = (10, 14, 14, 12, 6, 4, 2, 1, 1)
        return dice.weighted(list(zip(weights, PAUSES, strict=True)))

    # Faults

    def _crash(self) -> list[Choice]:
        """Daemons more often than others: they are always there."""
        names = list(self._world.stage.processes)
        if not names:
            return []
        daemons = [name for name in names if name.startswith("up-")]
        return [("kill", self._dice.one(daemons if daemons and self._dice.chance(500) else names))]

    def _outage(self) -> list[Choice]:
        fault = self._dice.one(("busy", "full", "unreachable"))
        return [("away", fault, self._dice.one((2.0, 30.0, 900.0)))]

    def _freeze(self) -> list[Choice]:
        names = list(self._world.stage.processes)
        seconds = self._dice.one((3.0, 60.0, 400.0, 4000.0))
        return [("freeze", self._dice.one(names), seconds)] if names else []

    def _clock(self) -> list[Choice]:
        host = self._dice.one((*HOSTS, STORE, STORE))
        ahead = self._dice.one((-7200.0, -90.0, -2.0, 0.0, 2.0, 90.0, 7200.0))
        rate = self._dice.one((1.0, 1.0, 0.9, 1.25)) if host != STORE else 1.0
        return [("clock", host, ahead, rate)]

    def _die(self) -> list[Choice]:
        return [("die", self._dice.below(5))]

    def _tear(self) -> list[Choice]:
        return [("tear", self._dice.below(6))]

    def _reboot(self) -> list[Choice]:
        return [("reboot", self._dice.one(WITH_DAEMON))]

    def _down(self) -> list[Choice]:
        return [("down", self._dice.one(WITH_DAEMON), self._dice.one(("leave", "stop")))]
