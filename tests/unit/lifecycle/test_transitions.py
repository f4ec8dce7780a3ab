"""The table is whole: every status and happening is in it, or refused with the story."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from fairlane.lifecycle import step as step_module
from fairlane.lifecycle.step import step
from fairlane.lifecycle.transitions import STORY_MAX, TRANSITIONS, IllegalTransition, goals
from fairlane.model.errors import Refused
from fairlane.model.event import Event, Happening
from fairlane.model.instant import MINUTE
from fairlane.model.task import Lease, Status, Task
from fairlane.policy.policy import Policy
from tests.unit.lifecycle.drawing import page

BALANCED = Policy.preset("balanced")
PAGE = Path(__file__).parents[3] / "docs" / "lifecycle.md"
EVERY = list(product(Status, Happening))
NOW = 100 * MINUTE


def task_in(status: Status) -> Task:
    """A task that every rule of its status accepts."""
    return Task(
        "t42",
        seq=42,
        status=status,
        attempts=3,
        failures=3 if status is Status.PARKED else 0,
        launch_failures=3 if status is Status.PARKED else 0,
        parked_at=0 if status is Status.PARKED else None,
        lost_fence=7,
        backoff_until=NOW + 1 if status is Status.QUEUED else None,
        stop_requested="cancel" if status.in_flight else "",
        lease=Lease("l7", 7) if status.in_flight else None,
    )


@pytest.mark.parametrize(("status", "happening"), [key for key in EVERY if key in TRANSITIONS])
def test_what_is_in_the_table_leads_where_it_says(status, happening):
    after = step(task_in(status), happening, BALANCED, NOW, lease=Lease("l7", 7)).task
    rule = TRANSITIONS[status, happening]
    assert after.status in (rule.to or (status,))
    assert after.attempts >= 3


@pytest.mark.parametrize(("status", "happening"), [key for key in EVERY if key not in TRANSITIONS])
def test_whatever_is_not_in_the_table_is_refused(status, happening):
    story = [Event(n, n * MINUTE, "leased", "t42", data={"fence": n}) for n in range(12)]
    with pytest.raises(IllegalTransition) as refused:
        step(task_in(status), happening, BALANCED, NOW, story=story)
    error = refused.value
    asked = {"retry": "retried", "cancel": "canceled"}.get(happening)
    if asked is not None:  # by a person
        assert error.message == f"t42 is {status} and cannot be {asked}"
    else:
        assert error.message.startswith(f"t42: {status} -> ")
        assert f'on "{happening}"' in error.message
    assert len(error.story) == STORY_MAX
    assert "1970-01-01T00:11:00Z leased fence=11" in error.hint
    assert "fence=1\n" not in error.hint
    assert isinstance(error, Refused)
    assert error.exit_code == 1


def test_the_refusal_reads_like_the_table():
    task = Task("t42", status=Status.RUNNING, lease=Lease())
    with pytest.raises(IllegalTransition) as refused:
        step(task, Happening.LEASED, BALANCED, NOW)
    assert str(refused.value) == 't42: running -> leased on "leased" is refused'
    assert refused.value.hint.startswith("Of a running task there can be: started, succeeded, ")
    again = refused.value.with_story([Event(1, NOW, "started", "t42")])
    assert again.message == refused.value.message
    assert again.hint.splitlines()[1:] == [
        "Last events of t42:",
        "  1970-01-01T01:40:00Z started",
    ]


def test_every_happening_leads_somewhere_and_every_rule_is_performed():
    assert all(goals(happening) for happening in Happening)
    assert {rule.name for rule in TRANSITIONS.values()} == set(step_module._RULES)


def test_every_status_can_be_left():
    assert {status for status, _ in TRANSITIONS} == set(Status)


def test_the_page_is_drawn_from_the_table():
    assert PAGE.read_text(encoding="utf-8") == page(), "write tests.unit.lifecycle.drawing.page()"
