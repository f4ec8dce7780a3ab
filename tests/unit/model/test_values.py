"""Values are read in one place: the same fault has the same words wherever it is made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest

from fairlane.cli import values as typed
from fairlane.intake import fields
from fairlane.model import values
from fairlane.model.errors import Invalid, Refused
from fairlane.policy import Policy
from fairlane.service import scenario
from fairlane.service.operations.call import fitting
from fairlane.service.operations.table import OPERATIONS
from fairlane.service.projects import _READERS as PROJECT
from fairlane.settings import Settings

ACCEPTED = {
    "whole": (values.whole(1, 5), 5, 5),
    "ratio": (values.ratio(0, 1), 0.1, Fraction(1, 10)),
    "ratio as decimal": (values.ratio(0, 1), Decimal("0.123456"), Fraction(123456, 10**6)),
    "dollars": (values.dollars(10), "2.5", 2_500_000),
    "dollars as float": (values.dollars(10), 0.1, 100_000),
    "choice": (values.choice(("a", "b")), "b", "b"),
    "names": (values.names, ["a", "b"], ("a", "b")),
    "some": (values.some_of(("a", "b"), ordered=False), "b, a", ("a", "b")),
    "command": (values.command, ["make", ""], ("make", "")),
    "duration": (values.duration, "0s", 0),
    "moment": (values.moment, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000_000),
    "environment": (values.environment, {"A": "b"}, {"A": "b"}),
}


@pytest.mark.parametrize(("read", "given", "value"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_accepted(read, given, value):
    assert read(given) == value


REFUSED = {
    "bool as number": (values.whole(0), True, "not a whole number: True", "0 or more"),
    "below": (values.whole(0), -1, "-1 is out of range", "0 or more"),
    "above": (values.whole(0), 10**16, "is out of range", "to 1000000000000000"),
    "ratio": (values.ratio(1, 9), 0.5, "0.5 is out of range", "from 1 to 9"),
    "fine ratio": (values.ratio(0, 1), 0.1234567, "not a number with at most six", ""),
    "endless": (values.ratio(0, 1), float("inf"), "not a number: inf", "from 0 to 1"),
    "dollars": (values.dollars(10), 11, "not an amount of dollars: 11", "from 0 to 10"),
    "word": (values.choice(("keep", "merge")), "kepe", "'kepe' is none of keep, merge", "'keep'?"),
    "no word": (values.some_of(("a", "b")), [], "an empty list", "a, b"),
    "twice": (values.names, ["a", "a"], "'a' appears twice", "Take one out."),
    "no program": (values.program, [], "a command without a program", ""),
    "date": (values.moment, date(2026, 1, 30), "not a time: 2026-01-30", "T12:00:00Z"),
    "no length": (values.positive_duration, 90, "not a duration: 90", "30s"),
    "long": (values.flag, "x" * 99, "not true or false: 'xxx", ""),
    "variable": (values.environment, {"A=": "b"}, "not the name of a variable: 'A='", ""),
}


@pytest.mark.parametrize(("read", "given", "message", "hint"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(read, given, message, hint):
    with pytest.raises(Invalid) as refused:
        read(given)
    assert message in refused.value.message
    assert len(refused.value.message) < 100
    assert hint in refused.value.hint


def test_an_error_keeps_its_kind_hint_and_code_within_a_place():
    error = Refused("it is gone", "Add it.", code="gone").within("task a")
    assert isinstance(error, Refused)
    assert (error.message, error.hint, error.error_code) == (
        "task a: it is gone",
        "Add it.",
        "gone",
    )
    assert error.within("f.toml", "invalid_settings").error_code == "invalid_settings"


def _scenario(**task: object) -> None:
    scenario.build({"now": "2026-01-30T12:00:00Z", "task": [{"id": "a", **task}]}, "s")


#: The same wrong whole number, given to every interface.
WHOLE: dict[str, Callable[[], object]] = {
    "policy": lambda: Policy.parse({"retry": {"max_attempts": "x"}}),
    "settings": lambda: Settings.parse({"worker": {"slots": "x"}}),
    "field": lambda: fields.read({"priority": "x"}),
    "project": lambda: PROJECT["weight"]("x"),
    "operation": lambda: fitting(OPERATIONS["lease"], {"limit": "x"}),
    "scenario": lambda: _scenario(depth="x"),
    "command line": lambda: typed.token_count("x"),
}


@pytest.mark.parametrize("read", WHOLE.values(), ids=WHOLE)
def test_one_fault_has_the_same_words_everywhere(read):
    with pytest.raises(Invalid) as refused:
        read()
    assert refused.value.message.endswith("not a whole number: 'x'")
    assert refused.value.hint


CHOICE: dict[str, Callable[[], object]] = {
    "policy": lambda: Policy.parse({"share": {"mode": "x"}}),
    "settings": lambda: Settings.parse({"workspaces": {"mode": "x"}}),
    "field": lambda: fields.read({"merge": "x"}),
    "operation": lambda: fitting(OPERATIONS["logs"], {"task": "a", "stream": "x"}),
    "scenario": lambda: _scenario(status="x"),
}


@pytest.mark.parametrize("read", CHOICE.values(), ids=CHOICE)
def test_a_word_that_is_not_known_is_refused_in_the_same_words(read):
    with pytest.raises(Invalid, match="'x' is none of "):
        read()
