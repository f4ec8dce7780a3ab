"""Tasks that could never start, found in one pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlane.intake.kinship import cycle_error, cycles, find_cycle, misfits


def test_what_waits_for_something_unknown_is_named_with_all_that_waits_for_it():
    kin: dict[str, dict[str, object]] = {
        "a": {"parent": "gone"},
        "b": {"needs": ("a", "d")},
        "c": {"needs": ("known",)},
        "d": {},
        "e": {"parent": "b"},
        "f": {"needs": ("bad",)},
    }
    assert misfits(kin, {"known"}, {"bad"}) == {
        "a": "the parent of a, 'gone', is not known",
        "b": "it waits for a, which is left out",
        "e": "it waits for b, which is left out",
        "f": "it waits for bad, which is left out",
    }


def test_cycles_are_named_with_all_that_waits_for_them():
    kin: dict[str, dict[str, object]] = {
        "a": {"needs": ("b",)},
        "b": {"parent": "a"},
        "c": {"needs": ("c",)},
        "d": {"parent": "b"},
    }
    assert misfits(kin, ()) == {
        "a": "a cycle: a → b → a",
        "b": "a cycle: a → b → a",
        "c": "a cycle: c → c",
        "d": "it waits for b, which is left out",
    }


def test_a_long_cycle_is_told_in_few_words():
    around = [f"t{at}" for at in range(20_000)]
    kin = {
        name: {"needs": (after,)} for name, after in zip(around, [*around[1:], "t0"], strict=True)
    }
    reasons = misfits(kin, ())
    assert reasons.keys() == set(around)
    assert len(cycle_error(around).message) < 150
    assert reasons["t7"].endswith("→ t9 → (19,990 more) → t0")


def test_many_orphans_take_one_pass():
    """In a time that grows with the square this would take minutes."""
    kin = {f"o{at}": {"parent": f"gone{at}"} for at in range(10_000)}
    kin |= {f"c{at}": {"parent": f"o{at % 10_000}"} for at in range(10_000)}
    kin |= {f"g{at}": {"parent": f"g{at - 1}"} if at else {} for at in range(20_000)}
    assert len(misfits(kin, ())) == 20_000


NAMES = "abcdefg"


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=3)))
def test_what_is_left_can_run_in_some_order(needs):
    kin = {name: {"needs": tuple(rows)} for name, rows in needs.items()}
    reasons = misfits(kin, ())
    left, done = set(kin) - reasons.keys(), set[str]()
    while ready := {name for name in left - done if set(needs[name]) <= done}:
        done |= ready
    assert done == left
    for name in reasons:  # nothing is left out without need
        assert not set(needs[name]) <= done
    inside = [set(around) for around in cycles(kin)]
    assert sum(map(len, inside)) == len(set().union(*inside))
    assert bool(inside) == bool(find_cycle(kin))
