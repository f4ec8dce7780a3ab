"""A history: everything that was chosen, in order. From it alone the same things happen again."""

from __future__ import annotations

from pprint import pformat
from typing import Any, TypeAlias

from fairlane.model.record import dataclass, replace

#: One choice: what, and its arguments, all of which JSON has. `Player` has a method for each.
Choice: TypeAlias = tuple[Any, ...]

#: What the choices are; every one that does not fit any more is skipped.
#:
#:     go STRAND [FAULT]         this thread goes on to its next gate, perhaps into a fault
#:     settle GATES              everybody goes on in turn, until all wait or have passed so many
#:     let_pass SECONDS          time passes
#:     ask NAME HOST OPERATION ARGUMENTS       a person or a program calls an operation
#:     call NAME HOST LEASE OPERATION ARGUMENTS    the attempt of a lease calls one
#:     up HOST                   a daemon begins, unless one is there
#:     down HOST HOW             the daemon is told to end: leave or stop its agents
#:     kill PROCESS              it ends where it stands
#:     freeze PROCESS SECONDS    it stops, and goes on after a while
#:     clock HOST AHEAD RATE     a clock is set, and runs at another rate from now on
#:     away FAULT SECONDS        the store is busy, full or unreachable for a while
#:     rules TEXT                the policy file of every host is written
#:     source ENTRIES            the file of the source is written
#:     touch TASK                the file appears for which children of a task wait
#:     die NUMBER                an agent vanishes
#:     reboot HOST               its daemon and all its agents vanish
#:     tear NUMBER               the run folder of an agent is damaged
#:     quiet                     no more faults: everything that can end ends


@dataclass(frozen=True, slots=True)
class History:
    """A seed, which says what agents do, and the choices."""

    seed: int
    choices: tuple[Choice, ...] = ()
    store: str = "memory"

    def with_choices(self, choices: tuple[Choice, ...]) -> History:
        """The same with others."""
        return replace(self, choices=choices)

    def as_test(self, sentence: str = "", name: str = "found", make: object = None) -> str:
        """A Python test that can be pasted; it passes when what was found is mended.

        `make`: the function by which the store was made, where it is none of those by name.
        """
        maker = getattr(make, "__name__", "make")
        imported = f"from {getattr(make, '__module__', '')} import {maker}\n" if make else ""
        replayed = f"replay(history, make={maker})" if make else "replay(history)"
        choices = pformat(list(self.choices), width=96, compact=True, sort_dicts=False)
        indented = choices.replace("\n", "\n        ")
        return (
            f"from fairlane.testing.torture import History, replay\n{imported}\n\n"
            f"def test_{name}():\n"
            f'    """{sentence.replace(chr(92), "/").replace(chr(34), chr(39))}"""\n'
            f"    history = History(\n"
            f"        seed={self.seed},\n"
            f"        store={self.store!r},\n"
            f"        choices=tuple(\n        {indented}\n        ),\n"
            f"    )\n"
            f"    assert {replayed}.broken is None\n"
        )
