"""Text of others made visible: nothing hides, reorders what is around it, or moves a cursor."""

from __future__ import annotations

import re

#: Characters without a shape of their own: format and bidi controls, fillers, variation selectors,
#: tags. Blanks are not among them.
_SHAPELESS = (
    "\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: Joiners and emoji selectors belong to words and emoji, but only right after a letter of those.
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
_STRAY = f"(?<![^\x00-\xa0{_SHAPELESS}{_JOINERS}])(?<!\ufe0f(?=\u200d))[{_JOINERS}]"
_IN_JSON = f"[{_SHAPELESS}]|{_STRAY}"
_IN_LINE = f"[\x00-\x1f{_SHAPELESS}]|{_STRAY}"
_IN_TEXT = f"[\x00-\x08\x0b-\x1f{_SHAPELESS}]|{_STRAY}"


def visible(text: object, lines: bool = False) -> str:
    """Text with what is invisible escaped: `\\x1b`, `\\u200b`; `lines`: keep tabs and new lines."""
    pattern = _IN_TEXT if lines else _IN_LINE
    return re.sub(pattern, lambda match: match[0].encode("unicode_escape").decode(), str(text))


def last_lines(text: str, most: int = 2048) -> str:
    """The end of what a program printed, in one line: ` | ` between its lines, `…` if it is cut."""
    lines = [visible(line.strip()) for line in text[-4 * most :].splitlines() if line.strip()]
    whole = " | ".join(lines)
    return whole if len(whole) <= most and len(text) <= 4 * most else f"… {whole[-most:]}"


def quoted(text: str) -> str:
    """Text of somebody else as quoted lines: nothing in it can look like the end of it."""
    return "\n".join(f"> {line}".rstrip() for line in visible(text, lines=True).split("\n"))


def visible_json(text: str) -> str:
    """JSON that means the same, with what is invisible in its strings escaped."""
    return text if text.isascii() else re.sub(_IN_JSON, lambda match: _escaped(match[0]), text)


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
