"""What a terminal shows, as a picture: an SVG of text in a monospaced font."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

WIDE, HIGH, LEFT, TOP = 8.0, 18, 18.0, 59
_STYLE = re.compile(r"\x1b\[([\d;]*)m")
_FILL = {"31": "#f7768e", "32": "#9ece6a", "33": "#e0af68", "34": "#7aa2f7", "36": "#7dcfff"}
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
    'viewBox="0 0 {wide} {high}" role="img" aria-label="{label}" '
    "font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" "
    'font-size="13" fill="#c0caf5">\n<rect width="{wide}" height="{high}" rx="10" '
    'fill="#1a1b26"/>\n<g><circle cx="20" cy="18" r="5" fill="#f7768e"/><circle cx="38" cy="18" '
    'r="5" fill="#e0af68"/><circle cx="56" cy="18" r="5" fill="#9ece6a"/></g>'
)


def svg(text: str, label: str, columns: int = 80) -> str:
    """A picture of lines with the colours that a terminal would show."""
    lines = text.split("\n")
    wide, high = int(2 * LEFT + columns * WIDE), TOP + HIGH * len(lines)
    parts = [_HEAD.format(wide=wide, high=high, label=html.escape(label))]
    for number, line in enumerate(lines):
        parts += _shown(line, TOP + HIGH * number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def text_of(picture: str) -> str:
    """The words of a picture, line by line."""
    found = re.findall(r'<text x="([\d.]+)" y="(\d+)".*?>(.*?)</text>', picture)
    lines: dict[int, str] = {}
    for x, y, words in found:
        at, number = round((float(x) - LEFT) / WIDE), (int(y) - TOP) // HIGH
        lines[number] = lines.get(number, "").ljust(at) + html.unescape(words)
    return "\n".join(lines.get(number, "") for number in range(max(lines) + 1))


def plain(text: str) -> str:
    """Without colours."""
    return _STYLE.sub("", text)


def _shown(line: str, y: int) -> Iterator[str]:
    at, style = 0, ""
    for number, part in enumerate(_STYLE.split(line)):
        if number % 2:
            style = _attributes(part)
            continue
        for words in re.finditer(r"\S+(?: \S+)*", part):
            x, long = LEFT + WIDE * (at + words.start()), WIDE * len(words[0])
            yield (
                f'<text x="{x}" y="{y}" textLength="{long}" lengthAdjust="spacingAndGlyphs" '
                f'xml:space="preserve"{style}>{html.escape(words[0], quote=False)}</text>'
            )
        at += len(part)


def _attributes(codes: str) -> str:
    styles = {"1": ' font-weight="bold"', "2": ' opacity="0.55"'}
    styles |= {code: f' fill="{colour}"' for code, colour in _FILL.items()}
    return "".join(styles.get(code, "") for code in codes.split(";"))
