"""Markup: every text is escaped unless it is markup already, and no control character gets out."""

from __future__ import annotations

import re
from html import escape
from typing import TypeAlias

#: Everything that could hide, reorder or pass for other text.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_EMPTY = frozenset({"br", "hr", "img", "input", "link", "meta", "rect", "path", "circle", "line"})


class Html(str):
    """Markup that may be sent as it is."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | list[Html] | None"
Attribute: TypeAlias = "str | int | float | bool | None"


def visible(text: object) -> str:
    """Text of users with control characters made visible: an escape becomes `\\x1b`."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


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
