"""`jsonl`: a file with one task a line, with the model's field names or what others call them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from fairlane.intake import fields
from fairlane.intake.files import path_of, read_text
from fairlane.intake.sources.base import Found, Item, LeftOut, Standing, Where
from fairlane.model.errors import Invalid
from fairlane.model.values import once, wrong

WHAT = "a file with one task a line, or - for standard input"
#: What others call a field -> the model's name. The first that is there counts.
SPELLED = {
    "name": "title",
    "summary": "title",
    "description": "prompt",
    "body": "prompt",
    "instructions": "prompt",
    "depends_on": "needs",
    "dependsOn": "needs",
    "dependencies": "needs",
    "type": "kind",
    "notBefore": "not_before",
    "maxAttempts": "max_attempts",
    "metadata": "meta",
}
#: What others call a task that somebody works on, and one that is over.
TAKEN = frozenset({"in_progress", "in-progress", "doing", "running", "leased", "claimed"})
CLOSED = frozenset(
    {"done", "closed", "completed", "complete", "canceled", "cancelled", "succeeded"}
)


def read(where: Where) -> Found:
    """Every line that is a task; a line that is none is named."""
    name = "stdin" if where.path is None else where.path.name
    items: list[Item] = []
    left_out: list[LeftOut] = []
    nameless: dict[str, int] = {}
    text = read_text(path_of(where, WHAT), WHAT) if where.text is None else where.text
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            items.append(_item(_row(line), place, nameless))
        except Invalid as error:
            left_out.append(LeftOut(place, error.message, place, bad=True))
    return Found(tuple(items), left_out=tuple(left_out))


def _row(line: str) -> dict[str, object]:
    try:
        row = json.loads(line, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise Invalid(f"not a task: {line[:60]!r}")
    return row


def _item(row: dict[str, object], place: str, nameless: dict[str, int]) -> Item:
    standing, why = _standing(row)
    record = _record(row)
    needs = record.pop("needs", None) or ()
    named = record.pop("id", None)
    if named == "" or type(named) not in (str, int, type(None)):
        raise wrong("a name", named).within("id")
    item = _digest(row, nameless) if named is None else str(named)
    return Item(item, record, standing, _ids(needs), why=why, where=place)


def _standing(row: Mapping[str, object]) -> tuple[Standing, str]:
    """The standing that the task's own `status` means, if it has one."""
    status = str(row.get("status") or "").strip().lower()
    if status in CLOSED:
        return Standing.CLOSED, f"its status is {status}"
    if status in TAKEN:
        return Standing.TAKEN, f"its status is {status}"
    return Standing.OPEN, ""


def _record(row: Mapping[str, object]) -> dict[str, object]:
    """The model's fields; `meta` takes everything else."""
    record = {key: value for key, value in row.items() if key in fields.READERS}
    rest: dict[str, object] = {}
    for key, value in row.items():
        if key in fields.READERS or key == "status":
            continue
        meant = SPELLED.get(key)
        if meant is None or meant in record:
            rest[key] = value
        else:
            record[meant] = value
    if rest:
        record["meta"] = rest | dict(fields.meta(record.get("meta") or {}))
    return record


def _ids(needs: object) -> tuple[str, ...]:
    named = [needs] if isinstance(needs, str) else needs
    if not isinstance(named, list | tuple) or any(type(need) not in (str, int) for need in named):
        raise wrong("a list of ids", needs).within("needs")
    return tuple(dict.fromkeys(str(need) for need in named))


def _digest(row: Mapping[str, object], nameless: dict[str, int]) -> str:
    """An id from the content of a task without one; a repeated line gets a number."""
    said = json.dumps(row, sort_keys=True, ensure_ascii=False)
    digest = sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    nameless[digest] = nameless.get(digest, 0) + 1
    return f"line-{digest}" + (f"-{nameless[digest]}" if nameless[digest] > 1 else "")
