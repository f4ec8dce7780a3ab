"""Patches as markup: hunks, numbers, marks and tokens; whatever a patch holds, it stays text."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.visible import visible
from fairlane.page.diff.draw import drawn
from fairlane.page.diff.highlight import Highlighter, language_of
from fairlane.page.diff.patch import LETTERS_MAX, LINES_MAX, read

HEAD = "diff --git a/x.py b/x.py\nindex 1..2 100644\n--- a/x.py\n+++ b/x.py\n"
PATCH = f"{HEAD}@@ -3,4 +3,5 @@ def f():\n one\n-two = 2\n+two = 22\n+three\n four\n"


def kinds(path: str, *lines: str) -> list[list[tuple[str, str]]]:
    highlighter = Highlighter(language_of(path))
    found = [highlighter.tokens(line) for line in lines]
    return [[(each[0], each[1]) for each in row if each.kind] for row in found]


def test_lines_have_their_numbers_on_both_sides():
    (hunk,) = read(PATCH).hunks
    assert hunk.head == "@@ -3,4 +3,5 @@ def f():"
    same, changed, after = hunk.blocks
    assert [(line.old, line.new) for line in same.same] == [(3, 3)]
    assert [(line.old, line.new) for line in changed.gone] == [(4, 0)]
    assert [(line.old, line.new) for line in changed.come] == [(0, 4), (0, 5)]
    assert [(line.old, line.new) for line in after.same] == [(5, 6)]


def test_ends_of_lines_are_shown_where_they_differ():
    windows = f"{HEAD}@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\n\\ No newline at end of file\n"
    assert "\\r" not in drawn("x.txt", windows, "")
    html = drawn("x.txt", f"{HEAD}@@ -1 +1 @@\n-a\r\n+a\n", "")
    assert unescape(re.sub("<.*?>", "", html)).count("a\\r") == 1


def test_only_what_differs_within_a_line_is_marked():
    html = drawn("x.txt", PATCH, "")
    assert '<del class="l"><i data-o="4"></i><code>two = <span class="w">2</span></code>' in html
    assert '<ins class="l"><i data-n="4"></i><code>two = <span class="w">22</span></code>' in html
    strange = f"{HEAD}@@ -1 +1 @@\n-alpha\n+omega\n"
    assert "<span" not in drawn("x.txt", strange, "")


def test_a_line_that_looks_like_a_head_is_a_line():
    (hunk,) = read(f"{HEAD}@@ -1,2 +1,2 @@\n-@@ -9 +9 @@\n+diff --git a b\n --- a/x\n").hunks
    assert [line.text for line in hunk.blocks[0].gone] == ["@@ -9 +9 @@"]
    assert [line.text for line in hunk.blocks[0].come] == ["diff --git a b"]


def test_long_files_and_lines_are_cut_and_say_so():
    many = "".join(f"+{number}\n" for number in range(LINES_MAX + 7))
    assert read(f"{HEAD}@@ -0,0 +1,9 @@\n{many}").left_out == 7
    assert "7 more lines: the command" in drawn("x", f"{HEAD}@@ -0,0 +1 @@\n{many}", "the command")
    (hunk,) = read(f"{HEAD}@@ -0,0 +1 @@\n+{'x' * 5000}\n").hunks
    assert hunk.blocks[0].come[0].text == f"{'x' * LETTERS_MAX}… (4,000 more letters)"


@pytest.mark.parametrize(
    ("path", "line", "expected"),
    [
        ("a.py", 'return "x"  # why', {"return": "keyword", '"x"': "string", "# why": "comment"}),
        ("a.ts", "let a = 'x' // no", {"let": "keyword", "'x'": "string", "// no": "comment"}),
        ("a.go", "x := 12 /* a */ + b", {"12": "number", "/* a */": "comment"}),
        ("a.sql", "SELECT 1 -- all", {"SELECT": "keyword", "1": "number", "-- all": "comment"}),
        ("Makefile", "a: b # c", {"# c": "comment"}),
        ("a.unknown", "return 1 # x", {}),
    ],
)  # fmt: skip
def test_languages_have_comments_strings_and_keywords(path, line, expected):
    assert kinds(path, line) == [[(kind, text) for text, kind in expected.items()]]


def test_what_goes_over_several_lines_is_remembered():
    lines = ('x = """for', "if this", 'ends""" + 1')
    assert kinds("a.py", *lines) == [
        [("string", '"""for')],
        [("string", "if this")],
        [("string", 'ends"""'), ("number", "1")],
    ]
    assert kinds("a.c", "/* if", "for */ if") == [
        [("comment", "/* if")],
        [("comment", "for */"), ("keyword", "if")],
    ]


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=80)


@given(
    st.sampled_from(["a.py", "a.js", "a.sh", "a.sql", "a.css", "a.html", "a"]),
    st.lists(st.tuples(st.sampled_from(" +-\\@d"), TEXTS), max_size=12),
)
def test_every_line_comes_out_as_the_text_that_it_is(path, rows):
    body = "".join(f"{sign}{text}\n" for sign, text in rows)
    html = drawn(path, f"{HEAD}@@ -1 +1 @@\n{body}", "")
    tags = set(re.findall(r"</?([a-z]+)", re.sub(r'"[^"]*"', "", html)))
    assert tags <= {"div", "i", "code", "span", "ins", "del", "p"}
    for hunk in read(f"{HEAD}@@ -1 +1 @@\n{body}").hunks:
        lines = [each for block in hunk.blocks for each in (*block.same, *block.gone, *block.come)]
        shown = unescape(re.sub(r"<[^>]*>", "", html))
        for line in lines:
            if line.sign != "\\" and line.text.isascii():
                assert visible(line.text, lines=True) in shown


@given(st.text(max_size=300))
def test_no_text_breaks_it(text):
    drawn("a.py", text, "")
    drawn("a.py", f"@@ -1 +1 @@\n{text}", "")
