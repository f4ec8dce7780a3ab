"""Front matter is read as written, and a key is set with every other byte kept."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairlane.intake.markdown import frontmatter
from fairlane.model.errors import Invalid

CARD = """---
# who and how
owner: 'ann'
agent_flow: implement   # one of three
agent_status:
due: 2026-01-30
size: 1.10
parallelizable: false
tags: [a, b]
---

# Title

Body
"""


def fields(text):
    page = frontmatter.split(text)
    assert page is not None
    return page.fields()


def test_values_are_kept_as_a_person_wrote_them():
    assert fields(CARD) == {
        "owner": "ann",
        "agent_flow": "implement",
        "agent_status": None,
        "due": "2026-01-30",
        "size": "1.10",
        "parallelizable": False,
        "tags": ["a", "b"],
    }


def test_a_file_without_front_matter_has_none():
    assert frontmatter.split("# Title\n\n---\n\nBody\n") is None
    assert frontmatter.split("") is None


def test_empty_front_matter_is_an_empty_table():
    page = frontmatter.split("---\n---\nBody")
    assert page is not None
    assert (page.fields(), page.body) == ({}, "Body")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\na: 1\n", "front matter is not closed"),
        ("---\na: [1\n---\n", "front matter is not YAML: "),
        ("---\na: 1\na: 2\n---\n", "front matter is not YAML: 'a' appears twice"),
        ("---\n- a\n---\n", "front matter is no table of names"),
        ("---\ntrue: a\n---\n", "front matter is no table of names"),
        ("---\na: &x [1]\nb: *x\n---\n", "front matter is not YAML: an alias is not read here"),
        ("---\na: !!python/name:os.system x\n---\n", "front matter is not YAML: could not"),
        (f"---\na: {'[' * 5000}\n---\n", "front matter is not YAML: "),
    ],
)
def test_what_is_broken_is_named(text, message):
    with pytest.raises(Invalid) as caught:
        fields(text)
    assert caught.value.message.startswith(message)


def test_only_the_value_changes():
    changed = frontmatter.put(CARD, "agent_status", "queued")
    assert changed == CARD.replace("agent_status:\n", "agent_status: queued\n")
    changed = frontmatter.put(changed, "agent_flow", "review")
    assert "agent_flow: review   # one of three\n" in changed


def test_a_new_key_goes_below_the_others():
    changed = frontmatter.put(CARD, "risk", "low")
    assert changed == CARD.replace("tags: [a, b]\n", "tags: [a, b]\nrisk: low\n")


def test_the_value_that_stands_there_changes_nothing():
    assert frontmatter.put(CARD, "owner", "ann") == CARD


@pytest.mark.parametrize("head", ["a: |\n  two\n  lines\n", "a: [1, 2]\n", "a: {b: c}\n"])
def test_a_value_of_many_lines_or_parts_is_left_alone(head):
    with pytest.raises(Invalid, match="the value of 'a' is not one line") as caught:
        frontmatter.put(f"---\n{head}---\n", "a", "b")
    assert caught.value.hint == "Edit it by hand; nothing was changed."


def test_a_head_that_cannot_take_a_line_is_left_alone():
    with pytest.raises(Invalid, match="'b' cannot be set in this front matter"):
        frontmatter.put("---\n{a: 1}\n---\n", "b", "c")


def test_without_front_matter_nothing_is_set():
    with pytest.raises(Invalid, match="there is no front matter"):
        frontmatter.put("# Title\n", "a", "b")


KEYS = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True).filter(
    lambda key: key not in ("true", "false", "null")
)
LINES = st.sampled_from(
    ["{}: word", "{}:", "{}: null", "{}: 'it''s'", '{}: "a # b"', "{}: 12   # why", "{}: a-b",
     "{}: [1, 2]", "{}:\n  - x\n  - y", "# {}: not a key",
     "{}: |\n  --- text\n  more", "", "{}: >-\n  folded\n  text", "{}: ünïcode 🙂", "{}: !!str x"]
)  # fmt: skip
ONE_LINE = ("word", "it's", "a # b", "12", "a-b", "ünïcode 🙂", "x")
BODIES = st.text(max_size=60).filter(lambda text: "\x00" not in text)


@st.composite
def files(draw):
    keys = draw(st.lists(KEYS, unique=True, max_size=6))
    head = "".join(draw(LINES).format(key) + "\n" for key in keys)
    text = f"---\n{head}---{draw(st.sampled_from(['', ' ']))}\n{draw(BODIES)}"
    if draw(st.booleans()):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return draw(st.sampled_from(["", "\ufeff"])) + text, keys


@given(files(), KEYS, st.data(), st.text(max_size=20))
def test_after_setting_a_key_all_else_is_the_same(file, new, data, value):
    text, keys = file
    key = data.draw(st.sampled_from([*keys, new]))
    page = frontmatter.split(text)
    assert page is not None
    before = page.fields()
    if not (before.get(key) is None or before[key] in ONE_LINE):
        with pytest.raises(Invalid, match="is not one line"):
            frontmatter.put(text, key, value)
        return
    changed = frontmatter.put(text, key, value)
    after = frontmatter.split(changed)
    assert after is not None
    assert after.fields() == before | {key: value}
    assert (after.opening, after.rest) == (page.opening, page.rest)
    old, new_lines = page.head.split("\n"), after.head.split("\n")
    if key in before:
        differing = [pair for pair in zip(old, new_lines, strict=True) if len(set(pair)) > 1]
        assert len(differing) <= 1
        assert all(line.startswith(f"{key}:") for line, _ in differing)
    else:
        assert new_lines[: len(old) - 1] == old[:-1]
        assert len(new_lines) == len(old) + 1


@given(st.text())
def test_any_text_is_split_or_refused_and_comes_together_again(text):
    for whole in (text, f"---\n{text}", f"---\n{text}\n---\n{text}"):
        try:
            page = frontmatter.split(whole)
        except Invalid:
            continue
        if page is None:
            continue
        assert page.text() == whole
        try:
            found = page.fields()
        except Invalid:
            continue
        assert isinstance(found, dict)


def test_what_is_set_is_read_the_same_by_any_reader():
    changed = frontmatter.put("---\na:\n---\n", "a", "true: #no")
    assert yaml.safe_load(changed.split("---\n")[1]) == {"a": "true: #no"}
