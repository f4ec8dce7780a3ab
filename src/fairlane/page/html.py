"""Markup and icons: a text is escaped unless it is markup; no control character gets out."""

from __future__ import annotations

from html import escape
from typing import TypeAlias

from fairlane.model import visible as model_visible

_EMPTY = frozenset({"br", "hr", "img", "input", "link", "meta", "rect", "path", "circle", "line"})


class Html(str):
    """Markup that may be sent as it is."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | list[Html] | None"
Attribute: TypeAlias = "str | int | float | bool | None"


def visible(text: object) -> str:
    """Text of users with what is invisible escaped; it may have several lines."""
    return model_visible.visible(text, lines=True)


def text(words: object) -> Html:
    """Text as markup."""
    return words if isinstance(words, Html) else Html(escape(visible(words)))


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """An element; `class_` is `class`, `data_id` is `data-id`; None and False leave one out."""
    head = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _EMPTY and not children:
        return Html(f"<{name}{head}>" if name in ("br", "hr", "img") else f"<{name}{head}/>")
    return Html(f"<{name}{head}>{join(*children)}</{name}>")


def div(kind: str, /, *children: Child, **attributes: Attribute) -> Html:
    """A block of a kind."""
    return tag("div", *children, class_=kind or None, **attributes)


def span(kind: str, /, *children: Child, **attributes: Attribute) -> Html:
    """Words of a kind."""
    return tag("span", *children, class_=kind or None, **attributes)


def join(*children: Child) -> Html:
    """Markup and texts behind each other."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, list):
            parts += child
        elif child is not None:
            parts.append(text(child))
    return Html("".join(parts))


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(visible(value))}"'


_PATHS = {
    "overview": "M3 3h7v8H3zM14 3h7v5h-7zM14 12h7v9h-7zM3 15h7v6H3z",
    "tasks": "M4 6h2M10 6h10M4 12h2M10 12h10M4 18h2M10 18h10",
    "groups": "M12 3l9 5-9 5-9-5zM3 13l9 5 9-5",
    "add": "M12 5v14M5 12h14",
    "pause": "M8 5v14M16 5v14",
    "play": "M7 4.5v15l12-7.5z",
    "retry": "M20 11a8 8 0 1 0-2.3 6.2M20 4v7h-7",
    "cancel": "M6 6l12 12M18 6L6 18",
    "edit": "M4 20l1-4L16.5 4.5a2.1 2.1 0 0 1 3 3L8 19z",
    "find": "M10.5 4a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M15.5 15.5L21 21",
    "theme": "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
    "keys": "M3 7h18v11H3zM7 11h.01M11 11h.01M15 11h.01M8 15h8",
    "clock": "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 7v5l3 2",
    "cap": "M5 19V9M12 19V5M19 19v-7",
    "warn": "M12 4l9 16H3zM12 10v4M12 17h.01",
    "arrow": "M5 12h14M13 6l6 6-6 6",
}


def icon(name: str) -> Html:
    """A decoration: the text beside it says the same."""
    return tag(
        "svg", tag("path", d=_PATHS[name]), class_="icon", viewBox="0 0 24 24", aria_hidden="true"
    )


def mark() -> Html:
    """The sign of Fairlane: a lane between its edges."""
    edges = tag("path", class_="edges", d="M4 21 8.500 3M20 21 15.500 3")
    line = tag("path", class_="line", d="M12 20v-3M12 13.500v-2.500M12 7.500v-2")
    return tag("svg", edges, line, class_="brandmark", viewBox="0 0 24 24", aria_hidden="true")
