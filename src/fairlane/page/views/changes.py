"""What an attempt changed: its files, and the diff of each; large ones come when asked for."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, cast
from urllib.parse import urlencode

from fairlane.engine.context import Context
from fairlane.model.documents.work import PatchDocument
from fairlane.model.errors import FairlaneError
from fairlane.model.task import Attempt
from fairlane.model.visible import visible
from fairlane.page.diff.draw import drawn
from fairlane.page.html import Child, Html, div, join, span, tag
from fairlane.page.parts import badge, card, empty
from fairlane.page.words import count, task_address
from fairlane.service.work import diff

TITLE = "What it changed"
#: A diff of at most so many lines and files is read with the page, a file of so many is open.
LINES_AT_ONCE, FILES_AT_ONCE, LINES_OPEN = 1500, 100, 250
#: Most files that are listed.
FILES_LISTED = 300
_CHANGES = {"A": "added", "M": "changed", "D": "removed", "R": "renamed"}


class Asked(NamedTuple):
    """Which attempt; `now`: also one that runs; `file`: this one is opened."""

    task: str
    attempt: int | None = None
    now: bool = False
    file: str | None = None


def panel(context: Context, asked: Asked) -> Html:
    """The card with every file."""
    attempt = _attempt(context, asked)
    if attempt is None:
        return tag("section", id="changes", hidden=True)
    if attempt.ended_at is None and not asked.now:
        return _running(asked, attempt)
    try:
        rows, cut = _rows(context, asked, attempt)
    except FairlaneError as error:
        if error.error_code == "no_work":
            return tag("section", id="changes", hidden=True, data_head=head_of(attempt))
        return card("changes", TITLE, empty(error.message, error.hint))
    return _card(asked, attempt, rows, cut)


def head_of(attempt: Attempt | None) -> str:
    """What tells one state of its work from another."""
    return str((attempt.work or {}).get("head") or "") if attempt else ""


def one_file(context: Context, asked: Asked) -> Html:
    """The diff of one file, whole as far as it is shown."""
    files = [asked.file] if asked.file else []
    found = diff(context, asked.task, asked.attempt, files=files)
    rows = [row for row in found["files"] if row["path"] == asked.file]
    return _body(asked, rows[0]) if rows else tag("p", "It does not differ.", class_="quiet-text")


def _attempt(context: Context, asked: Asked) -> Attempt | None:
    with context.store.read() as reading:
        rows = [row for row in reading.attempts(asked.task) if asked.attempt in (None, row.number)]
    return rows[-1] if rows else None


def _rows(context: Context, asked: Asked, attempt: Attempt) -> tuple[Sequence[PatchDocument], int]:
    """The files, with their patches where these are few, and how many are left out."""
    record = attempt.work or {}
    known = record.get("files")
    files = known if isinstance(known, list) else []
    lines = sum(int(row["added"]) + int(row["removed"]) for row in files)
    more = int(str(record.get("more") or 0))
    if lines > LINES_AT_ONCE or len(files) > FILES_AT_ONCE or more:
        rows = [cast("PatchDocument", {"old_path": None, "patch": None, **row}) for row in files]
        if asked.file:
            rows = [_with_patch(context, asked, row) for row in rows]
        return rows[:FILES_LISTED], more + max(0, len(rows) - FILES_LISTED)
    found = diff(context, asked.task, attempt.number)["files"]
    left = max(0, len(found) - FILES_LISTED)
    if sum(row["added"] + row["removed"] for row in found) > LINES_AT_ONCE:  # it runs, and has much
        found = [{**row, "patch": None} for row in found]
    return found[:FILES_LISTED], left


def _with_patch(context: Context, asked: Asked, row: PatchDocument) -> PatchDocument:
    if row["path"] != asked.file:
        return row
    found = diff(context, asked.task, asked.attempt, files=[row["path"]])["files"]
    return next((each for each in found if each["path"] == row["path"]), row)


def _running(asked: Asked, attempt: Attempt) -> Html:
    """While it runs nothing is compared unless somebody asks: that reads its whole work tree."""
    query = urlencode({"attempt": attempt.number, "now": 1})
    link = tag(
        "a", "Show what it has changed so far", class_="button", id="changes-now",
        href=f"{task_address(asked.task)}?{query}#changes",
    )  # fmt: skip
    return card("changes", TITLE, div("buttons", link), f"attempt {attempt.number} is at work")


def _card(asked: Asked, attempt: Attempt, rows: Sequence[PatchDocument], left: int) -> Html:
    if not rows:
        body = empty("No file was changed.")
        return card("changes", TITLE, body, f"attempt {attempt.number}")
    guarded = (attempt.work or {}).get("protected")
    protected = frozenset(guarded if isinstance(guarded, list) else ())
    added, removed = (sum(row[name] for row in rows) for name in ("added", "removed"))
    about = f"{count(len(rows) + left, 'file')}, attempt {attempt.number}"
    sides = tag(
        "button", "Side by side", type="button", id="diff-sides", class_="button small",
        aria_pressed="false",
    )  # fmt: skip
    tools = join(None if left else _counts(added, removed), div("needs-script roomy", sides))
    files = [_file(asked, attempt.number, row, protected) for row in rows]
    more = f"{count(left, 'more file')}: fairlane diff {shlex.quote(asked.task)} --stat"
    body = join(files, tag("p", more, class_="quiet-text") if left else None)
    return card("changes", TITLE, div("files", body), about, tools)


def _file(asked: Asked, number: int, row: PatchDocument, protected: Collection[str]) -> Html:
    lines = row["added"] + row["removed"]
    opened = row["path"] == asked.file or (row["patch"] is not None and 0 < lines <= LINES_OPEN)
    body = _body(asked, row) if row["patch"] is not None else _later(asked, number, row)
    kind = f"file {'protected' if row['path'] in protected else ''}".strip()
    return tag("details", _summary(row, row["path"] in protected), body, class_=kind, open=opened)


def _summary(row: PatchDocument, protected: bool) -> Html:
    change = _CHANGES.get(row["change"], "changed")
    renamed = row["old_path"] if row["old_path"] != row["path"] else None
    names: list[Child] = [span("mono", visible(renamed)), " → "] if renamed else []
    names.append(span("mono path", visible(row["path"])))  # in one line, whatever it holds
    marks = [span(f"change {row['change']}", change)]
    if protected:
        marks.append(badge("protected", "warn"))
    if row["binary"]:
        marks.append(badge("binary"))
    counted = _counts(row["added"], row["removed"]) if row["added"] + row["removed"] else None
    return tag("summary", span("names", join(*names)), *marks, counted)


def _counts(added: int, removed: int) -> Html:
    plus, minus = span("plus", f"+{added:,}"), span("minus", f"−{removed:,}")
    return span("counts num", plus, " ", minus)


def _body(asked: Asked, row: PatchDocument) -> Html:
    if row["binary"]:
        return tag("p", "A binary file: its contents are not shown.", class_="quiet-text left-out")
    words = f"fairlane diff {shlex.quote(asked.task)} -- {shlex.quote(row['path'])}"
    if row["patch"] is None:
        return tag("p", f"Too long to be shown here: {words}", class_="quiet-text left-out")
    return drawn(row["path"], row["patch"], words)


def _later(asked: Asked, number: int, row: Mapping[str, object]) -> Html:
    """The way to the diff of a file that is not here."""
    query = {"attempt": number, "file": str(row["path"]), **({"now": 1} if asked.now else {})}
    part = urlencode({"task": asked.task, **query})
    link = tag(
        "a", "Show its diff", class_="load", data_part=f"/page/changes?{part}",
        href=f"{task_address(asked.task)}?{urlencode(query)}#changes",
    )  # fmt: skip
    return tag("p", link, class_="left-out")
