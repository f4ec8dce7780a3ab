"""Whatever a file holds, a source tells what it found or refuses it by name; it never breaks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.intake.naming import name_for
from fairlane.intake.sources import source_named
from fairlane.intake.sources.base import Found, Where
from fairlane.model.errors import Invalid
from fairlane.model.values import is_name

WORDS = st.sampled_from(
    ["id", "title", "status", "tasks", "subtasks", "dependencies", "priority", "number", "url",
     "parent", "subIssues", "blockedBy", "nodes", "state", "labels", "name", "master",
     "statuses", "milestone", "parent_task_id"],
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.floats(allow_nan=False),
    st.text(max_size=5), st.sampled_from(["1", "2", "1.1", "pending", "done", "OPEN", "To Do"]),
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=30,
)
LINES = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(["## Phase 1: A", "## Phase 2: User Story 1 (P1)", "## B", "```"]),
        st.builds(
            "- [{}] T{:03} {}{}".format,
            st.sampled_from([" ", "x", "", "?"]),
            st.integers(0, 4),
            st.sampled_from(["[P] ", "[US1] ", ""]),
            st.sampled_from(["do it", "", "do (depends on T001, T9)"]),
        ),
    ),
    max_size=12,
)


def check(source: str, text: str) -> None:
    try:
        found = source_named(source).read(Where(text=text))
    except Invalid:
        return
    assert isinstance(found, Found)
    ids = [item.id for item in found.items]
    assert len(ids) == len(set(ids))
    known = {*ids, *(group.id for group in found.collections)}
    for item in found.items:
        assert is_name(item.record["id"])
        assert item.record["title"]
        assert set(item.needs) <= set(ids)
        assert item.group is None or item.group in known
    assert all(is_name(group.name) for group in found.collections)


@pytest.mark.parametrize("source", ["taskmaster", "github"])
@given(tree=TREES)
def test_any_json(source, tree):
    check(source, json.dumps(tree))
    check(source, json.dumps({"tasks": tree} if source == "taskmaster" else [tree]))


@given(lines=LINES)
def test_any_lines(lines):
    check("spec-kit", "\n".join(lines))


@given(head=TREES, body=st.text(max_size=20))
def test_any_page(head, body):
    check("backlog", f"---\n{json.dumps(head)}\n---\n{body}")


@given(st.lists(st.text(max_size=40), max_size=3))
def test_any_words_make_a_name(words):
    assert is_name(name_for(*words))


@pytest.mark.parametrize(
    ("source", "page"),
    [("cards", "---\nagent_flow: review\n---\ngo\n"), ("backlog", "---\nid: a\ntitle: t\n---\n")],
)
def test_links_that_lead_to_themselves_are_named(tmp_path, source, page):
    (tmp_path / "good.md").write_text(page)
    (tmp_path / "bad.md").symlink_to("bad.md")
    found = source_named(source).read(Where(path=tmp_path))
    assert len(found.items) == 1
    assert [(row.id, row.bad) for row in found.left_out] == [("bad", True)]
    assert "cannot be read" in found.left_out[0].reason
