"""Parts: cards, badges and buttons that every view is put together from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from fairlane.page.html import Attribute, Child, Html, icon, tag
from fairlane.page.words import colour

#: Longest heading.
HEADING_LETTERS = 200
Rows = list[list[Child]]


def shortened(words: str) -> str:
    """What is too long for a heading ends in an ellipsis."""
    return words if len(words) <= HEADING_LETTERS else f"{words[:HEADING_LETTERS].rstrip()}…"


def card(name: str, title: str, body: Html, about: str = "", tools: Html | None = None) -> Html:
    """A part of a view with its heading."""
    head = tag(
        "header",
        tag("h2", title, id=f"{name}-title"),
        tag("p", about, class_="about num") if about else None,
        tag("div", tools, class_="tools") if tools else None,
    )
    return tag("section", head, body, id=name, class_="card", aria_labelledby=f"{name}-title")


def act(
    action: str, words: str, sign: str, values: Mapping[str, str], kind: str = "", **more: Attribute
) -> Html:
    """A button that does something; `data_confirm` is asked first."""
    return tag(
        "button", icon(sign), tag("span", words), type="button", class_=f"button {kind}".strip(),
        data_do=action, data_with=json.dumps(dict(values)), **more,
    )  # fmt: skip


def pause_button(scope: str, paused: bool, name: str = "") -> Html:
    """The button that pauses a scope, or resumes it; it says what it will do."""
    words, sign = ("Resume", "play") if paused else ("Pause", "pause")
    label = f"{words} {name or scope}"
    return act(words.lower(), words, sign, {"scope": scope}, aria_label=label)


def badge(words: str, tone: str = "") -> Html:
    """A word in a frame."""
    return tag("span", words, class_=f"badge {tone}".strip())


_TONES = {"running": "live", "leased": "live", "done": "good", "parked": "bad", "canceled": "dim"}


def status_badge(status: str) -> Html:
    """A task's status."""
    return tag("span", dot(_TONES.get(status, "")), status, class_=f"badge status {status}")


def dot(tone: str) -> Html:
    """A dot of colour; words beside it say the same."""
    return tag("span", class_=f"dot {tone}".strip(), aria_hidden="true")


def project_of(name: str, known: list[str]) -> Html:
    """A project with its colour."""
    return tag("span", dot(colour(name, known)), name, class_="project")


def empty(words: str, hint: str = "") -> Html:
    """There is nothing, and what that means."""
    return tag("div", tag("p", words), tag("p", hint) if hint else None, class_="empty")


def table(name: str, head: list[str], rows: Rows, right: Sequence[int] = ()) -> Html:
    """A table with a heading for every column; those in `right` are numbers."""
    kinds = ["num" if at in right else None for at in range(len(head))]
    top = [
        tag("th", word, scope="col", class_=kind) for word, kind in zip(head, kinds, strict=True)
    ]
    body = [
        tag("tr", [tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)])
        for row in rows
    ]
    inner = tag("table", tag("thead", tag("tr", top)), tag("tbody", body), aria_label=name)
    return tag("div", inner, class_="scroll", tabindex=0, role="group", aria_label=name)


def as_table(
    name: str, head: list[str], rows: Rows, right: Sequence[int] = (), words: str = "As a table"
) -> Html:
    """A table with the same content as a drawing, for screen readers."""
    summary = tag("summary", words)
    return tag("details", summary, table(name, head, rows, right), class_="as-table")


def chip(kind: str, name: str, value: str, checked: bool) -> Html:
    """A choice that is a word in a frame."""
    box = tag("input", type=kind, name=name, value=value, checked=checked)
    return tag("label", box, tag("span", value), class_="chip")


def field(label: str, control: Html, hint: str = "", where: str = "") -> Html:
    """A control with its label; a hint belongs to it by the name of `where` it stands."""
    help_text = None
    if hint:
        name = f"{where}-{label.lower().replace(' ', '-')}-hint"
        help_text = tag("span", hint, class_="hint", id=name)
        control = Html(control.replace(" name=", f' aria-describedby="{name}" name=', 1))
    words = tag("span", label, class_="name")
    return tag("div", tag("label", words, control), help_text, class_="field")
