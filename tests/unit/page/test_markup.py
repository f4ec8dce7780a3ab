"""Markup, words and drawings."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND
from fairlane.page.drawing import columns, lines, meter, timeline
from fairlane.page.html import Html, join, tag, visible
from fairlane.page.views.scene import last_line, said
from fairlane.page.words import colour, count, dollars, length, sentence, short
from tests.unit.contexts import NOON, TestContext


def test_texts_and_attributes_are_escaped_and_markup_is_not():
    made = tag("p", "<b>", Html("<i></i>"), 3, None, title='"><script>', hidden=True, lang=None)
    assert made == '<p title="&quot;&gt;&lt;script&gt;" hidden>&lt;b&gt;<i></i>3</p>'


def test_names_of_attributes_are_those_of_markup():
    assert tag("a", class_="x", data_go_on="1", aria_label="y", name="z") == (
        '<a class="x" data-go-on="1" aria-label="y" name="z"></a>'
    )
    assert tag("input", value=0) == '<input value="0"/>'


@pytest.mark.parametrize(
    ("given", "shown"),
    [("\x1b[31m", "\\x1b[31m"), ("a\u202eb", "a\\u202eb"), ("a\u200bb", "a\\u200bb")],
)
def test_control_characters_are_visible(given, shown):
    assert visible(given) == shown
    assert tag("p", given, title=given) == f'<p title="{shown}">{shown}</p>'


def test_lines_and_tabs_stay():
    assert visible("a\n\tb\r") == "a\n\tb\\r"
    assert join("a", [Html("<br>")], None) == "a<br>"


def test_lengths_and_numbers_read_well():
    lengths = (0, 59 * SECOND, 65 * SECOND, HOUR, 25 * HOUR, 3 * DAY)
    assert [length(each) for each in lengths] == ["0s", "59s", "1m 05s", "1h 00m", "1d 1h", "3d 0h"]
    assert [short(each) for each in (7, 940, 12_400, 999_999, 1_200_000)] == [
        "7", "940", "12.4k", "1000k", "1.2M",
    ]  # fmt: skip
    assert [dollars(each) for each in (None, 0.3, 1234.5)] == ["–", "$0.30", "$1,234"]
    assert (count(1, "task"), count(2000, "task")) == ("1 task", "2,000 tasks")
    assert sentence("waits until 2026-01-30T12:00:00.123Z") == "Waits until 2026-01-30T12:00:00Z"


def test_projects_keep_their_colour_and_strangers_get_one():
    assert colour("b", ["a", "b"]) == "c1"
    assert colour("gone", []) in {f"c{number}" for number in range(8)}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain", "plain"),
        ('{"type": "progress", "text": "step 2"}', "step 2"),
        ('{"type": "start"}', "start"),
        ('{"text": {"deep": 1}}', '{"text": {"deep": 1}}'),
        ('{"cut', '{"cut'),
    ],
)
def test_the_last_line_is_told_in_words(line, shown):
    assert said(line) == shown


def test_what_the_daemon_understood_is_told_first(tmp_path):
    office = TestContext(tmp_path)
    folder = tmp_path / "runs" / "a" / "2"
    each: Any = {"task": "a", "attempt": 2}
    assert last_line(office.context, each) == ""
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text('{"message": {"content": []}}\nplain words\n\n')
    assert last_line(office.context, each) == "plain words"
    events = '{"kind": "words", "text": "I look\\ninto it"}\n{"kind": "session", "text": ""}\n'
    (folder / "events.jsonl").write_text(events)
    assert last_line(office.context, each) == "into it"


def bar(task: str, start: int, end: int | None) -> Any:
    from fairlane.model.instant import show_instant

    told = {
        "from": show_instant(NOON + start),
        "to": None if end is None else show_instant(NOON + end),
    }
    named = {"task": task, "title": "<b>", "project": "web", "attempt": 1, "row": 0}
    return told | named | {"outcome": None if end is None else "succeeded"}


def test_a_timeline_draws_what_is_in_its_window():
    bars = [
        bar("old", -2 * HOUR, -HOUR),
        bar("half", 0, 30 * MINUTE),
        bar("now", 45 * MINUTE, None),
    ]
    drawn = timeline(bars, NOON, NOON + HOUR, "who ran", lambda name: "c0")
    assert 'data-go="/task/old"' not in drawn
    assert 'x="0.00%" y="4" width="50.00%"' in drawn
    assert 'x="75.00%" y="4" width="25.00%"' in drawn
    assert "<b>" not in drawn
    assert 'aria-label="who ran"' in drawn


def test_drawings_stay_in_their_frame():
    assert 'width="100.00%"' in meter(7.0, "more than all")
    assert 'width="0.00%"' in meter(-1.0, "less than nothing")
    assert columns([0, 4], ["none", "four"], "two").count("<rect") == 2
    drawn = lines([("p95", [1.0, None, 2.0]), ("p50", [None, None, None])], "waits")
    assert drawn.count("M") >= 2
