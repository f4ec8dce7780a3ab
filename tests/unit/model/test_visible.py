"""What is invisible is escaped; what belongs to words and emoji stays."""

from __future__ import annotations

import json
import unicodedata

import pytest

from fairlane.model.visible import visible, visible_json

HIDDEN = [
    "\x1b", "\x7f", "\x9b", "\u00ad", "\u034f", "\u061c", "\u115f", "\u180e", "\u200b", "\u200e",
    "\u202e", "\u2028", "\u2060", "\u2066", "\u3164", "\ufe00", "\ufeff", "\ufff9", "\U000e0001",
    "\U000e0041", "\U000e0100",
]  # fmt: skip


@pytest.mark.parametrize("letter", HIDDEN, ids=lambda letter: f"{ord(letter):x}")
def test_it_is_escaped_everywhere_and_json_keeps_the_value(letter: str) -> None:
    escaped = letter.encode("unicode_escape").decode()
    assert visible(f"a{letter}b") == f"a{escaped}b"
    assert visible(f"a{letter}b", lines=True) == f"a{escaped}b"
    document = {"a" + letter: letter + "é" + letter}
    written = visible_json(json.dumps(document, ensure_ascii=False))
    assert letter not in written
    assert "é" in written
    assert json.loads(written) == document


def test_every_format_character_is_escaped_but_those_with_a_shape() -> None:
    shaped = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2}
    shaped |= {0x110BD, 0x110CD, *range(0x13430, 0x13440)}
    for number in range(0x110000):
        letter = chr(number)
        if unicodedata.category(letter) in ("Cf", "Cc", "Zl", "Zp") and number not in shaped:
            assert letter not in visible(f"a{letter}b"), hex(number)


@pytest.mark.parametrize(
    "text", ["می‌خواهم", "👩‍💻", "❤️‍🔥", "⚠️ careful", "naïve 日本語", "a\u00a0b"]
)
def test_words_and_emoji_stay(text: str) -> None:
    assert visible(text) == text
    assert visible_json(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ad\u200dmin", r"ad\u200dmin"),
        ("ad\ufe0fmin", r"ad\ufe0fmin"),
        ("👩\u200d\u200d\u200d", "👩\u200d" + r"\u200d\u200d"),
        ("\u200dx", r"\u200dx"),
    ],
)
def test_joiners_hide_nothing(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_are_kept_where_asked() -> None:
    assert visible("a\n\tb") == r"a\n\tb"
    assert visible("a\n\tb\r", lines=True) == "a\n\tb\\r"
