"""Dice: the chance of one history, drawn from its seed in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from fairlane.simulation.draws import below, draw

T = TypeVar("T")


class Dice:
    """Each call draws the next number of this seed and these words."""

    def __init__(self, seed: int, *words: object) -> None:
        self._seed, self._words, self._drawn = seed, words, 0

    def below(self, number: int) -> int:
        """A whole number from 0 to `number` - 1."""
        self._drawn += 1
        return below(number, draw(self._seed, *self._words, self._drawn))

    def chance(self, thousandths: int) -> bool:
        """Whether something happens that does in so many of a thousand cases."""
        return self.below(1000) < thousandths

    def one(self, choices: Sequence[T]) -> T:
        """One of these, each as likely."""
        return choices[self.below(len(choices))]

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """Different ones of these, at most so many, in the order drawn."""
        left = list(choices)
        return [
            left.pop(self.below(len(left))) for _ in range(min(len(left), self.below(most + 1)))
        ]

    def weighted(self, choices: Sequence[tuple[int, T]]) -> T:
        """One of these by their weights."""
        left = self.below(sum(weight for weight, _ in choices))
        for weight, choice in choices:
            left -= weight
            if left < 0:
                return choice
        raise AssertionError("a weight is negative")
