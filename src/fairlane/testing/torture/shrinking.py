"""Shrink: take choices away as long as the same promise still breaks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from fairlane.clock import SYSTEM
from fairlane.testing.torture.history import Choice, History
from fairlane.testing.torture.playing import replay
from fairlane.testing.torture.stores import Make

Choices = tuple[Choice, ...]
#: How long a shorter history is looked for, in seconds.
SHRINK_SECONDS = 60.0
#: The smallest part in which it is tried whether somebody's turn matters.
_CALM_MIN = 8
#: Stands for all that several threads did between two other choices.
_SETTLE = ("settle", 400)


class Shrinker:
    """Looks for the shortest history in which the same promise breaks, until its time is up."""

    def __init__(
        self, history: History, promise: str, make: Make | None = None,
        seconds: float = SHRINK_SECONDS,
    ) -> None:  # fmt: skip
        self._history, self._promise, self._make = history, promise, make
        self._end = SYSTEM.monotonic() + seconds
        self.tried = 0

    def shrink(self) -> History:
        """The shortest that was found."""
        best = self._history.choices
        for shorter in (_without_turns(best), _with_less_turns(best)):
            if self._fails(shorter):
                best = shorter
                break
        else:
            best = self._calmer(best)
        before: Choices = ()
        while best != before and self._left():
            before = best
            best = self._without_parts(best)
            best = self._simpler(self._joined(best))
        return self._history.with_choices(best)

    def _left(self) -> bool:
        return SYSTEM.monotonic() < self._end

    def _fails(self, choices: Choices) -> bool:
        """Whether the same promise breaks; what comes after it is not looked at."""
        if not self._left():
            return False
        self.tried += 1
        broken = replay(self._history.with_choices(choices), self._make).broken
        return broken is not None and broken.promise == self._promise

    def _calmer(self, choices: Choices) -> Choices:
        """Choose nobody's turn in parts of it, half of it first: chance matters in few places."""
        size = len(choices) // 2
        while size >= _CALM_MIN:
            at = len(choices)
            while at > 0:
                at = max(0, at - size)
                part = choices[at : at + size]
                calm = _without_turns(part)
                shorter = choices[:at] + calm + choices[at + size :]
                if len(calm) < len(part) and self._fails(shorter):
                    choices = shorter
            size //= 2
        return choices

    def _without_parts(self, choices: Choices) -> Choices:
        """Leave out parts, half of it first, single choices last."""
        size = max(1, len(choices) // 2)
        while True:
            at = len(choices)
            while at > 0:
                at = max(0, at - size)
                shorter = choices[:at] + choices[at + size :]
                if self._fails(shorter):
                    choices = shorter
            if size == 1:
                return choices
            size //= 2

    def _joined(self, choices: Choices) -> Choices:
        """Let time pass once where it passes several times in a row."""
        joined: list[Choice] = []
        for choice in choices:
            if joined and joined[-1][0] == choice[0] == "let_pass":
                joined[-1] = ("let_pass", joined[-1][1] + choice[1])
            else:
                joined.append(choice)
        shorter = tuple(joined)
        return shorter if shorter != choices and self._fails(shorter) else choices

    def _simpler(self, choices: Choices) -> Choices:
        """Make each choice that is left as plain as it can be."""
        for at in range(len(choices)):
            going = True
            while going:
                going = False
                for plainer in _plainer(choices[at]):
                    changed = (*choices[:at], plainer, *choices[at + 1 :])
                    if self._fails(changed):
                        choices, going = changed, True
                        break
        return choices


def _without_turns(choices: Choices) -> Choices:
    """With nobody's turn chosen: everybody goes on until all wait."""
    made: list[Choice] = []
    for is_turn, group in groupby(choices, lambda choice: choice[0] in ("go", "settle")):
        made += [_SETTLE] if is_turn else list(group)
    return tuple(made)


def _with_less_turns(choices: Choices) -> Choices:
    """The same, but for the last turns: they may be what matters."""
    keep = max(0, len(choices) - 60)
    return _without_turns(choices[:keep]) + choices[keep:]


def _plainer(choice: Choice) -> Iterator[Choice]:
    """What could stand in its place."""
    what = choice[0]
    if what == "go" and len(choice) > 2:
        yield choice[:2]
    elif what == "rules" and choice[1]:
        lines = choice[1].splitlines(keepends=True)
        for at in range(len(lines)):
            yield ("rules", "".join(lines[:at] + lines[at + 1 :]))
    elif what == "ask" and "tasks" in choice[4]:
        for tasks in _shorter(choice[4]["tasks"]):
            yield (*choice[:4], {**choice[4], "tasks": tasks})
    elif what == "let_pass" and choice[1] != round(choice[1]):
        yield (what, float(round(choice[1]) + 1))
    if what in ("ask", "call"):
        *start, arguments = choice
        for name in arguments:
            yield (*start, {key: value for key, value in arguments.items() if key != name})


def _shorter(records: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Fewer tasks, or one of them with fewer fields."""
    for at, record in enumerate(records):
        if len(records) > 1:
            yield records[:at] + records[at + 1 :]
        for name in record:
            if name not in ("id", "prompt"):
                fewer = {key: value for key, value in record.items() if key != name}
                yield [*records[:at], fewer, *records[at + 1 :]]


def shrink(
    history: History, promise: str, make: Make | None = None, seconds: float = SHRINK_SECONDS
) -> History:
    """The shortest history that was found in so many seconds in which this promise breaks."""
    return Shrinker(history, promise, make, seconds).shrink()
