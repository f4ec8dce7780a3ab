"""Cards: a folder of Markdown files with front matter; `agent_flow` makes one of them work.

An item is known by its phase and its name, so a card that moves between `backlog`, `in-progress`
and `done` stays the same item. A card without `parallelizable` is not parallel. `branch` is the
branch that the work goes to, not where it starts: it is kept in `meta`, as are all other keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fairlane.careful_files import read_file
from fairlane.intake import atomic_write
from fairlane.intake.files import check_inside, decoded
from fairlane.intake.markdown import frontmatter
from fairlane.intake.markdown.card import COLUMNS, Card, cards_in, names
from fairlane.intake.outline import leftover
from fairlane.intake.sources import base
from fairlane.model.errors import Invalid, Refused
from fairlane.model.instant import to_datetime
from fairlane.model.names import OLD_NAME
from fairlane.model.values import is_name, none_of, wrong

WHAT = "a folder of cards, or one card"
OVER = COLUMNS[-1]
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
_HEADING = re.compile(r"^#+[ \t]+([^ \t\r\n].*)$", re.MULTILINE)


def read(where: base.Where) -> base.Found:
    """Every card in the folder, by its path."""
    root, folder = _root(where)
    items: dict[str, base.Item] = {}
    left_out: list[base.LeftOut] = []
    cards = list(cards_in(root))
    tasks = names(card.id for card in cards)
    for card in cards:
        try:
            result = _item(card, tasks[card.id], _text(card.path, folder))
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
    phases = names(item.group for item in items.values() if item.group)
    groups = tuple(
        base.Collection(phase, name, phase.replace("-", " ")) for phase, name in phases.items()
    )
    return base.Found(tuple(items.values()), groups, tuple(left_out))


def write(where: base.Where, updates: Sequence[base.WriteBack]) -> list[str]:
    """Write the status of its task into each card, unless a person has changed it since."""
    root, folder = _root(where)
    paths = {card.id: card.path for card in reversed(list(cards_in(root)))}
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


def _shown(path: str) -> str:
    """A path as text, though its bytes may be none."""
    return path.encode(errors="backslashreplace").decode()


def _text(path: Path, folder: Path) -> str:
    check_inside(path, folder)
    try:
        return decoded(read_file(path, CARD_BYTES_MAX))
    except OSError as error:
        raise Invalid(f"it cannot be read: {error.strerror}") from error


def _item(card: Card, task: str, text: str) -> base.Item | base.LeftOut | None:
    """What a file is: work, a card that is not for agents, or no card at all."""
    page = frontmatter.split(text)
    if page is None:
        if card.column is None and text.strip():
            return None
        raise Invalid("there is no front matter" if text.strip() else "it is empty")
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
    title = (heading[1].rstrip("# \t\r") if heading else "") or card.path.stem
    record = {
        "id": task,
        "title": title,
        "prompt": frontmatter.without_history(body).strip() or title,
        "kind": flow,
        "parallel": parallel,
        "meta": leftover(fields, _NOT_META),
    }
    status, ours = _status(fields), _said(page.body)
    again = str(len(ours)) if _put_back(status, ours) else ""
    standing, why = _standing(card.column, status, page.body, bool(again))
    return base.Item(
        card.id, record, standing, group=card.phase, why=why, where=str(card.path), again=again
    )


def _status(fields: dict[str, object]) -> str:
    return str(fields.get("agent_status") or "").strip() or IDLE


def _put_back(status: str, ours: Sequence[str]) -> bool:
    """Whether a person wants it again: an end is the last that we wrote, and it is gone."""
    return status in (IDLE, "queued") and bool(ours) and ours[-1] in CLOSED


def _standing(column: str | None, status: str, body: str, again: bool) -> tuple[base.Standing, str]:
    """What we wrote ourselves is no news: what is queued is open, what failed can be retried."""
    why, ours = f"agent_status is {status}", _last_said(body) == status
    if column == OVER:
        return base.Standing.CLOSED, f"it is in {OVER}/"
    if status == IDLE or again or (status == "queued" and ours):
        return base.Standing.OPEN, ""
    if status == "succeeded" or (status in CLOSED and not ours):
        return base.Standing.CLOSED, why
    if status in {*SAID.values()}:
        return base.Standing.TAKEN, why
    raise none_of(status, [IDLE, *dict.fromkeys(SAID.values())]).within("agent_status")


def _updated(content: bytes, update: base.WriteBack) -> bytes:
    """The card with the status and one more line of history; itself where neither is due."""
    text = decoded(content)
    page = frontmatter.split(text)
    if page is None:
        return content
    now, wanted = _status(page.fields()), SAID[update.status]
    last = SAID.get(str(update.facts.get("told")), IDLE)
    if now == wanted:
        return content
    if now not in (last, _last_said(page.body)):
        starts_again = wanted not in CLOSED and _put_back(now, _said(page.body))
        if not starts_again:  # a person's word stays
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


def _said(body: str) -> list[str]:
    """Every status that we wrote into the history, the newest last."""
    lines = (_OURS.match(line) for line in frontmatter.history_lines(body))
    return [line[1] for line in lines if line]


def _last_said(body: str) -> str | None:
    """The status in the last line of history, where that line is ours."""
    lines = frontmatter.history_lines(body)
    line = _OURS.match(lines[-1]) if lines else None
    return line[1] if line else None
