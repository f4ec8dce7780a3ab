"""Amounts that no attempt can have used: refused where people give them, and no clock overflows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlane.clock import FixedClock
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Report
from fairlane.model.amounts import DOLLARS_MAX, MICRO_DOLLARS_MAX, TOKENS_MAX
from fairlane.model.errors import Invalid
from fairlane.model.instant import DAY
from fairlane.model.project import CLOCK_MAX, Project
from fairlane.service import projects
from fairlane.service.operations.call import answer, fitting
from fairlane.service.operations.table import OPERATIONS
from fairlane.settings import Settings
from fairlane.store.base import Booking
from fairlane.store.sqlite.store import SqliteStore

TOO_MUCH: list[dict[str, Any]] = [
    {"tokens": TOKENS_MAX + 1},
    {"tokens": {"input": 999_999_999_999_999, "output": 1}},
    {"tokens": {"cache_read": 10**30}},
    {"tokens": {"output": -1}},
    {"cost": DOLLARS_MAX + 1},
    {"cost": -0.01},
    {"cost": float("nan")},
]


@pytest.mark.parametrize("used", TOO_MUCH)
@pytest.mark.parametrize("name", ["report", "complete", "release"])
def test_absurd_usage_is_refused_and_changes_nothing(office, name, used):
    office.add({"id": "a"})
    (lease,) = office.lease()
    with pytest.raises(Invalid) as refused:
        answer(office.context, name, lease=lease["lease"], **used)
    assert refused.value.error_code == "invalid"
    with pytest.raises(Invalid):
        fitting(OPERATIONS[name], {"lease": lease["lease"], **used})
    with office.context.store.read() as reading:
        (attempt,) = reading.attempts("a")
    assert (attempt.ended_at, attempt.tokens, attempt.usd) == (None, (0, 0, 0, 0), None)
    assert answer(office.context, "complete", lease=lease["lease"], tokens=5)["status"] == "done"


@pytest.mark.parametrize("tokens", [TOKENS_MAX, 10**18])
def test_a_clock_never_overflows_however_often_it_is_added_to(office, tokens):
    """What older versions booked is still in stores, and counters of parsers are sums."""
    projects.add_project(office.context, "web")
    for number in range(12):
        office.add({"id": f"t{number}", "project": "web"})
        (lease,) = office.lease()
        report = Report((tokens,) * 4, usd=10**18)
        office.complete(lease["lease"], report)
    office.add({"id": "last", "project": "web"}, {"id": "other"})
    assert [each["task"] for each in office.lease()] == ["other", "last"]
    assert office.status_of("t0", "t11", "last") == ["done", "done", "leased"]
    with office.context.store.read() as reading:
        found = reading.table(Project)["web"]
        assert found.clock is not None
        assert found.clock <= CLOCK_MAX
        assert all(max(each.tokens) <= TOKENS_MAX for each in reading.attempts("t0"))


def test_an_absurd_estimate_is_refused_and_one_of_the_policy_moves_no_clock_too_far(office):
    with pytest.raises(Invalid, match="estimate_tokens"):
        office.add({"id": "a", "estimate_tokens": TOKENS_MAX + 1})
    office.policy("share.default_estimate = 1000000000000000\ncaps.all = 100\n")
    office.add(*({"id": f"t{number}"} for number in range(12)))
    assert len(office.lease()) == 12
    with office.context.store.read() as reading:
        assert (reading.table(Project)["default"].clock or 0) <= CLOCK_MAX


@pytest.mark.parametrize("length", ["9999999999999d", "9" * 5000 + "s", 10**12, "200000w"])
def test_an_absurd_wait_is_refused(office, length):
    office.add({"id": "a"})
    (lease,) = office.lease()
    told = {"lease": lease["lease"], "outcome": "throttled", "retry_after": length}
    with pytest.raises(Invalid, match=r"not a (length|duration)"):
        answer(office.context, "release", **told)
    with pytest.raises(Invalid, match="timeout"):
        office.add({"id": "b", "timeout": length if isinstance(length, str) else 10**18})


def test_ten_years_of_the_largest_attempts_are_summed_and_shown(tmp_path):
    """Two thousand attempts a day, each with the most that is accepted."""
    store = SqliteStore.open(tmp_path / "fairlane.db")
    context = Context(tmp_path, store, Settings(), FixedClock(20_000 * DAY), "ann")
    attempts_a_day, days = 2_000, 3_653
    with store.write() as tx:
        for minute in range(days):
            tokens = (attempts_a_day * TOKENS_MAX,) * 4
            usd = attempts_a_day * MICRO_DOLLARS_MAX
            at = (16_000 + minute) * DAY
            for scope in ("all", "project:default"):
                tx.book([Booking(scope, at, tokens, usd, attempts_a_day, attempts_a_day)])
    for name in ("status", "stats", "summary", "plan"):
        json.dumps(answer(context, name))
    with store.read() as reading:
        total = reading.usage_sums("project:", 0)["project:default"]
    assert sum(total.tokens) == 4 * days * attempts_a_day * TOKENS_MAX < 2**63
    assert total.usd == days * attempts_a_day * MICRO_DOLLARS_MAX < 2**63
    store.close()
