"""Beads: one record, the shapes in which lists are printed, and the graph between them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fairlane.intake.files import UNREADABLE
from fairlane.intake.outline import line_of, list_of, table_of
from fairlane.intake.sources.base import LeftOut
from fairlane.model.errors import Invalid
from fairlane.model.values import once

WHAT = "a folder with .beads in it, or a file of `bd list --json`"
COLLECTIONS = ("epic", "convoy")
#: Types that coordinate; Gas Town also writes them as labels, such as `gt:message`.
NOT_WORK = (
    "agent", "decision", "event", "gate", "merge-request", "message", "milestone", "molecule",
    "queue", "rig", "role", "sling-context", "slot", "wisp",
)  # fmt: skip
CLOSED = ("closed", "tombstone")
LABEL = "gt:"
#: Beads of the town itself.
TOWN = "hq-"


class Bead(NamedTuple):
    """One record, as far as it is looked at."""

    id: str
    sort: str  # its type, or the one that a label of Gas Town names
    status: str
    row: dict[str, object]
    edges: tuple[tuple[str, str], ...]  # (type, id)
    where: str

    @property
    def closed(self) -> bool:
        """Whether it is over."""
        return self.status in CLOSED

    @property
    def parent(self) -> str | None:
        """What it is part of."""
        return next(iter(self.to("parent-child")), None)

    @property
    def not_work(self) -> str:
        """Why it is nothing for an agent; empty: it is work, or it holds other beads together."""
        if self.sort in COLLECTIONS:
            return ""
        if self.sort in NOT_WORK:
            return f"a {self.sort} is not work"
        if self.id.startswith(TOWN):
            return f"{TOWN} beads belong to the town itself; they are not work"
        if self.row.get("is_template"):
            return "it is a template"
        return "it is ephemeral" if self.row.get("ephemeral") else ""

    @property
    def is_work(self) -> bool:
        """Whether an agent may do it."""
        return not self.not_work and self.sort not in COLLECTIONS

    def to(self, *sorts: str) -> list[str]:
        """What edges of these types lead to."""
        return [target for sort, target in self.edges if sort in sorts]


def read_all(rows: list[tuple[str, object]]) -> tuple[dict[str, Bead], list[LeftOut]]:
    """The beads by their ids; a broken one, or a twin, is named."""
    beads: dict[str, Bead] = {}
    left_out: list[LeftOut] = []
    for place, row in rows:
        try:
            bead = _bead(place, row)
            if bead.id in beads:
                raise Invalid("its id appears twice")
            beads[bead.id] = bead
        except Invalid as error:
            left_out.append(LeftOut(id_of(row) or "?", error.message, place, bad=True))
    return beads, left_out


def id_of(row: object) -> str:
    """The id of a record, whatever it is."""
    return str(row.get("id") or "") if isinstance(row, dict) else ""


def parse(text: str, name: str) -> list[tuple[str, object]]:
    """The records with their places: a list, an envelope with one, one bead, or one a line."""
    try:
        document = json.loads(text, object_pairs_hook=once) if text.strip() else []
    except (ValueError, RecursionError) as error:
        rows = [] if text.lstrip().startswith("[") else _lines(text, name)
        if not any(isinstance(row, dict) for _, row in rows):
            raise Invalid(f"{name}: not JSON: {error}", f"Give {WHAT}.", UNREADABLE) from error
        return rows
    if isinstance(document, dict):
        inner = document.get("data", document.get("issues", document))
        document = [document] if "id" in document else inner
    if not isinstance(document, list | None):
        raise Invalid(f"{name}: not a list of beads", f"Give {WHAT}.", UNREADABLE)
    return [(f"{name}, bead {at}", row) for at, row in enumerate(document or [], 1)]


def _lines(text: str, name: str) -> list[tuple[str, object]]:
    lines = [(at, line) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
    return [(f"{name}:{at}", _line(line)) for at, line in lines]


def _line(line: str) -> object:
    try:
        return json.loads(line, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return line  # which is no record


def _bead(place: str, value: object) -> Bead:
    row = table_of(value)
    name = line_of(row, "id")
    if not name.isprintable() or name.startswith("-") or " " in name:
        raise Invalid(f"id: not a bead's: {name!r}")
    edges = [_edge(name, edge) for edge in list_of(row, "dependencies")]
    if row.get("parent"):
        edges.append(("parent-child", _local(str(row["parent"]))))
    return Bead(name, _sort(row), str(row.get("status") or "open"), row, tuple(edges), place)


def _sort(row: dict[str, object]) -> str:
    for label in map(str, list_of(row, "labels")):
        named = label.removeprefix(LABEL)
        if named != label and named in (*NOT_WORK, *COLLECTIONS):
            return named
    return str(row.get("issue_type") or "task")


def _edge(name: str, value: object) -> tuple[str, str]:
    """A dependency: a record of two ids, or the other bead with the type of the edge."""
    if isinstance(value, str):
        return "blocks", _local(value)
    edge = table_of(value)
    target = _local(line_of(edge, "depends_on_id" if "depends_on_id" in edge else "id"))
    if str(edge.get("issue_id", name)) != name:
        return "", target  # it leads from another one to here
    return str(edge.get("type") or edge.get("dependency_type") or "blocks"), target


def _local(target: str) -> str:
    """`external:gastown:gt-abc` is gt-abc, in another place."""
    return target.rpartition(":")[2]


BLOCKS = ("blocks", "waits-for")
#: How many beads there can be one in another.
DEPTH_MAX = 50
ONLY_IF_IT_FAILS = "conditional-blocks"


class Web:
    """Who is part of what, and who waits for whom."""

    def __init__(self, beads: Mapping[str, Bead], convoys: Mapping[str, str]) -> None:
        self._beads = beads
        self._prefixes = {f"{name.rpartition('-')[0]}-" for name in beads}
        self._convoys: dict[str, str] = {}  # bead -> the first convoy that tracks it
        for bead in beads.values():
            for target in bead.to("tracks") if bead.sort == "convoy" else ():
                self._convoys.setdefault(target, bead.id)
        self._convoys = {**convoys, **self._convoys}
        self._members: dict[str, list[str]] = defaultdict(list)  # of epics and convoys, open work
        for bead in beads.values():
            for name in self.groups(bead) if bead.is_work and not bead.closed else ():
                self._members[name].append(bead.id)

    def groups(self, bead: Bead) -> list[str]:
        """The epics that it is in, nearest first, and the convoys that track it or them."""
        if bead.sort == "convoy":
            return []  # it is part of nothing
        line = [bead, *self._above(bead)]
        epics = [other.id for other in line[1:] if other.sort in COLLECTIONS]
        convoys = [self._convoys[other.id] for other in line if other.id in self._convoys]
        return list(dict.fromkeys([*epics, *convoys]))

    def blockers(self, bead: Bead, ready: bool) -> tuple[list[str], list[str]]:
        """The beads that block it, and other reasons to wait. `ready`: bd lists it as ready."""
        line = {part.id: part for part in (bead, *self._above(bead))}
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
        """The beads that it is part of, nearest first; none where they go round, or too deep."""
        ancestors: dict[str, Bead] = {}
        name = bead.parent
        while name is not None and name in self._beads:
            if name == bead.id or name in ancestors or len(ancestors) == DEPTH_MAX:
                return []
            ancestors[name] = self._beads[name]
            name = self._beads[name].parent
        return list(ancestors.values())


def _targets(line: Iterable[Bead], *sorts: str) -> list[str]:
    return list(dict.fromkeys(name for bead in line for name in bead.to(*sorts)))
