"""Names of tasks and groups out of any words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.intake.naming import name_for
from fairlane.model.values import is_name


@given(st.lists(st.text(max_size=200), max_size=3))
def test_whatever_the_words_are_they_become_a_name(words):
    assert is_name(name_for(*words))
    assert name_for(*words) == name_for(*words)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("gt-1.2",), "gt-1.2"),
        (("app", "", 12), "app-12"),
        (("app", "Sprint 1: log in!"), "app-Sprint-1-log-in"),
        (("Größe", "café"), "Grosse-cafe"),
        (("🚀 Launch",), "Launch"),
        (("../.git.lock",), "git"),
    ],
)
def test_names_stay_near_to_the_words(words, name):
    assert name_for(*words) == name


@pytest.mark.parametrize("titles", [("里程碑一", "里程碑二"), ("Этап 1", "Спринт 1"), ("中", "文")])
def test_words_that_lose_their_letters_stay_apart(titles):
    first, second = (name_for("app", title) for title in titles)
    assert first.startswith("app-")
    assert second.startswith("app-")
    assert first != second


def test_long_words_are_cut_and_stay_apart():
    first, second = (name_for("a" * 200 + last) for last in "xy")
    assert first != second
    assert len(first) == len(second) < 128
