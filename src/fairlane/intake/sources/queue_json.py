"""`queue.json`: the queue of cool-workflow, old fields and new; with write-back.

`pending` and `ready` are open, `drained` and `cancelled` closed. `draining` is taken, and `leased`
until the lease expires. A `parked` entry becomes a parked task: `retry` brings it back, or the
source, when the entry is `pending` there again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

from fairlane.intake import atomic_write
from fairlane.intake.files import parse_json, read_text
from fairlane.intake.sources.base import Found, Item, LeftOut, Standing, Where, WriteBack
from fairlane.intake.trackers.json_places import Edit, applied, spans
from fairlane.model.errors import Invalid, Refused
from fairlane.model.instant import Instant, parse_instant, show_milliseconds
from fairlane.model.values import none_of, take, whole

SCHEMA_VERSION = 1
#: The standing that each status of an entry means.
STANDING = {
    "pending": Standing.OPEN,
    "ready": Standing.OPEN,
    "parked": Standing.OPEN,
    "leased": Standing.TAKEN,
    "draining": Standing.TAKEN,
    "drained": Standing.CLOSED,
    "cancelled": Standing.CLOSED,
}
#: A task's status -> what the entry is then called.
TOLD = {
    "queued": "ready",
    "leased": "leased",
    "running": "leased",
    "done": "drained",
    "parked": "parked",
    "canceled": "cancelled",
}
ELIGIBLE = ("pending", "ready")
#: Fields of an entry that are a task's.
_TAKEN_OVER = frozenset({"id", "priority", "status", "note", "nextEligibleAt", "schemaVersion"})
WHAT = "a queue.json of cool-workflow"
_BOM = "\ufeff"


def read(where: Where) -> Found:
    """Every entry, the one that waits longest first; of equal ones the smaller id."""
    if where.text is None and where.path is None:
        raise Invalid("there is nothing to read", f"Give {WHAT}.", code="unreadable")
    text = where.text if where.path is None else read_text(where.path, WHAT)
    items: list[Item] = []
    left_out: list[LeftOut] = []
    for number, entry in enumerate(_entries(_parsed(text or "", where.name)), start=1):
        place = f"{Path(where.name).name}: entry {number}"
        try:
            items.append(_item(entry, place))
        except Invalid as error:
            name = str(entry.get("id") or place) if isinstance(entry, dict) else place
            left_out.append(LeftOut(name, error.message, place, bad=True, sure=name != place))
    items.sort(key=lambda item: (item.created_at is None, item.created_at or 0, item.id))
    return Found(tuple(items), left_out=tuple(left_out))


def write(where: Where, updates: Sequence[WriteBack]) -> list[str]:
    """Put what became of entries into the file: unknown keys, order and schema stay."""
    if where.path is None or not updates:
        return []
    written: list[str] = []

    def turn(content: bytes) -> bytes:
        text = _decoded(content, where.name)
        document = _parsed(text.removeprefix(_BOM), where.name)
        rows = enumerate(_entries(document))
        entries = {entry["id"]: (entry, at) for at, entry in rows if _named(entry)}
        told = {
            update.id: entries[update.id]
            for update in updates
            if update.id in entries and _tell(entries[update.id][0], update)
        }
        written[:] = told
        return _changed(text, list(told.values())).encode()

    atomic_write.change(where.path, turn)
    return written


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"{name}: not UTF-8 text", f"Give {WHAT}.", code="unreadable") from error


def _parsed(text: str, name: str) -> dict[str, object]:
    document = parse_json(text, name, WHAT)
    if not isinstance(document, dict) or not isinstance(document.get("entries"), list):
        message = f"{name}: not a queue: there is no list `entries`"
        raise Invalid(message, f"Give {WHAT}.", code="unreadable")
    version = document.get("schemaVersion", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        message = f"{name}: schemaVersion {version!r} is not known"
        raise Invalid(message, f"Give one with schemaVersion {SCHEMA_VERSION}.", code="unreadable")
    return document


def _entries(document: dict[str, object]) -> list[object]:
    entries = document["entries"]
    return entries if isinstance(entries, list) else []


def _named(entry: object) -> TypeGuard[dict[str, object]]:
    return isinstance(entry, dict) and isinstance(entry.get("id"), str) and bool(entry["id"])


def _item(entry: object, place: str) -> Item:
    if not _named(entry):
        raise Invalid("an entry without an id")
    version = entry.get("schemaVersion", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise Invalid(f"schemaVersion {version!r} is not known")
    status = entry.get("status", "pending")
    standing = STANDING.get(status) if isinstance(status, str) else None
    if standing is None:
        raise none_of(status, STANDING).within("status")
    attempts = take({"attempts": 0} | entry, "attempts", whole(0))
    # As there, a lease without an end has expired.
    until = (_moment(entry, "leaseExpiresAt") or 0) if status == "leased" else None
    return Item(
        str(entry["id"]),
        _record(entry),
        standing,
        why=_why(str(status), entry) if standing is not Standing.OPEN else "",
        where=place,
        failures=attempts,
        created_at=_moment(entry, "enqueuedAt"),
        parked=str(entry.get("parkedReason") or "parked there") if status == "parked" else "",
        taken_until=until,
    )


def _why(status: str, entry: Mapping[str, object]) -> str:
    until = entry.get("leaseExpiresAt") if status == "leased" else None
    return f"it is {status} until {until}" if until else f"it is {status}"


def _moment(entry: Mapping[str, object], key: str) -> Instant | None:
    return take(entry, key, lambda value: None if value is None else parse_instant(str(value)))


def _record(entry: Mapping[str, object]) -> dict[str, object]:
    """What is to be done: an application or a workflow, with its inputs."""
    what = entry.get("workflowId") or entry.get("appId") or entry.get("runId") or entry["id"]
    prompt = str(entry.get("note") or f"Do {what}.")
    inputs = entry.get("inputs")
    if inputs:
        prompt += f"\n\nInputs:\n{json.dumps(inputs, indent=2, ensure_ascii=False)}"
    meta = {key: value for key, value in entry.items() if key not in _TAKEN_OVER}
    for counted in ("attempts", "leaseId", "leaseExpiresAt", "parkedReason", "drainedAt"):
        meta.pop(counted, None)
    return {
        "title": str(what),
        "prompt": prompt,
        "priority": entry.get("priority"),
        "not_before": entry.get("nextEligibleAt"),
        "meta": meta,
    }


def _tell(entry: dict[str, object], update: WriteBack) -> bool:
    """Whether anything about the entry is other than it was; what others have set stays."""
    facts = update.facts
    status, now = TOLD[update.status], entry.get("status", "pending")
    last = TOLD.get(str(facts.get("told")), "ready")
    if now not in (last, status) and not (last == "ready" and now in ELIGIBLE):
        return False
    if status == "ready" and now == "pending":
        status = now  # both are eligible
    lease = facts if status == "leased" else {}
    wanted = {
        "status": status,
        "attempts": entry.get("attempts") if status == "drained" else _attempts(entry, facts),
        "nextEligibleAt": _shown(facts.get("backoff_until")) or _own_wait(entry, facts),
        "leaseId": lease.get("lease"),
        "leaseExpiresAt": _shown(lease.get("lease_expires_at")),
        "parkedReason": update.reason or None if status == "parked" else None,
        "drainedAt": entry.get("drainedAt"),
    }
    if status == "drained" and not entry.get("drainedAt"):
        wanted["drainedAt"] = _shown(update.at)
    before = dict(entry)
    for key, value in wanted.items():
        if value is not None:
            entry[key] = value
        elif key in entry:
            del entry[key]
    return entry != before


def _own_wait(entry: Mapping[str, object], facts: Mapping[str, object]) -> object:
    """The wait that the entry came with; one that we wrote is over when the task says so."""
    return entry.get("nextEligibleAt") if facts.get("told") is None else None


def _attempts(entry: Mapping[str, object], facts: Mapping[str, object]) -> int | None:
    """Those that failed, here and before; an old file that counts none is not made to."""
    numbers = (entry.get("attempts"), facts.get("attempts"))
    before = max(number if isinstance(number, int) else 0 for number in numbers)
    count = facts.get("failures", before)
    return count if isinstance(count, int) and (count or "attempts" in entry) else None


def _shown(when: object) -> str | None:
    """A time as this file has it, in milliseconds."""
    if type(when) is not int:
        return str(when) if when else None
    return show_milliseconds(when)


def _changed(text: str, told: Sequence[tuple[Mapping[str, object], int]]) -> str:
    """The text with these entries, each by its place in the list; every other byte stays."""
    mark = len(text) - len(text.removeprefix(_BOM))
    places = spans(text[mark:], "entries") if told else []
    edits = []
    for entry, at in told:
        start, end = (place + mark for place in places[at])
        before = text[text.rfind("\n", 0, start) + 1 : start]
        try:
            edits.append(Edit(start, end, _dumped(entry, before, text[start:end])))
        except ValueError as error:  # a number that is too large for any program that reads it
            message = f"{entry['id']} has a number that cannot be kept"
            raise Refused(message, "Mend the entry; nothing was written.") from error
    return applied(text, edits)


def _dumped(entry: object, before: str, was: str) -> str:
    """An entry, set as it was: in one line, or moved in as its keys were."""
    first, *rest = was.split("\n")
    plain = was.isascii() or "\\ud" in was.lower()  # half a character can only be escaped
    if not rest:
        marks = (", ", ": ") if '": ' in was else (",", ":")
        return json.dumps(entry, separators=marks, ensure_ascii=plain, allow_nan=False)
    outer = len(before) - len(before.lstrip())
    step = max(1, len(rest[0]) - len(rest[0].lstrip()) - outer)
    end, sign = ("\r\n" if first[-1:] == "\r" else "\n"), ("\t" if rest[0][:1] == "\t" else " ")
    text = json.dumps(entry, indent=sign * step, ensure_ascii=plain, allow_nan=False)
    return text.replace("\n", end + sign * outer)
