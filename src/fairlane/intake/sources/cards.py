"""Cards: a folder of Markdown files with front matter; `agent_flow` makes one of them work.

An item is known by its phase and its name, so a card that moves between `backlog`, `in-progress`
and `done` stays the same item. A card without `parallelizable` is not parallel. `branch` is the
branch that the work goes to, not where it starts: it is kept in `meta`, as are all other keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from fairlane.careful_files import read_file
from fairlane.intake import atomic_write, frontmatter
from fairlane.intake.outline import leftover
from fairlane.intake.sources import base
from fairlane.model.errors import Invalid, Refused
from fairlane.model.instant import to_datetime
from fairlane.model.names import OLD_NAME
from fairlane.model.values import is_name, none_of, wrong

WHAT = "a folder of cards, or one card"
LANES = ("backlog", "in-progress", "done")
OVER = "done"
IDLE = "idle"
#: The `agent_status` of a card for the status of its task.
SAID = {
    "queued": "queued", "leased": "running", "running": "running", "done": "succeeded",
    "parked": "failed", "canceled": "canceled",
}  # fmt: skip
CLOSED = ("succeeded", "failed", "canceled")
CARD_BYTES_MAX = 1_000_000
REASON_MAX = 200
#: A history line of ours.
_LINE = "- {day:%Y-%m-%d} - Fairlane: {status}"
_OURS = re.compile(rf"- \S+ - (?:Fairlane|{OLD_NAME.title()}): (\w+)")
_NOT_META = ("agent_flow", "agent_status", "parallelizable")
_PHASE = re.compile("phase-")
_NUMBER = re.compile(r"(\d+)")
_HEADING = re.compile(r"^#+[ \t]+(.+?)[ \t#]*\r?$", re.MULTILINE)


class Card(NamedTuple):
    """One file, and how it is known."""

    id: str
    phase: str | None
    lane: str | None
    path: Path


def read(where: base.Where) -> base.Found:
    """Every card in the folder, by its path."""
    root, folder = _root(where)
    items: dict[str, base.Item] = {}
    left_out: list[base.LeftOut] = []
    for card in _cards(root):
        try:
            result = _item(card, _text(card.path, folder))
        except Invalid as error:
            place = _shown(str(card.path))
            result = base.LeftOut(_shown(card.id), error.message, place, bad=True, sure=True)
        if isinstance(result, base.Item) and card.id in items:
            reason = f"the same card as {items[card.id].where}"
            result = base.LeftOut(card.id, reason, str(card.path), bad=True)
        if isinstance(result, base.Item):
            items[card.id] = result
        else:
            left_out += [result] if result else []
    phases = dict.fromkeys(item.group for item in items.values() if item.group)
    groups = tuple(
        base.Collection(phase, _name(phase), phase.replace("-", " ")) for phase in phases
    )
    return base.Found(tuple(items.values()), groups, tuple(left_out))


def write(where: base.Where, updates: Sequence[base.WriteBack]) -> list[str]:
    """Write the status of its task into each card, unless a person has changed it since."""
    root, folder = _root(where)
    paths = {card.id: card.path for card in reversed(list(_cards(root)))}
    written = []
    for update in updates:
        if (path := paths.get(update.id)) is None:
            continue
        try:
            changed = atomic_write.change(path, partial(_updated, update=update), folder)
        except Invalid as error:
            raise Refused(f"{path}: {error.message}", error.hint) from error
        if changed and update.id not in written:
            written.append(update.id)
    return written


def _root(where: base.Where) -> tuple[Path, Path]:
    """What was given, and the folder that no card leaves."""
    if where.path is None or not where.path.exists():
        what = "cards are files" if where.path is None else f"{where.path}: there is no such folder"
        raise Invalid(what, f"Give {WHAT}.", code="unreadable")
    return where.path, where.path if where.path.is_dir() else where.path.parent


def _cards(root: Path) -> Iterator[Card]:
    """Every Markdown file, by its path; what is hidden is no card."""
    if not root.is_dir():
        yield _card(root, root.parent)
        return
    for folder, folders, files in os.walk(root):
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=_place)
        for name in sorted(files, key=_place):
            if name.lower().endswith(".md") and not name.startswith("."):
                yield _card(Path(folder, name), root)


def _place(name: str) -> list[tuple[int, str]]:
    """Sort numbers as numbers: phase-2 before phase-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(name)]


def _card(path: Path, root: Path) -> Card:
    """Known by its phase and what lies below it, whichever folder was given."""
    parts = path.relative_to(root).parts[:-1]
    if not any(map(_PHASE.match, parts)):  # the folder given may lie inside a phase
        above = path.absolute().parent.parts
        phases = [at for at, part in enumerate(above) if _PHASE.match(part)]
        parts = above[phases[-1] :] if phases else parts
    first = next((at for at, part in enumerate(parts) if _PHASE.match(part)), None)
    phase, below = (None, parts) if first is None else (parts[first], parts[first + 1 :])
    lane = next((part for part in below if part.lower() in LANES), None)
    folders = [part for part in below if part != lane]
    name = "/".join([*([phase] if phase else []), *folders, path.stem])
    return Card(name, phase, lane.lower() if lane else None, path)


def _shown(path: str) -> str:
    """A path as text, though its bytes may be none."""
    return path.encode(errors="backslashreplace").decode()


def _text(path: Path, folder: Path) -> str:
    try:
        if not path.resolve(strict=True).is_relative_to(folder.resolve()):
            raise Invalid("it is a link that leads out of the folder")
        return _decoded(read_file(path, CARD_BYTES_MAX))
    except OSError as error:
        raise Invalid(f"it cannot be read: {error.strerror}") from error


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Invalid("it is not UTF-8 text") from error


def _item(card: Card, text: str) -> base.Item | base.LeftOut | None:
    """What a file is: work, a card that is not for agents, or no card at all."""
    page = frontmatter.split(text)
    if page is None:
        return None
    fields = page.fields()
    if not card.id.isprintable():
        raise Invalid("its path is not plain text")
    flow = fields.get("agent_flow")
    if not flow:
        return base.LeftOut(card.id, "no agent_flow", str(card.path))
    if not is_name(flow):
        raise wrong("a name", flow).within("agent_flow")
    parallel = fields.get("parallelizable") or False
    if not isinstance(parallel, bool):
        raise wrong("true or false", parallel).within("parallelizable")
    body = page.body.replace("\r\n", "\n")
    heading = _HEADING.search(body)
    title = heading[1] if heading else card.path.stem
    record = {
        "id": _name(card.id),
        "title": title,
        "prompt": frontmatter.without_history(body).strip() or title,
        "kind": flow,
        "parallel": parallel,
        "meta": leftover(fields, _NOT_META),
    }
    standing, why = _standing(card.lane, _status(fields), page.body)
    return base.Item(card.id, record, standing, group=card.phase, why=why, where=str(card.path))


def _status(fields: dict[str, object]) -> str:
    return str(fields.get("agent_status") or "").strip() or IDLE


def _standing(lane: str | None, status: str, body: str) -> tuple[base.Standing, str]:
    """What we wrote ourselves is no news: what is queued is open, what failed can be retried."""
    why, ours = f"agent_status is {status}", _last_said(body) == status
    if lane == OVER:
        return base.Standing.CLOSED, f"it is in {OVER}/"
    if status == IDLE or (status == "queued" and ours):
        return base.Standing.OPEN, ""
    if status == "succeeded" or (status in CLOSED and not ours):
        return base.Standing.CLOSED, why
    if status in {*SAID.values()}:
        return base.Standing.TAKEN, why
    raise none_of(status, [IDLE, *dict.fromkeys(SAID.values())]).within("agent_status")


def _updated(content: bytes, update: base.WriteBack) -> bytes:
    """The card with the status and one more line of history; itself where neither is due."""
    text = _decoded(content)
    page = frontmatter.split(text)
    if page is None:
        return content
    now, wanted = _status(page.fields()), SAID[update.status]
    last = SAID.get(str(update.facts.get("told")), IDLE)
    if now == wanted or now not in (last, _last_said(page.body)):
        return content
    changed = frontmatter.split(frontmatter.put(text, "agent_status", wanted))
    assert changed is not None
    line = _LINE.format(day=to_datetime(update.at), status=wanted)
    if update.reason and wanted == "failed":
        reason = filter(str.isprintable, " ".join(update.reason.split()))
        line += f" - {''.join(reason)[:REASON_MAX]}"
    rest = changed.rest.removesuffix(changed.body)
    rest += frontmatter.with_history_line(changed.body, line, changed.line_end)
    return changed._replace(rest=rest).text().encode()


def _last_said(body: str) -> str | None:
    """The status in the last line of history, where that line is ours."""
    line = _OURS.match(frontmatter.last_history_line(body))
    return line[1] if line else None


def _name(text: str) -> str:
    """A card's id as the name of a task: its own where it fits, else one that no other has."""
    if "." not in text and is_name(dotted := text.replace("/", ".")):
        return dotted
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")[:100]
    return f"{plain or 'card'}-{sha256(text.encode()).hexdigest()[:8]}"
