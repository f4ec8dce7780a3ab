"""What the agent said and did: entries of a transcript, the newest at the end, results folded."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

from fairlane.engine.context import Context
from fairlane.model.documents.parts import CountersDocument
from fairlane.model.documents.tasks import EntryDocument
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import parse_instant
from fairlane.page.html import Attribute, Child, Html, div, icon, join, span, tag
from fairlane.page.parts import card, empty
from fairlane.page.words import count, moment, raw_address, short, task_address
from fairlane.service.transcript_parts import Part, part

TITLE = "What the agent said"
#: How much of a folded text is shown in its line, and how many words a tool's line has.
LINE_LETTERS = 160
_NAMES = {"error": "Error", "answer": "Answer"}


class Asked(NamedTuple):
    """Which part of which attempt."""

    task: str
    attempt: int | None = None
    before: int | None = None
    cursor: str | None = None


def panel(context: Context, asked: Asked, choice: Html, started: bool) -> Html:
    """The card: the end of the transcript, and what a reader can do with it."""
    found = Part(0, [], 0, "", ended=False)
    try:
        if started:
            found = part(context, asked.task, asked.attempt, before=asked.before)
    except FairlaneError as error:  # its run folder was changed, or removed
        return card("transcript", TITLE, empty(error.message, error.hint), "", choice)
    listed = tag("ol", entries(found), id="entries", class_="entries")
    box = div(
        "transcript", earlier(asked.task, found), listed, id="transcript-box", tabindex=0,
        role="log", aria_label="Transcript", aria_live="off",
    )  # fmt: skip
    place: dict[str, Attribute] = {
        "data_attempt": found.attempt, "data_cursor": found.cursor, "data_start": found.start,
        "data_ended": found.ended, "data_before": asked.before,
    }  # fmt: skip
    about = tag("p", "", id="transcript-about", class_="quiet-text num", role="status")
    state = div("", about, box, id="transcript-state", **place)
    return card("transcript", TITLE, state, "", join(choice, _tools()))


def _tools() -> Html:
    search = tag(
        "input", type="search", id="transcript-find", placeholder="Filter",
        aria_label="Filter the transcript", autocomplete="off", spellcheck="false",
    )  # fmt: skip
    follow = tag("input", type="checkbox", id="transcript-follow", checked=True)
    follows = tag("label", follow, span("", "Follow"), class_="chip needs-script")
    finds = div("finds needs-script", icon("find"), search, tag("kbd", "f", aria_hidden="true"))
    return join(finds, follows)


def choice(task: str, attempts: list[int], chosen: int) -> Html:
    """Links to the attempts, the newest ones if there are many, and to the file as it is."""
    links = [
        tag(
            "a", number, href=f"{task_address(task)}?attempt={number}#transcript",
            aria_current="true" if number == chosen else None, aria_label=f"Attempt {number}",
        )
        for number in attempts[-8:]
    ]  # fmt: skip
    nav = tag("nav", span("", "Attempt"), links, class_="spans", aria_label="Attempts to read")
    raw = tag("a", "Raw file", href=raw_address(task, chosen), class_="button small")
    many = nav if len(attempts) > 1 else None
    return div("choice", many, raw if chosen else None, id="transcript-choice")


def earlier(task: str, found: Part) -> Html:
    """The way to what stands before; empty at the beginning."""
    query = urlencode({"attempt": found.attempt, "before": found.start})
    return tag(
        "a", "Show earlier", href=f"{task_address(task)}?{query}#transcript", class_="earlier",
        id="transcript-earlier", hidden=not found.start,
    )  # fmt: skip


def entries(found: Part) -> list[Html]:
    """The entries as a list; a time is told where it differs from the one before."""
    rows, before = [], None
    for offset, entry in found.entries:
        fresh = entry["at"] is not None and entry["at"] != before
        before = entry["at"] or before
        rows.append(_entry(offset, entry, fresh))
    return rows


def _entry(offset: int, entry: EntryDocument, timed: bool) -> Html:
    kind = entry["kind"]
    at = moment(parse_instant(entry["at"])) if timed and entry["at"] else None
    body = _BODIES.get(kind, _words)(entry)
    cut = tag("p", "Only its beginning: the raw file has the rest.", class_="quiet-text")
    what = div("what", body, cut if entry["truncated"] else None)
    return tag("li", span("at", at), what, class_=f"entry {kind}", data_offset=offset)


def _words(entry: EntryDocument) -> Html:
    return tag("pre", entry["text"])


def _named(entry: EntryDocument) -> Html:
    return join(span("kind", _NAMES[entry["kind"]]), _words(entry))


def _tool(entry: EntryDocument) -> Html:
    name, argument = span("tool-name", entry["tool"] or "?"), entry["argument"] or ""
    if len(argument) <= LINE_LETTERS:
        return tag("p", name, " ", tag("code", argument) if argument else None, class_="tool-line")
    short_one = tag("code", argument[:LINE_LETTERS], "…")
    return tag("details", tag("summary", name, " ", short_one), tag("pre", argument))


def _result(entry: EntryDocument) -> Html:
    """A line of it, which opens."""
    text = entry["text"]
    first = next((line for line in text.split("\n") if line.strip()), "")
    if not first:
        return tag("p", "no output", class_="quiet-text")
    if text.strip() == first.strip() and len(first) <= LINE_LETTERS:
        return tag("p", tag("code", first), class_="tool-line")
    cut = "…" if len(first) > LINE_LETTERS else ""
    lines = count(text.count("\n") + 1, "line")
    summary = tag("summary", tag("code", first[:LINE_LETTERS], cut), " ", span("lines", lines))
    return tag("details", summary, tag("pre", text))


def _turn(entry: EntryDocument) -> Html:
    facts: list[Child] = [span("", entry["text"] or "turn")]
    if entry["tokens"]:
        facts.append(span("num", used(entry["tokens"])))
    return tag("p", join(*facts), class_="turn-line")


def used(tokens: CountersDocument) -> str:
    """Tokens in words: `12.4k in, 900 out, 30k cached`."""
    words = f"{short(tokens['input'] + tokens['cache_write'])} in, {short(tokens['output'])} out"
    return f"{words}, {short(tokens['cache_read'])} cached" if tokens["cache_read"] else words


_BODIES = {
    "tool": _tool, "result": _result, "turn": _turn, "error": _named, "answer": _named,
}  # fmt: skip
