"""A throttle is waited for by the pool, or by the task where it has none, whoever reports it."""

from __future__ import annotations

import pytest

from fairlane.engine.end_attempt import Report
from fairlane.model.instant import DAY, MINUTE, SECOND
from fairlane.model.project import Pool
from fairlane.service import planning
from fairlane.service.explain import why
from fairlane.service.reports import listing
from tests import holder
from tests.unit.contexts import NOON

COMMAND = {"id": "a", "command": ["make"]}


def throttle(office, **said):
    holder.release(office.context, office.lease()[0]["lease"], "throttled", Report(**said))


def wait(office, name="a"):
    with office.context.store.read() as reading:
        until = reading.task(name).backoff_until
    return 0 if until is None else (until - office.context.now()) // SECOND


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ({}, 2),
        ({"retry_after": 60 * SECOND}, 60),
        ({"resets_at": NOON + 5 * MINUTE}, 360),
        ({"retry_after": 10**9 * SECOND}, 8 * DAY // SECOND),
        ({"resets_at": NOON + 9_000 * DAY}, (8 * DAY + MINUTE) // SECOND),
    ],
)
def test_a_task_without_a_pool_waits_itself(office, said, seconds):
    office.add(COMMAND)
    throttle(office, **said)
    assert (office.lease(), wait(office)) == ([], seconds)
    (hold,) = why(office.context, "a")["holds"]
    assert hold["code"] == "backoff"
    assert hold["until"]
    assert [row["code"] for row in planning.plan(office.context)["holds"]] == ["backoff"]
    office.wait(seconds * SECOND)
    assert office.lease()[0]["attempt"] == 2
    shown = listing.show(office.context, "a")["task"]
    assert (shown["failures"], shown["attempts"]) == (0, 2)


def test_each_throttle_in_a_row_waits_longer(office):
    office.add(COMMAND)
    waits = []
    for _ in range(4):
        throttle(office)
        waits.append(wait(office))
        office.wait(waits[-1] * SECOND)
    assert waits == [2, 4, 8, 16]


def test_a_task_with_a_pool_leaves_the_wait_to_the_pool(office):
    office.add({"id": "a", "agent": "claude"}, {"id": "b", "agent": "claude"})
    throttle(office, retry_after=9_000 * DAY)
    with office.context.store.read() as reading:
        pool = reading.table(Pool)["anthropic"]
    assert (wait(office), pool.until) == (0, NOON + 8 * DAY)
    assert why(office.context, "a")["holds"][0]["code"] == "cooldown"


def rest_and_try(office, *tokens):
    """Three tasks of one pool, of which the first is throttled and then tries it."""
    office.add(*({"id": name, "agent": "claude"} for name in "abc"))
    holder.release(office.context, office.lease(1)[0]["lease"], "throttled", Report())
    office.wait(2 * SECOND)
    (probe,) = office.lease()
    if tokens:
        holder.report(office.context, probe["lease"], Report(tokens))
    office.wait(30 * SECOND)


def hits(office):
    with office.context.store.read() as reading:
        return reading.table(Pool)["anthropic"].hits


def test_the_round_that_ends_a_silent_probe_counts_what_its_end_proves(office):
    """It held the rest once more, though its own commit found the pool healthy."""
    office.policy('lease.ttl = "70s"\n')
    rest_and_try(office)
    assert office.lease() == []
    office.wait(40 * SECOND)  # it ran for more than a minute
    assert sorted(lease["task"] for lease in office.lease()) == ["b", "c"]
    assert hits(office) == 0


def test_tokens_that_the_policy_does_not_count_prove_nothing_at_the_end_either(office):
    office.policy('lease.ttl = "30s"\nusage.count = ["output"]\n')
    rest_and_try(office, 5, 0, 0, 0)
    assert len(office.lease()) == 1
    assert hits(office) == 1
