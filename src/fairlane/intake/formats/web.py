"""Web: beads and what leads from one to another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from fairlane.intake.formats.bead import COLLECTIONS, Bead

BLOCKS = ("blocks", "waits-for")
ONLY_IF_IT_FAILS = "conditional-blocks"


class Web:
    """Who is part of what, and who waits for whom."""

    def __init__(self, beads: Mapping[str, Bead]) -> None:
        self._beads = beads
        self._prefixes = {f"{name.rpartition('-')[0]}-" for name in beads}
        self._convoys: dict[str, str] = {}  # bead -> the first convoy that tracks it
        for bead in beads.values():
            for target in bead.to("tracks") if bead.sort == "convoy" else ():
                self._convoys.setdefault(target, bead.id)
        self._members: dict[str, list[str]] = defaultdict(list)  # of epics and convoys, open work
        for bead in beads.values():
            for name in self.groups(bead) if bead.is_work and not bead.closed else ():
                self._members[name].append(bead.id)

    def groups(self, bead: Bead) -> list[str]:
        """The epics that it is in, nearest first, and the convoys that track it or them."""
        if bead.sort == "convoy":
            return []  # it is part of nothing
        line = [bead, *self._above(bead)]
        epics = [each.id for each in line[1:] if each.sort in COLLECTIONS]
        convoys = [self._convoys[each.id] for each in line if each.id in self._convoys]
        return list(dict.fromkeys([*epics, *convoys]))

    def blockers(self, bead: Bead, ready: bool) -> tuple[list[str], list[str]]:
        """The beads that come first, and what else it waits for. `ready`: beads says that it is."""
        line = {each.id: each for each in (bead, *self._above(bead))}
        needs: dict[str, None] = {}
        reasons = []
        for name in _targets(line.values(), *BLOCKS):
            if name in line or self._is_over(name, ready):
                continue
            before = self._work_of(name)
            needs |= dict.fromkeys(before)
            if not before:
                reasons.append(f"waits for the {self._beads[name].sort} {name}")
        reasons += [
            f"runs only if {name} fails" for name in _targets(line.values(), ONLY_IF_IT_FAILS)
        ]
        needs.pop(bead.id, None)
        return list(needs), reasons

    def _is_over(self, name: str, ready: bool) -> bool:
        """A list of open beads does not name the closed ones; of another place nothing is known."""
        other = self._beads.get(name)
        if other is None:
            return ready or name.startswith(tuple(self._prefixes))
        return other.closed

    def _work_of(self, name: str) -> list[str]:
        """What has to be done before a bead is: itself, or what is open in it."""
        other = self._beads.get(name)
        if other is None or other.is_work:
            return [name]
        return self._members[name]

    def _above(self, bead: Bead) -> list[Bead]:
        """What it is part of, nearest first; nothing where that goes round in a circle."""
        found: dict[str, Bead] = {}
        name = bead.parent
        while name is not None and name in self._beads:
            if name == bead.id or name in found:
                return []
            found[name] = self._beads[name]
            name = self._beads[name].parent
        return list(found.values())


def _targets(line: Iterable[Bead], *sorts: str) -> list[str]:
    return list(dict.fromkeys(name for bead in line for name in bead.to(*sorts)))
