"""Shared writer: for whom a commit waits."""

from __future__ import annotations

from fairlane.app.shared_writer import PROMPT_SECONDS, PromptCallers

SOON, LATE = PROMPT_SECONDS / 2, PROMPT_SECONDS * 2


def test_a_caller_that_comes_back_at_once_is_expected_after_its_next_answer() -> None:
    callers = PromptCallers()
    callers.asks("a", 1.0)
    callers.answered(["a"], 1.1)
    assert callers.expected == set()  # nobody knows yet
    callers.asks("a", 1.1 + SOON)
    callers.answered(["a"], 1.2)
    assert callers.expected == {"a"}
    callers.asks("a", 1.2 + SOON)
    assert callers.expected == set()  # it is there


def test_nobody_waits_for_callers_that_come_once_or_late() -> None:
    callers = PromptCallers()
    for number in range(100):
        callers.asks(number, float(number))
        callers.asks("late", number + SOON)
        callers.answered([number, "late"], number + SOON)
        assert callers.expected == set()


def test_who_stays_away_once_is_waited_for_once() -> None:
    callers = PromptCallers()
    for answered in (1.0, 2.0):
        callers.asks("a", answered - LATE + SOON)
        callers.answered(["a"], answered)
        callers.asks("a", answered + SOON)
    callers.answered(["a"], 3.0)
    assert callers.expected == {"a"}
    callers.answered(["b"], 4.0)  # a commit has waited for it in vain
    assert callers.expected == set()
    callers.asks("a", 5.0)
    callers.answered(["a"], 5.1)
    assert callers.expected == set()


def test_what_is_remembered_of_callers_is_bounded() -> None:
    callers = PromptCallers()
    for number in range(10_000):
        now = number * LATE
        callers.asks(number, now)
        callers.answered([number], now)
        callers.asks(number, now + SOON)
    assert len(vars(callers)["_answered"]) <= 1
    for _ in range(2):  # the last ones are expected, stay away, and are forgotten
        callers.answered(range(10_000), 1e6)
    assert vars(callers)["_prompt"] == set()
