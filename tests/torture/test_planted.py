"""Torture finds planted bugs: each by its seed, each for the right reason, none without the bug.

When a change of Fairlane or of torture has moved the histories, `python -m tests.torture.planted`
finds them anew.
"""

from __future__ import annotations

import pytest

from fairlane.engine import end_attempt
from fairlane.testing.torture import replay
from tests.torture.planted.bug import bug, line
from tests.torture.planted.finding import SEEDS_QUICK, Found, is_found, known, with_bug
from tests.torture.planted.listed import BUGS
from tests.torture.planted.table import PAGE, lines

pytestmark = pytest.mark.slow

ASKED = {
    "double lease", "fence not checked", "cap counted late", "share clock moved twice",
    "dependents forgotten", "expiry by the wrong clock", "budget not watched on one path",
    "result on disk ignored", "half-open never", "pause of a parent group",
    "carried work of what is not done", "check skipped on recovery",
}  # fmt: skip


def test_all_are_there_and_many_more():
    assert set(BUGS) >= ASKED
    assert len(BUGS) >= len(ASKED) + 10
    assert known().keys() == BUGS.keys()


@pytest.mark.parametrize("name", BUGS)
def test_torture_finds_it_by_its_seed(name: str):
    found = known()[name]
    seeds = (found.seed, *range(1, SEEDS_QUICK + 1))  # the others, where the histories have moved
    played = (with_bug(BUGS[name], seed, found.length) for seed in seeds)
    assert any(is_found(BUGS[name], one) for one in played), _again(found)


@pytest.mark.parametrize("name", BUGS)
def test_its_shrunk_history_breaks_with_the_bug_alone(name: str):
    found = known()[name]
    with BUGS[name].planted():
        broken = replay(found.history).broken
    assert broken is not None, _again(found)
    assert broken.promise in BUGS[name].breaks, broken.sentence
    assert replay(found.history).broken is None


def test_the_page_shows_what_was_found():
    assert "\n".join(lines(known())) in PAGE.read_text(encoding="utf-8")


def test_a_planted_bug_leaves_nothing_behind():
    before = end_attempt.unreadable.__code__
    with bug("x", "", "", line(end_attempt.unreadable, ("park=True", "park=False"))).planted():
        assert not end_attempt.unreadable(ValueError("odd")).park
    assert end_attempt.unreadable.__code__ is before
    assert end_attempt.unreadable(ValueError("odd")).park


def test_a_bug_whose_line_is_gone_is_told():
    gone = bug("x", "", "", line(end_attempt.unreadable, ("no such line", "")))
    with pytest.raises(LookupError, match=r"unreadable has 0 times: no such line"), gone.planted():
        pass


def _again(found: Found) -> str:
    return f"find it anew: python -m tests.torture.planted '{found.bug}'"
