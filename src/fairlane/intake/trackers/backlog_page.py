"""The page of a Backlog.md task: what it asks for, and what is written into it."""

from __future__ import annotations

import re

from fairlane.intake.markdown import frontmatter
from fairlane.intake.sources.base import WriteBack
from fairlane.model.instant import Instant, to_datetime

REASON_MAX = 200
_COMMENT = re.compile(r"(?<![ \t])[ \t]*<!--.*?(?:-->|\Z)[ \t]*\n?", re.DOTALL)
_COMMENT_MARK = re.compile("<!--|-->")
#: A note of ours; it is no part of what is to be done.
_NOTE = "- {at:%Y-%m-%d %H:%M} Fairlane: {words}"
_OURS = re.compile(r"^- \d{4}-\d\d-\d\d(?: \d\d:\d\d)? Fairlane: (.*)(?:\n|\Z)", re.MULTILINE)
_NOTES = "Implementation Notes"
_NOTES_TITLE = re.compile(rf"^## {_NOTES}[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_EMPTY_NOTES = re.compile(rf"^## {_NOTES}\s*(?=^## |\Z)", re.MULTILINE)
_TITLE = re.compile(r"^## ", re.MULTILINE)
_BEGIN, _END = "<!-- SECTION:NOTES:BEGIN -->", "<!-- SECTION:NOTES:END -->"
#: The sections that its subtasks are told.
_ASKED = re.compile(
    r"^## (?:Description|Acceptance Criteria)[ \t]*\n(?:(?!## ).*(?:\n|\Z))*", re.MULTILINE
)


def shown(body: str) -> str:
    """What is to be done: the page without comments and without notes of ours."""
    text = _OURS.sub("", _COMMENT.sub("", body.replace("\r\n", "\n")))
    return _EMPTY_NOTES.sub("", text).strip()


def asked(body: str) -> str:
    """Its description and its acceptance criteria."""
    return "\n\n".join(part.strip() for part in _ASKED.findall(shown(body)))


def with_status(text: str, status: str) -> str:
    """The file with another status."""
    return frontmatter.put(text, "status", status)


def with_date(text: str, at: Instant) -> str:
    """The file as changed at this time, as the program writes it."""
    return frontmatter.put(text, "updated_date", f"{to_datetime(at):%Y-%m-%d %H:%M}")


def notes(body: str) -> list[str]:
    """What we have written into it, oldest first: `done`, `parked: exit 1`."""
    return _OURS.findall(body.replace("\r\n", "\n"))


def with_note(text: str, update: WriteBack) -> str:
    """The file with a line in its implementation notes, unless that is the last one of ours."""
    page = frontmatter.split(text)
    if page is None:
        return text
    reason = f": {update.reason}" if update.status == "parked" else ""
    said = _COMMENT_MARK.sub(" ", update.status + reason)
    words = "".join(filter(str.isprintable, " ".join(said.split())))[:REASON_MAX].rstrip(" :")
    if notes(page.body)[-1:] == [words]:
        return text
    line = _NOTE.format(at=to_datetime(update.at), words=words)
    body = _noted(page.body, line, page.line_end)
    return page._replace(rest=page.rest.removesuffix(page.body) + body).text()


def _noted(body: str, line: str, end: str) -> str:
    """The page with a line at the end of its notes; the section is made where there is none."""
    title = _NOTES_TITLE.search(body)
    if title is None:
        gap = "" if not body or body.endswith("\n") else end
        section = end.join(["", f"## {_NOTES}", "", _BEGIN, line, _END, ""])
        return f"{body}{gap}{section}"
    after = _TITLE.search(body, title.end())
    stop = body.find(_END, title.end(), after.start() if after else len(body))
    if stop < 0:
        stop = after.start() if after else len(body)
    before = body[:stop].rstrip()
    rest = body[stop:]
    gap = end if rest.startswith(_END) else body[len(before) : stop] or end
    return f"{before}{end}{line}{gap}{rest}"
