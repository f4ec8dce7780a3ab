"""What the text of an issue says that it waits for: `Blocked by …`, and boxes with issues."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = r"[\w.-]{1,100}"
_REFERENCE = rf"(?:https?://[\w.:-]+/)?(?:({_NAME}/{_NAME}))?(?:#|/issues/)(\d{{1,9}})\b"
_ONE = re.compile(_REFERENCE)
_ANY = re.sub(r"\((?!\?)", "(?:", _REFERENCE)
_WORDS = r"(?<!not )(?<!longer )(?<!was )\b(?:blocked by|depends on)\b"
_INLINE = re.compile(
    rf"{_WORDS}[ \t:*_]*({_ANY}(?:[ \t]*(?:,|;|&|\band\b)[ \t]*(?:and[ \t]+)?{_ANY})*)",
    re.IGNORECASE,
)
_ITEM = rf"[ \t]*[-*+][ \t]+(?:\[[ xX]\][ \t]+)?{_ANY}[^\n]*(?:\n|\Z)"
_LIST = re.compile(rf"{_WORDS}[ \t:*_]*\n\s*((?:{_ITEM})+)", re.IGNORECASE)
_BOX = re.compile(rf"^[ \t]*[-*+][ \t]+\[ \][ \t]+({_ANY})", re.MULTILINE)
_TICKED = re.compile(r"^[ \t]*[-*+][ \t]+\[[xX]\].*$", re.MULTILINE)
#: What is no statement of the author: code, comments, quotes, what is struck out.
_NOT_SAID = re.compile(
    r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)|<!--.*?(?:-->|\Z)|`[^`\n]*`|~~[^~\n]*~~",
    re.DOTALL | re.MULTILINE,
)
_QUOTE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
#: GitHub itself takes no more.
TEXT_MAX = 65_536


def blockers(text: str) -> Iterator[tuple[str, str]]:
    """The repository (empty: the issue's own) and number of each issue that comes first."""
    plain = text[:TEXT_MAX].replace("\r\n", "\n")
    plain = _TICKED.sub("", _NOT_SAID.sub("", _QUOTE.sub("", plain)))
    found: dict[tuple[str, str], None] = {}
    for pattern in (_INLINE, _LIST, _BOX):
        for part in pattern.findall(plain):
            found |= dict.fromkeys(_ONE.findall(part))
    yield from found
