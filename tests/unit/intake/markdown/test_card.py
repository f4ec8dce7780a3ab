"""Names of cards: legal, one for each, the same each time, and marked only where they must be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlane.intake.markdown.card import names
from fairlane.model.values import is_name

PART = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=60)
PLAIN = st.from_regex(r"[a-z0-9](?:[a-z0-9.-]{0,8}[a-z0-9])?", fullmatch=True)
PATHS = st.lists(st.one_of(PART, PLAIN), min_size=1, max_size=3).map("/".join)


@given(st.lists(PATHS, max_size=12))
def test_every_card_has_a_name_of_its_own(paths):
    found = names(paths)
    assert found.keys() == set(paths)
    assert len(set(found.values())) == len(found)
    assert all(map(is_name, found.values()))
    assert names(paths) == found


@given(st.lists(PLAIN, min_size=1, max_size=3).map("/".join))
def test_what_is_a_name_already_is_taken_as_it_is(path):
    dotted = path.replace("/", ".")
    if is_name(dotted):
        assert names([path, "Other one"]) == {path: dotted, "Other one": "Other-one"}


def test_bytes_that_are_no_text_have_a_name_too():
    (name,) = names(["phase-1/\udcff"]).values()
    assert is_name(name)
