"""Play: one history from a seed, or again from its choices; and what came of it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fairlane.model.record import dataclass, field
from fairlane.testing.torture.faults import Chooser, Rates
from fairlane.testing.torture.history import Choice, History
from fairlane.testing.torture.player import Player
from fairlane.testing.torture.stores import STORES, Make
from fairlane.testing.torture.world import World

#: How often everything is compared.
FULL_EVERY = 1_000


class Break(NamedTuple):
    """A promise that was broken."""

    promise: str  # its name
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(slots=True)
class Played:
    """What came of one history."""

    history: History
    broken: Break | None = None
    events: int = 0
    crashes: int = 0
    seconds: float = 0.0  # of virtual time
    checked: Counter[str] = field(default_factory=Counter)  # promise -> how often
    answers: Counter[str] = field(default_factory=Counter)  # to people and programs
    replayed: int = 0  # decisions
    said: tuple[str, ...] = ()  # the last words of daemons
    digest: str = ""  # of all choices and of the whole log: the same seed gives the same


def play(
    seed: int, events: int, *, store: str = "memory", make: Make | None = None,
    rates: Rates | None = None, over: Callable[[], bool] = lambda: False,
) -> Played:  # fmt: skip
    """Make a history of at least so many events from a seed; it stops where a promise breaks."""

    def choices(world: World, player: Player) -> Iterator[Choice]:
        for choice in Chooser(seed, world, rates).choices():
            if player.events >= events or over():
                break
            yield choice
        yield ("quiet",)

    return _played(History(seed, (), store), make, choices)


def replay(history: History, make: Make | None = None) -> Played:
    """The same again: every choice that still fits happens."""
    return _played(history, make, lambda world, player: iter(history.choices))


def _played(
    history: History,
    make: Make | None,
    choices: Callable[[World, Player], Iterable[Choice]],
) -> Played:
    made: list[Choice] = []
    with _folder() as folder:
        world = World(history.seed, make or STORES[history.store], folder)
        player = Player(world)
        try:
            looked = 0
            for choice in choices(world, player):
                if player.perform(choice):
                    made.append(choice)
                if world.broken is None and player.events - looked >= FULL_EVERY:
                    looked = player.events
                    world.look_fully()
                if world.broken is not None:
                    break
            if world.broken is None:
                world.look_fully()
            return Played(
                history.with_choices(tuple(made)), _broken(world), player.events, player.crashes,
                world.stage.clock.elapsed, world.checker.counts, world.answers,
                world.checker.replayed, tuple(world.said[-20:]), _digest(world, made),
            )  # fmt: skip
        finally:
            world.close()


def _broken(world: World) -> Break | None:
    error = world.broken
    if error is None:
        return None
    cause = error.__cause__
    where = "".join(traceback.format_exception(cause)[-8:]) if cause is not None else ""
    return Break(error.promise.name, f"{error}\n{where}".strip())


def _digest(world: World, made: list[Choice]) -> str:
    digest = hashlib.sha256(repr(made).encode())
    with world.store.read() as reading:
        after = 0
        while page := reading.events(after):
            for event in page:
                text = json.dumps(dict(event.data), sort_keys=True, default=str)
                text = text.replace(str(world.folder), "")
                digest.update(
                    f"{event.number} {event.at} {event.kind} {event.task} {text}".encode()
                )
            after = page[-1].number
    return digest.hexdigest()


@contextmanager
def _folder() -> Iterator[Path]:
    """A new folder, in memory where that can be had."""
    shared = Path("/dev/shm")  # noqa: S108
    folder = tempfile.mkdtemp(prefix="torture-", dir=shared if shared.is_dir() else None)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
