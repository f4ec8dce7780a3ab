"""Bead: one record of beads, and the shapes in which lists of them are printed."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from fairlane.intake.files import UNREADABLE
from fairlane.intake.outline import line_of, list_of, table_of
from fairlane.intake.sources.base import LeftOut
from fairlane.model.errors import Invalid

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
    row: dict[str, Any]
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
            return f"{TOWN} beads coordinate a town; they are not work"
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


def read_all(rows: list[tuple[str, Any]]) -> tuple[dict[str, Bead], list[LeftOut]]:
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


def id_of(row: Any) -> str:
    """The id of a record, whatever it is."""
    return str(row.get("id") or "") if isinstance(row, dict) else ""


def parse(text: str, name: str) -> list[tuple[str, Any]]:
    """The records with their places: a list, an envelope with one, one bead, or one a line."""
    try:
        found = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError) as error:
        rows = [] if text.lstrip().startswith("[") else _lines(text, name)
        if not any(isinstance(row, dict) for _, row in rows):
            raise Invalid(f"{name}: not JSON: {error}", f"Give {WHAT}.", UNREADABLE) from error
        return rows
    if isinstance(found, dict):
        found = [found] if "id" in found else found.get("data", found.get("issues", found))
    if not isinstance(found, list | None):
        raise Invalid(f"{name}: not a list of beads", f"Give {WHAT}.", UNREADABLE)
    return [(f"{name}, bead {at}", row) for at, row in enumerate(found or [], 1)]


def _lines(text: str, name: str) -> list[tuple[str, Any]]:
    lines = [(at, line) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
    return [(f"{name}:{at}", _line(line)) for at, line in lines]


def _line(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line  # which is no record


def _bead(place: str, value: Any) -> Bead:
    row = table_of(value)
    name = line_of(row, "id")
    if not name.isprintable() or name.startswith("-") or " " in name:
        raise Invalid(f"id: not a bead's: {name!r}")
    edges = [_edge(name, each) for each in list_of(row, "dependencies")]
    if row.get("parent"):
        edges.append(("parent-child", _local(str(row["parent"]))))
    return Bead(name, _sort(row), str(row.get("status") or "open"), row, tuple(edges), place)


def _sort(row: dict[str, Any]) -> str:
    for label in map(str, list_of(row, "labels")):
        named = label.removeprefix(LABEL)
        if named != label and named in (*NOT_WORK, *COLLECTIONS):
            return named
    return str(row.get("issue_type") or "task")


def _edge(name: str, value: Any) -> tuple[str, str]:
    """A dependency: a record of two ids, or the other bead itself with the type beside it."""
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
