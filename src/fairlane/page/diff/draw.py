"""Drawing: the hunks of a file as markup, one element a line; styles make one or two columns of it.

A block of changed lines has those that went before those that came. Side by side the browser puts
both into one row each, so that neither needs to be sent twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from fairlane.page.diff.highlight import Highlighter, Language, Token, language_of
from fairlane.page.diff.patch import Block, Hunk, Line, read
from fairlane.page.html import Html, div, tag, visible
from fairlane.page.words import count

#: Changed words are marked where lines have so much in common, of the longer one.
ALIKE = 0.4
Span = tuple[int, int]
_NONE: Span = (0, 0)
_TAGS = {" ": "div", "-": "del", "+": "ins", "\\": "div"}


def drawn(path: str, patch: str, whole: str) -> Html:
    """A patch as markup; `whole` is the command that shows what is left out."""
    found = read(patch)
    language = language_of(path)
    parts = [div("hunk-note", note) for note in found.notes]
    parts += [_hunk(hunk, language) for hunk in found.hunks]
    if found.left_out:
        more = f"{count(found.left_out, 'more line')}: {whole}"
        parts.append(tag("p", more, class_="quiet-text left-out"))
    if not parts:
        parts.append(tag("p", "No line differs.", class_="quiet-text left-out"))
    return div("patch", parts)


def _hunk(hunk: Hunk, language: Language | None) -> Html:
    old, new = Highlighter(language), Highlighter(language)
    parts = [div("hunk", hunk.head)]
    for block in hunk.blocks:
        if block.same:
            parts.append(div("block", [_line(line, new.tokens(line.text)) for line in block.same]))
            old.inside = new.inside
        else:
            parts.append(_changed(block, old, new))
    return Html("".join(parts))


def _changed(block: Block, old: Highlighter, new: Highlighter) -> Html:
    marks = [
        _differ(gone.text, come.text) for gone, come in zip(block.gone, block.come, strict=False)
    ]
    rows = []
    for side, lines, highlighter in ((0, block.gone, old), (1, block.come, new)):
        for number, line in enumerate(lines):
            mark = marks[number][side] if number < len(marks) else _NONE
            rows.append(_line(line, highlighter.tokens(line.text), mark))
    return div("block changed", rows)


def _differ(old: str, new: str) -> tuple[Span, Span]:
    """What differs between two lines that are alike: all but their beginning and their end."""
    short = min(len(old), len(new))
    start = 0
    while start < short and old[start] == new[start]:
        start += 1
    end = 0
    while end < short - start and old[-1 - end] == new[-1 - end]:
        end += 1
    blank = len(old[:start]) - len(old[:start].lstrip())
    if start + end - blank < ALIKE * (max(len(old), len(new)) - blank):
        return _NONE, _NONE
    while start and _in_word(old[start - 1]):
        start -= 1
    while end and _in_word(old[-end]):
        end -= 1
    return (start, len(old) - end), (start, len(new) - end)


def _in_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _line(line: Line, tokens: Iterator[Token], mark: Span = _NONE) -> Html:
    if line.sign == "\\":
        return div("l none", tag("i"), tag("code", line.text.strip()))
    numbers = tag("i", data_o=line.old or None, data_n=line.new or None)
    code = Html("".join(_token(token, marked) for token, marked in _cut(tokens, mark)))
    return tag(_TAGS[line.sign], numbers, tag("code", code), class_="l")


def _cut(tokens: Iterator[Token], mark: Span) -> Iterator[tuple[Token, bool]]:
    """Tokens, cut where the marked part begins and ends."""
    at = 0
    for kind, text in tokens:
        end = at + len(text)
        edges = [edge for edge in mark if at < edge < end]
        for start, stop in zip([at, *edges], [*edges, end], strict=True):
            inside = mark[0] <= start and stop <= mark[1]
            yield Token(kind, text[start - at : stop - at]), inside and start < stop
        at = end


def _token(token: Token, marked: bool) -> str:
    text = escape(visible(token.text))
    kinds = " ".join(filter(None, (token.kind and token.kind[0], "w" if marked else "")))
    return f'<span class="{kinds}">{text}</span>' if kinds else text
