"""Find: the seed by which torture finds a planted bug, and the shortest history that shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import Any

from fairlane.testing.torture import History, Played, play, replay, shrink
from fairlane.testing.torture.dice import Dice
from fairlane.testing.torture.run import LENGTHS
from tests.torture.planted.bug import Bug

#: What was found, one bug a line.
FILE = Path(__file__).with_name("found.jsonl")
#: A short history is tried first: of the seeds that find a bug the one with the fewest events.
SHORT = LENGTHS[0]
#: How many seeds are tried before torture counts as blind, and how many for a quick one.
SEEDS_MAX, SEEDS_QUICK = 300, 12
#: How long a shorter history is looked for, in seconds.
SHRINK_SECONDS = 40.0


@dataclass(frozen=True, slots=True)
class Found:
    """How a bug is found."""

    bug: str
    promise: str
    sentence: str
    cold_seeds: int  # histories that were played, from seed 1 on, until one broke
    cold_seconds: float  # of one core
    seed: int  # of a quick find
    length: int  # of its history, as it is asked for
    events: int  # until it broke
    seconds: float  # of one core
    choices: int  # of its history
    shortest: tuple[Any, ...]  # choices

    @property
    def history(self) -> History:
        """The shrunk history."""
        return History(self.seed, tuple(map(tuple, self.shortest)))

    def line(self) -> str:
        """As it is kept."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})


def known() -> dict[str, Found]:
    """What was found before, by bug."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    rows = [Found(**json.loads(line)) for line in lines]
    return {row.bug: row for row in rows}


def keep(rows: dict[str, Found]) -> None:
    """What is known from now on."""
    text = "".join(f"{rows[name].line()}\n" for name in sorted(rows))
    FILE.write_text(text, encoding="utf-8")


def with_bug(bug: Bug, seed: int, length: int) -> Played:
    """A history of a seed, while the code has a bug."""
    with bug.planted():
        return play(seed, length)


def is_found(bug: Bug, played: Played) -> bool:
    """Whether a promise broke that says what is wrong."""
    return played.broken is not None and played.broken.promise in bug.breaks


def is_good(played: Played) -> bool:
    """Whether the same history breaks nothing without the bug."""
    return replay(played.history).broken is None


def find(bug: Bug) -> Found | None:
    """Search from seed 1 on, as `make torture` does; then look for a quick find."""
    began = process_time()
    cold = next(_finds(bug, SEEDS_MAX), None)
    if cold is None:
        return None
    cold_seconds = process_time() - began
    best, length = cold, _length(cold.history.seed)
    for short in _finds(bug, SEEDS_QUICK, SHORT) if cold.events > SHORT else ():
        if short.events < best.events and is_good(short):
            best, length = short, SHORT
    if not is_good(best):
        return None
    began = process_time()
    again = with_bug(bug, best.history.seed, length)
    seconds = process_time() - began
    assert again.broken is not None
    return Found(
        bug.name, again.broken.promise, again.broken.sentence.splitlines()[0],
        cold.history.seed, round(cold_seconds, 1), again.history.seed, length, again.events,
        round(seconds, 2), len(again.history.choices), again.history.choices,
    )  # fmt: skip


def shorten(bug: Bug, found: Found) -> Found:
    """Look for a shorter history still, from the shortest that is known."""
    with bug.planted():
        shortest = shrink(found.history, found.promise, seconds=SHRINK_SECONDS)
    return replace(found, shortest=shortest.choices)


def _finds(bug: Bug, seeds: int, length: int | None = None) -> Iterator[Played]:
    for seed in range(1, seeds + 1):
        played = with_bug(bug, seed, length or _length(seed))
        if is_found(bug, played):
            yield played


def _length(seed: int) -> int:
    return Dice(seed, "length").one(LENGTHS)
