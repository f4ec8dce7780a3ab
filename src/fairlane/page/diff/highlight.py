"""Highlighting: comments, strings, numbers and keywords of common languages, line by line.

It knows no grammar. A line is read with one expression; only a comment or a string that goes over
several lines is remembered, so that what is inside of it is not taken for code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from fairlane.model.record import dataclass


class Token(NamedTuple):
    """Some letters of a line; kind is empty for those that are nothing special."""

    kind: str  # "", comment, string, number, keyword
    text: str


@dataclass(frozen=True, slots=True)
class Language:
    """What a family of languages has in common."""

    pattern: re.Pattern[str]
    keywords: frozenset[str]
    closing: dict[str, str]  # what ends a comment or a string of several lines


_TEXTS = r"\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?"
_WORD = r"(?P<number>\b\d[\w.]*)|(?P<word>[A-Za-z_$]\w*)"


def _language(comment: str, texts: str, opening: dict[str, str], words: str) -> Language:
    opens = "|".join(map(re.escape, opening)) or r"(?!)"
    pattern = f"(?P<open>{opens})|(?P<comment>{comment})|(?P<string>{texts})|{_WORD}"
    return Language(re.compile(pattern), frozenset(words.split()), opening)


_PYTHON = _language(
    r"#.*", _TEXTS, {'"""': '"""', "'''": "'''"},
    "and as assert async await break case class continue def del elif else except False finally "
    "for from global if import in is lambda match None nonlocal not or pass raise return self "
    "True try while with yield",
)  # fmt: skip
_C = _language(
    r"//.*", _TEXTS + r"|`(?:[^`\\]|\\.)*`?", {"/*": "*/"},
    "abstract as async await bool boolean break case catch char class const continue crate "
    "default defer delete do double else enum export extends false final finally float fn for "
    "func function go if impl implements import in int interface let long loop match mod mut new "
    "nil null number package private protected pub public range return self static string struct "
    "super switch this throw trait true try type typeof undefined use var void where while yield",
)  # fmt: skip
_SHELL = _language(
    r"(?<![\w$])#.*", _TEXTS, {},
    "begin break case class def do done elif else end esac export false fi for function if in "
    "include local module null require return self set source then true unless until while yes no",
)  # fmt: skip
_QUERY = _language(
    r"--.*", _TEXTS, {"/*": "*/"},
    "add all alter and as begin between by case commit create delete desc distinct drop else end "
    "exists foreign from function group having if in index inner insert into is join key left "
    "like limit local not null on or order primary references return select set table then "
    "union unique update values view when where with SELECT FROM WHERE AND OR NOT NULL INSERT "
    "INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX PRIMARY KEY JOIN LEFT ON GROUP BY ORDER "
    "LIMIT AS IN IS CASE WHEN THEN ELSE END WITH UNION ALTER ADD DROP DISTINCT EXISTS",
)  # fmt: skip
#: What is opened by what can go over several lines.
_KINDS = {'"""': "string", "'''": "string", "/*": "comment", "<!--": "comment"}
_STYLE = _language(r"(?!)", _TEXTS, {"/*": "*/"}, "")
_MARKUP = _language(r"(?!)", _TEXTS, {"<!--": "-->"}, "")
_FAMILIES = (
    (_PYTHON, "py pyi pyx"),
    (_C, "js jsx ts tsx mjs cjs c h cc cpp hpp cs java go rs kt swift scala php dart proto json"),
    (_SHELL, "sh bash zsh fish rb pl r yaml yml toml ini cfg conf mk tf dockerfile makefile"),
    (_QUERY, "sql lua hs"),
    (_STYLE, "css scss less"),
    (_MARKUP, "html htm xml svg vue"),
)  # fmt: skip
_BY_ENDING = {ending: language for language, all_of in _FAMILIES for ending in all_of.split()}


def language_of(path: str) -> Language | None:
    """The language of a file, by its name; None: its text is left as it is."""
    name = PurePosixPath(path).name.lower()
    return _BY_ENDING.get(name.rpartition(".")[2])


class Highlighter:
    """Reads the lines of one side of a hunk, in order."""

    def __init__(self, language: Language | None) -> None:
        self._language = language
        self.inside = ""  # what opened a comment or a string that has not ended

    def tokens(self, line: str) -> Iterator[Token]:
        """A line in tokens; together they are the line."""
        if self._language is None:
            yield Token("", line)
            return
        at = 0
        if self.inside:
            kind = _KINDS[self.inside]
            at = self._close(self._language, line, 0)
            yield Token(kind, line[:at])
        while at < len(line):
            found = self._language.pattern.search(line, at)
            if found is None:
                yield Token("", line[at:])
                return
            if found.start() > at:
                yield Token("", line[at : found.start()])
            kind, at = self._read(self._language, line, found)
            yield Token(kind, line[found.start() : at])

    def _read(self, language: Language, line: str, found: re.Match[str]) -> tuple[str, int]:
        """The kind of what was found, and where it ends."""
        if found.lastgroup == "open":
            self.inside = found[0]
            return _KINDS[found[0]], self._close(language, line, found.end())
        if found.lastgroup == "word":
            return "keyword" if found[0] in language.keywords else "", found.end()
        return found.lastgroup or "", found.end()

    def _close(self, language: Language, line: str, start: int) -> int:
        closing = language.closing[self.inside]
        end = line.find(closing, start)
        if end < 0:
            return len(line)
        self.inside = ""
        return end + len(closing)
