"""A history that fails is made short, and printed as a test that can be pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.testing.torture import History, Report, shrinking
from fairlane.testing.torture.playing import Break, Played
from fairlane.testing.torture.stores import Open, memory

ADD = (
    "ask", "ann-1", "c", "add",
    {"tasks": [{"id": "t1", "prompt": "go", "kind": "plan"}, {"id": "t2", "prompt": "go"}]},
)  # fmt: skip
RULES = ("rules", 'preset = "balanced"\ncaps.all = 0\nlease.ttl = "30s"\n')
NOISE = [("go", f"up-a/{n}") for n in range(30)] + [("let_pass", n + 0.5) for n in range(9)]
LONG = (("up", "a"), *NOISE[:20], RULES, *NOISE[20:], ADD, ("kill", "up-a"), *NOISE)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[History]:
    """Histories that were replayed; one breaks where `t2` is added under cap 0, then a crash."""
    histories: list[History] = []

    def replay(history: History, make: object = None) -> Played:
        histories.append(history)
        capped = added = crashed = False
        for what, *rest in history.choices:
            capped |= what == "rules" and "caps.all = 0" in rest[0]
            named = rest[3].get("tasks", ()) if what == "ask" else ()
            added |= capped and any(task.get("id") == "t2" for task in named)
            crashed |= added and what == "kill"
        return Played(history, Break("found", "as planned") if crashed else None)

    monkeypatch.setattr(shrinking, "replay", replay)
    return histories


def test_what_does_not_matter_is_taken_away(tried: list[History]):
    short = shrinking.shrink(History(3, LONG, "sqlite"), "found")
    assert short == History(
        3,
        (
            ("rules", "caps.all = 0\n"),
            ("ask", "ann-1", "c", "add", {"tasks": [{"id": "t2", "prompt": "go"}]}),
            ("kill", "up-a"),
        ),
        "sqlite",
    )
    assert len(tried) < 200


def test_another_promise_is_another_failure(tried: list[History]):
    history = History(3, LONG)
    assert shrinking.shrink(history, "another") == history


def test_it_ends_when_its_time_is_up(tried: list[History]):
    history = History(3, LONG)
    assert shrinking.shrink(history, "found", seconds=0.0) == history
    assert not tried


def test_what_is_printed_is_the_same_history():
    history = History(3, LONG, "sqlite")
    text = history.as_test('say "why" \\ how', "seed_3")
    names: dict[str, object] = {}
    exec(text.replace("assert replay(history).broken is None", "return history"), names)
    made = names["test_seed_3"]
    assert callable(made)
    assert made() == history


MADE: list[Path] = []


def noted(folder: Path) -> Open:
    """A store of somebody else."""
    MADE.append(folder)
    return memory(folder)


def test_what_is_printed_makes_the_store_that_was_tortured():
    failed = Played(History(3, (("up", "a"),)), Break("found", "it broke"))
    *_, text = Report("memory", 3, failed=failed, make=noted).lines()
    names: dict[str, object] = {}
    exec(text, names)
    test = names["test_seed_3"]
    assert callable(test)
    before = len(MADE)
    test()
    assert len(MADE) == before + 1
