"""Beads: what `bd list` and `bd ready` print, or an export of it; epics and convoys are groups.

Priorities 0 to 4 become 0, 50, 100, 150 and 200: beads' default is Fairlane's. What blocks a bead,
or an epic that it is part of, comes first; what only beads can know is left to `bd ready`. A bead
is claimed when its task starts and closed when it is done; its own text is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlane.intake.beads import bd
from fairlane.intake.beads.bead import COLLECTIONS, TOWN, WHAT, Bead, Web, parse, read_all
from fairlane.intake.beads.sling import SORT, Sling, Slings, read_slings
from fairlane.intake.files import read_text
from fairlane.intake.naming import name_for
from fairlane.intake.outline import prompt_of
from fairlane.intake.sources.base import (
    Collection,
    Found,
    Item,
    LeftOut,
    Standing,
    Where,
    WriteBack,
)
from fairlane.model.errors import Invalid, Refused
from fairlane.model.instant import parse_instant, show_instant
from fairlane.model.names import OLD_NAME
from fairlane.model.record import replace

PROGRAM = bd.PROGRAM
PRIORITIES = {"0": 0, "1": 50, "2": 100, "3": 150, "4": 200}
TAKEN = ("in_progress", "hooked", "pinned")
#: What is kept in `meta`: nothing that changes while somebody works on it.
META = (
    "labels", "owner", "spec_id", "external_ref", "estimated_minutes", "due_at", "created_by",
    "source_system", "metadata",
)  # fmt: skip
#: What to do with a bead when its task has this status.
SAID = {"leased": "claim", "running": "claim", "done": "close"}


def read(where: Where) -> Found:
    """Every bead that is listed; from `bd` itself also which of them are ready."""
    path = where.path
    if where.text is not None:
        return _found(parse(where.text, where.name))
    if where.command is not None and "--json" in where.command:  # the whole question
        return _found(parse(bd.listed(where, where.command), where.name))
    if path is not None and where.command is None and (path.name == ".beads" or not path.is_dir()):
        file = path / "issues.jsonl" if path.is_dir() else path
        return _found(parse(read_text(file, WHAT), str(file)))
    rows, ready, note = bd.everything(where)
    found = _found(rows, ready)
    return replace(found, notes=(*found.notes, note)) if note else found


def write(where: Where, updates: Sequence[WriteBack]) -> list[str]:
    """Claim what has started, close what is done; what others have taken or closed stays."""
    written = []
    for update in updates:
        deed = SAID.get(update.status)
        if deed is None or deed == SAID.get(str(update.facts.get("told"))):
            continue
        bead = _asked(where, update.id)
        ours = bead.status == "open" or bead.row.get("assignee") in (bd.ACTOR, OLD_NAME)
        if bead.closed or not ours or (deed == "claim" and bead.status != "open"):
            continue
        reason = update.reason or f"Done by Fairlane as task {update.task}"
        words = ("--claim",) if deed == "claim" else ("--reason", reason)
        bd.tell(where, "update" if deed == "claim" else "close", update.id, *words)
        written.append(update.id)
    return written


def _asked(where: Where, name: str) -> Bead:
    """One bead as it is now."""
    beads, _ = read_all(parse(bd.tell(where, "show", name, "--json"), "bd show"))
    if name not in beads:
        raise Refused(f"bd show {name}: there is no such bead", "It may have been removed.")
    return beads[name]


def _found(rows: list[tuple[str, object]], ready: set[str] | None = None) -> Found:
    beads, left_out = read_all(rows)
    slings = read_slings(beads)
    web, items = Web(beads, slings.convoys), []
    left_out += slings.left_out
    for bead in beads.values():
        if bead.not_work and bead.sort != SORT and not bead.closed:
            also = tuple(web.groups(bead))
            left_out.append(LeftOut(bead.id, bead.not_work, bead.where, also=also))
        elif bead.is_work:
            try:
                items.append(_item(bead, web, ready, slings))
            except Invalid as error:
                left_out.append(LeftOut(bead.id, error.message, bead.where, bad=True, sure=True))
    items.sort(key=lambda item: slings.place(item.id))
    groups = [
        Collection(bead.id, name_for(bead.id), _title(bead), next(iter(web.groups(bead)), None))
        for bead in beads.values()
        if bead.sort in COLLECTIONS
    ]
    absent = dict.fromkeys(name for name in slings.convoys.values() if name not in beads)
    groups += [Collection(name, name_for(name)) for name in absent]
    left_out += _of_the_town(beads)
    return Found(tuple(items), tuple(groups), tuple(left_out), tuple(slings.notes))


def _of_the_town(beads: Mapping[str, Bead]) -> list[LeftOut]:
    """Members of convoys that are the town's own, and therefore in another list."""
    return [
        LeftOut(name, f"{TOWN} beads belong to the town itself; they are not work", also=(bead.id,))
        for bead in beads.values()
        if bead.sort == "convoy" and not bead.closed
        for name in bead.to("tracks")
        if name.startswith(TOWN) and name not in beads
    ]


def _item(bead: Bead, web: Web, ready: set[str] | None, slings: Slings) -> Item:
    """One bead with what it waits for; where `bd` was asked, it has the last word."""
    standing, why, hold = _standing(bead)
    needs, reasons = web.blockers(bead, ready is not None and bead.id in ready)
    reasons = [hold, *reasons] if hold else reasons
    if ready is not None and standing is Standing.OPEN:
        if bead.id in ready:
            reasons = []
        elif not (needs or reasons or bead.row.get("defer_until")):
            reasons = ["bd ready does not list it"]
    group, *also = web.groups(bead) or (None,)
    sling = slings.by_bead.get(bead.id)
    scheduled = sling if sling is not None and not sling.unasked else None
    return Item(
        bead.id, _record(bead, scheduled), standing, tuple(needs), "; ".join(reasons), group, why,
        bead.where, also=tuple(also),
        unasked=slings.unasked(bead.id) if standing is Standing.OPEN else "",
        failures=scheduled.failures if scheduled else 0,
        parked=scheduled.parked if scheduled else "",
        created_at=scheduled.enqueued_at if scheduled else None,
    )  # fmt: skip


def _standing(bead: Bead) -> tuple[Standing, str, str]:
    """Its standing, why it is taken or closed, and why it may not start yet."""
    row, status = bead.row, bead.status
    if bead.closed:
        return Standing.CLOSED, str(row.get("close_reason") or "closed"), ""
    if status in TAKEN or row.get("pinned"):
        word = status if status in TAKEN else "pinned"
        return Standing.TAKEN, f"{word} by {row['assignee']}" if row.get("assignee") else word, ""
    if status == "deferred" and row.get("defer_until"):
        return Standing.OPEN, "", f"deferred until {row['defer_until']}"
    return Standing.OPEN, "", "" if status == "open" else f"its status is {status}"


def _record(bead: Bead, sling: Sling | None) -> dict[str, object]:
    """The model's fields. A time until which it is deferred needs no further word from beads."""
    row, title = bead.row, _title(bead)
    sections = [
        ("", row.get("description")), ("Design", row.get("design")),
        ("Acceptance criteria", row.get("acceptance_criteria")), ("Notes", row.get("notes")),
        ("Instructions", sling.fields.get("args") if sling else None),
    ]  # fmt: skip
    slung = sling.record() if sling else {}
    meta = {"type": bead.sort} | {key: row[key] for key in META if row.get(key)}
    if slung:
        meta["sling"] = slung.pop("sling")
    record = {
        "title": title,
        "prompt": prompt_of(title, sections),
        "priority": _priority(row.get("priority", 2)),
        "meta": meta,
        **slung,
    }
    if row.get("defer_until"):
        record["not_before"] = show_instant(parse_instant(str(row["defer_until"])))
    return record


def _priority(value: object) -> int:
    known = PRIORITIES.get(str(value).upper().removeprefix("P"))
    if known is None:
        raise Invalid(f"priority: {value!r} is none of 0 to 4")
    return known


def _title(bead: Bead) -> str:
    return " ".join(str(bead.row.get("title") or "").split()) or bead.id
