"""The shell: the document around every view, with navigation, dialogs and what is said aloud."""

from __future__ import annotations

from fairlead.page.dialogs import dialogs
from fairlead.page.html import Html, join, tag
from fairlead.page.icons import icon, mark

_PLACES = (
    ("overview", "Overview", "/", "g o"),
    ("tasks", "Tasks", "/tasks", "g t"),
    ("groups", "Groups", "/groups", "g g"),
)


def document(
    title: str, place: str, address: str, body: Html, switch: Html | None, version: str, now_ms: int
) -> str:
    """A whole document; everything in it comes from this server."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · Fairlead"),
        tag("link", rel="icon", href=f"/page/static/icon.svg?{version}", type="image/svg+xml"),
        tag("link", rel="stylesheet", href=f"/page/static/page.css?{version}"),
        tag("script", src=f"/page/static/theme.js?{version}"),
        tag("script", src=f"/page/static/page.js?{version}", type="module"),
    )
    skip = tag("a", "Skip to content", href="#main", class_="skip")
    main = tag("main", body, id="main", tabindex=-1)
    said = tag("div", id="said", class_="sr", role="status", aria_live="polite")
    toasts = tag("div", id="toasts", role="region", aria_label="Messages")
    tip = tag("div", id="tip", hidden=True, aria_hidden="true")
    page = tag(
        "body", skip, header(place, switch), main, dialogs(), said, toasts, tip,
        data_view=address, data_version=version, data_now=now_ms,
    )  # fmt: skip
    return "<!doctype html>" + tag("html", head, page, lang="en")


def header(place: str, switch: Html | None) -> Html:
    """The bar above everything."""
    brand = tag(
        "a",
        mark(),
        tag("span", "Fairlead"),
        href="/",
        class_="brand",
        aria_label="Fairlead, overview",
    )
    links = [
        tag("a", icon(name), tag("span", words), href=href, title=f"{words} ({keys})",
            aria_current="page" if name == place else None)
        for name, words, href, keys in _PLACES
    ]  # fmt: skip
    find = tag(
        "form", icon("find"),
        tag("input", type="search", name="find", id="find", placeholder="Find a task by id",
            aria_label="Find a task by id", autocomplete="off", spellcheck="false"),
        tag("kbd", "/", aria_hidden="true"), action="/tasks", class_="find", role="search",
    )  # fmt: skip
    live = tag(
        "span",
        tag("span", class_="dot", aria_hidden="true"),
        tag("span", "Connecting", id="live-words"),
        id="live",
        class_="live",
        role="status",
    )
    tools = join(
        switch,
        tag(
            "button",
            icon("keys"),
            type="button",
            class_="bare",
            data_open="keys",
            aria_label="Keyboard shortcuts",
            title="Keyboard shortcuts (?)",
        ),
        tag(
            "button",
            icon("theme"),
            type="button",
            class_="bare",
            id="theme",
            aria_label="Theme: system",
            title="Theme",
        ),
        tag(
            "button",
            icon("add"),
            tag("span", "Add task"),
            type="button",
            class_="button solid",
            data_open="add",
            title="Add a task (a)",
        ),
    )
    return tag(
        "header",
        brand,
        tag("nav", links, aria_label="Main"),
        find,
        live,
        tag("div", tools, class_="tools"),
        class_="top",
    )
