"""Sling contexts: beads in which Gas Town keeps how and when another bead is to be dispatched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fairlane.intake.beads.bead import Bead
from fairlane.intake.files import parse_json
from fairlane.intake.naming import name_for
from fairlane.intake.sources.base import LeftOut
from fairlane.model.errors import Invalid, listed
from fairlane.model.instant import Instant, parse_instant
from fairlane.model.record import dataclass
from fairlane.model.values import Reader, flag, take, text, whole

SORT = "sling-context"
VERSION = 1
#: Most names in a note.
NAMED_MAX = 20
#: So many failures to dispatch break the circuit.
FAILURES_MAX = 3
BROKEN, CLEARED = "circuit-broken", "cleared"
#: Why a context is closed whose bead was started.
DISPATCHED = ("dispatched", "dispatch-close-failed")
#: Merge strategy there -> here. A merge request is merged by the town itself, so it is here.
MERGES = {"direct": "merge", "mr": "merge", "local": "keep"}
#: What nothing here decides by: it is kept in `meta`.
KEPT = ("formula", "account", "mode", "hook_raw_bead", "owned", "convoy", "posting", "merge")
_TEXTS = (
    "work_bead_id", "target_rig", "formula", "args", "vars", "convoy", "base_branch", "account",
    "agent", "mode", "posting", "last_failure", "merge",
)  # fmt: skip


def _moment(value: object) -> Instant:
    return parse_instant(text(value))


_READERS: dict[str, Reader[object]] = {
    **dict.fromkeys(_TEXTS, text),
    **dict.fromkeys(("no_merge", "hook_raw_bead", "owned"), flag),
    "dispatch_failures": whole(0),
    "enqueued_at": _moment,
}


class Sling(NamedTuple):
    """How one bead was slung."""

    bead: str
    context: Bead
    fields: Mapping[str, object]  # those that say something, typed
    others: Mapping[str, object]  # those that are not known here

    @property
    def enqueued_at(self) -> Instant | None:
        """Since when it waits to be dispatched."""
        when = self.fields.get("enqueued_at")
        return when if isinstance(when, int) else None

    @property
    def failures(self) -> int:
        """How often it could not be dispatched, in a row."""
        count = self.fields.get("dispatch_failures")
        return count if isinstance(count, int) else 0

    @property
    def is_broken(self) -> bool:
        """Whether it is not tried again until somebody looks at it."""
        return self.failures >= FAILURES_MAX or (self.context.closed and self.closed_as == BROKEN)

    @property
    def closed_as(self) -> str:
        """Why its context was closed."""
        return str(self.context.row.get("close_reason") or "")

    @property
    def parked(self) -> str:
        """Why it waits for somebody; empty: it does not."""
        if not self.is_broken:
            return ""
        return f"{BROKEN}: {self.fields.get('last_failure') or 'no error was kept'}"

    @property
    def unasked(self) -> str:
        """Why nobody waits for it; empty: it is scheduled."""
        if not self.context.closed or self.is_broken:
            return ""
        how = f"was unscheduled ({self.closed_as or 'closed'})"
        if self.closed_as in DISPATCHED:
            how = "was dispatched and is open again"
        elif self.closed_as == CLEARED:
            how = "was cleared"
        return f"it {how}; to import it, name it"

    def record(self) -> dict[str, object]:
        """What it says about the task; the rest is for `meta`."""
        fields = self.fields
        merge = MERGES.get(str(fields.get("merge")))
        pairs, rest = _variables(str(fields.get("vars") or ""))
        kept = {**self.others, "context": self.context.id}
        kept |= {key: fields[key] for key in KEPT if key in fields}
        rig = fields.get("target_rig")
        record = {
            "project": rig and name_for(rig),
            "agent": fields.get("agent"),
            "base": fields.get("base_branch"),
            "merge": "keep" if fields.get("no_merge") else merge,
            "vars": pairs,
            "sling": kept | ({"vars": rest} if rest else {}),
        }
        return {key: value for key, value in record.items() if value}


@dataclass(slots=True)
class Slings:
    """What is scheduled among some beads; where nothing ever was, every open bead is work."""

    by_bead: dict[str, Sling]
    left_out: list[LeftOut]
    some: bool  # whether there are contexts at all
    notes: list[str]

    def place(self, bead: str) -> tuple[bool, Instant, str]:
        """Slung beads first, in the order in which Gas Town dispatches them."""
        sling = self.by_bead.get(bead)
        if sling is None or sling.unasked or sling.enqueued_at is None:
            return (True, 0, "")
        return (False, sling.enqueued_at, sling.context.id)

    def unasked(self, bead: str) -> str:
        """Why a bead does not start by itself; empty: it does."""
        if not self.some:
            return ""
        sling = self.by_bead.get(bead)
        return "it is not slung; to import it, name it" if sling is None else sling.unasked

    @property
    def convoys(self) -> dict[str, str]:
        """Bead -> the convoy that its context names."""
        named = {name: sling.fields.get("convoy") for name, sling in self.by_bead.items()}
        return {name: str(convoy) for name, convoy in named.items() if convoy}


def read_slings(beads: Mapping[str, Bead]) -> Slings:
    """The contexts among these beads: of each bead the open one, else the last that was closed."""
    contexts = [bead for bead in beads.values() if bead.sort == SORT]
    slings = Slings({}, [], bool(contexts), [])
    for context in contexts:
        try:
            sling = _sling(context)
        except Invalid as error:
            if not context.closed:
                reason = f"a sling context that cannot be read: {error.message}"
                slings.left_out.append(LeftOut(context.id, reason, context.where, True, True))
            continue
        before = slings.by_bead.get(sling.bead)
        if before is None or _counts_more(sling, before):
            slings.by_bead[sling.bead] = sling
    _name_strays(slings, beads)
    return slings


def _name_strays(slings: Slings, beads: Mapping[str, Bead]) -> None:
    """Contexts whose bead is not here: it may be another rig's, and is imported there."""
    ours = {name.rpartition("-")[0] for name, bead in beads.items() if bead.sort != SORT}
    elsewhere = []
    for name, sling in slings.by_bead.items():
        if name in beads or sling.unasked:
            continue
        if name.rpartition("-")[0] in ours:
            reason = f"its bead {name} is not in the list"
            slings.left_out.append(LeftOut(sling.context.id, reason, sling.context.where))
        else:
            elsewhere.append(name)
    if elsewhere:
        names = listed(elsewhere, NAMED_MAX)
        slings.notes.append(f"Slung, but in no list that was read: {names}.")


def _counts_more(sling: Sling, before: Sling) -> bool:
    """An open one counts more than a closed one; of two open ones the older, else the newer."""
    if sling.context.closed != before.context.closed:
        return before.context.closed
    times = (sling.enqueued_at or 0, before.enqueued_at or 0)
    return times[0] >= times[1] if sling.context.closed else times[0] < times[1]


def _sling(context: Bead) -> Sling:
    document = parse_json(str(context.row.get("description") or ""), "description", "")
    if not isinstance(document, dict):
        raise Invalid("description: not a table")
    version = document.get("version", VERSION)
    if version != VERSION or isinstance(version, bool):
        raise Invalid(f"version {version!r} is not known")
    fields = {
        key: take(document, key, reader)
        for key, reader in _READERS.items()
        if document.get(key) not in (None, "", False, 0)
    }
    bead = str(fields.get("work_bead_id") or next(iter(context.to("tracks")), ""))
    if not bead:
        raise Invalid("it names no bead")
    known = {*_READERS, "version"}
    others = {key: value for key, value in document.items() if key not in known}
    return Sling(bead, context, fields, others)


def _variables(lines: str) -> tuple[dict[str, str], list[str]]:
    """`key=value` a line; what is none is kept as it is."""
    pairs: dict[str, str] = {}
    rest = []
    for line in filter(None, map(str.strip, lines.splitlines())):
        key, mark, value = line.partition("=")
        if mark and key.strip():
            pairs[key.strip()] = value.strip()
        else:
            rest.append(line)
    return pairs, rest
