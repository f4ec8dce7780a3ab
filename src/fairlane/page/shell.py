"""The shell: the document around every view, with navigation, dialogs and what is said aloud."""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.page.dialogs import dialogs
from fairlane.page.html import Html, div, join, span, tag
from fairlane.page.icons import icon, mark

_PLACES = (
    ("overview", "Overview", "/", "g o"),
    ("tasks", "Tasks", "/tasks", "g t"),
    ("groups", "Groups", "/groups", "g g"),
)


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a document is made of."""

    title: str
    place: str
    address: str
    body: Html
    switch: Html | None
    version: str
    now_ms: int


def document(sheet: Sheet) -> str:
    """A whole document; everything in it comes from this server."""
    main = tag("main", sheet.body, id="main", tabindex=-1)
    page = tag(
        "body",
        tag("a", "Skip to content", href="#main", class_="skip"),
        _header(sheet.place, sheet.switch),
        main,
        dialogs(),
        div("sr", id="said", role="status", aria_live="polite"),
        div("", id="toasts", role="region", aria_label="Messages"),
        div("", id="tip", hidden=True, aria_hidden="true"),
        data_view=sheet.address,
        data_version=sheet.version,
        data_now=sheet.now_ms,
    )
    return "<!doctype html>" + tag("html", _head(sheet), page, lang="en")


def _head(sheet: Sheet) -> Html:
    def static(name: str) -> str:
        return f"/page/static/{name}?{sheet.version}"

    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{sheet.title} · Fairlane"),
        tag("link", rel="icon", href=static("icon.svg"), type="image/svg+xml"),
        tag("link", rel="stylesheet", href=static("page.css")),
        tag("script", src=static("theme.js")),
        tag("script", src=static("page.js"), type="module"),
    )


def _header(place: str, switch: Html | None) -> Html:
    """The bar above everything."""
    name = span("", "Fairlane")
    brand = tag("a", mark(), name, href="/", class_="brand", aria_label="Fairlane, overview")
    links = [
        tag(
            "a", icon(each), span("", words), href=href, title=f"{words} ({keys})",
            aria_current="page" if each == place else None,
        )
        for each, words, href, keys in _PLACES
    ]  # fmt: skip
    nav = tag("nav", links, aria_label="Main")
    dot = span("dot", aria_hidden="true")
    live = span("live", dot, span("", "Connecting", id="live-words"), id="live", role="status")
    return tag("header", brand, nav, _find(), live, div("tools", _tools(switch)), class_="top")


def _find() -> Html:
    box = tag(
        "input", type="search", name="find", id="find", placeholder="Find a task by id",
        aria_label="Find a task by id", autocomplete="off", spellcheck="false",
    )  # fmt: skip
    key = tag("kbd", "/", aria_hidden="true")
    return tag("form", icon("find"), box, key, action="/tasks", class_="find", role="search")


def _tools(switch: Html | None) -> Html:
    keys = tag(
        "button", icon("keys"), type="button", class_="bare", data_open="keys",
        aria_label="Keyboard shortcuts", title="Keyboard shortcuts (?)",
    )  # fmt: skip
    theme = tag(
        "button", icon("theme"), type="button", class_="bare", id="theme",
        aria_label="Theme: system", title="Theme",
    )  # fmt: skip
    add = tag(
        "button", icon("add"), span("", "Add task"), type="button", class_="button solid",
        data_open="add", title="Add a task (a)", aria_label="Add task",
    )  # fmt: skip
    return join(keys, theme, switch, add)
