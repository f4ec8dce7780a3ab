"""Status, summary, stats."""

from __future__ import annotations

from fairlane.engine.end_attempt import Report
from fairlane.model.instant import HOUR, MINUTE, SECOND
from fairlane.service import projects, queue
from fairlane.service.reports.stats import stats
from fairlane.service.reports.status import status
from fairlane.service.reports.summary import summary
from tests import holder

KEYS = (
    "paused", "capacity", "queued", "parked", "running", "by_hold", "pools", "budgets", "warnings",
    "last_cycle",
)  # fmt: skip


def test_an_empty_queue_has_empty_lists(office):
    shown = status(office.context)
    assert set(KEYS) <= shown.keys()
    assert shown["capacity"] == {"mode": "deferred", "cap": 4, "in_flight": 0, "free": 4}
    assert shown["queued"] == {
        "total": 0,
        "ready": 0,
        "waiting": 0,
        "held": 0,
        "by_kind": {},
        "by_project": {},
    }
    assert (shown["running"], shown["budgets"], shown["warnings"]) == ([], [], [])
    assert (shown["parked"], shown["last_cycle"]) == (0, {})


def test_queued_is_counted_by_what_holds_it(office):
    office.policy("[caps]\nall = 2\n[retry]\nmax_attempts = 1")
    projects.add_project(office.context, "web")
    office.add({"id": "a"}, {"id": "b", "project": "web"}, {"id": "c", "kind": "review"})
    office.add({"id": "d", "needs": ["a"]}, {"id": "e"})
    queue.pause(office.context, "kind:review")
    office.fail(office.lease(1)[0]["lease"])
    lease = office.lease(1)[0]
    holder.report(office.context, lease["lease"], Report((5, 10, 100, 0), 20_000), "halfway")
    shown = status(office.context)
    assert shown["queued"] == {
        "total": 3,
        "ready": 2,
        "waiting": 1,
        "held": 1,
        "by_kind": {"code": 2, "review": 1},
        "by_project": {"default": 3},
    }
    assert shown["by_hold"] == {"paused": 1, "upstream": 1}
    assert shown["parked"] == 1
    assert shown["capacity"] == {"mode": "deferred", "cap": 2, "in_flight": 1, "free": 1}
    row = shown["running"][0]
    assert (row["task"], row["status"], row["worker"]) == ("b", "running", "box")
    assert (row["tokens"], row["usd"], row["note"]) == (15, 0.02, "halfway")
    assert shown["last_cycle"]["at"] == "2026-01-30T12:00:00Z"
    assert shown["last_cycle"]["picks"] == 1
    assert [held["code"] for held in shown["holds"]] == ["paused", "upstream"]


def test_budgets_with_what_is_used_and_reserved(office):
    office.policy(
        '[[budget]]\nscope = "all"\ntokens = 1000\nwindow = "24h"\n'
        '[[budget]]\nscope = "project:default"\nusd = 2.5\nwindow = "day"\n'
    )
    office.add({"id": "a", "estimate_tokens": 100}, {"id": "b", "estimate_tokens": 100})
    first, _ = office.lease(2)
    office.finish(first["lease"], 800, 500_000)
    tokens, usd = status(office.context)["budgets"]
    assert (tokens["scope"], tokens["window"], tokens["unit"]) == ("all", "24h", "tokens")
    assert (tokens["used"], tokens["reserved"], tokens["limit"]) == (800, 100, 1000)
    assert (tokens["fraction"], tokens["warn"]) == (0.9, True)
    assert (usd["used"], usd["limit"], usd["warn"]) == (0.5, 2.5, False)
    codes = [warning["code"] for warning in status(office.context)["warnings"]]
    assert codes == ["budget"]


def test_what_nothing_will_free_is_a_warning(office):
    office.add({"agent": "nobody"}, {"agent": "nobody"}, {"labels": ["gpu"]})
    found = {each["code"]: each["message"] for each in status(office.context)["warnings"]}
    assert found["unknown_agent"] == (
        "2 held: agent nobody is not known here; nothing will free them"
    )
    assert "no_label" in found


def test_a_broken_policy_is_a_warning_for_readers(office):
    office.policy("caps.al = 3")
    shown = status(office.context)
    assert shown["warnings"][0]["code"] == "policy"
    assert "unknown key caps.al" in shown["warnings"][0]["message"]
    assert "the defaults are shown" in shown["warnings"][0]["message"]  # none was good before


def test_many_lanes_are_a_warning(office):
    office.add(*({"priority": number} for number in range(2_001)))
    found = {each["code"]: each["message"] for each in status(office.context)["warnings"]}
    assert found["lanes"].startswith("2001 lanes: distinct priorities")


def test_weight_0_in_a_full_system_is_a_warning(office):
    projects.add_project(office.context, "spare", {"weight": 0})
    office.policy("[caps]\nall = 1")
    office.add({"id": "a"}, {"project": "spare"})
    assert status(office.context)["warnings"] == []
    office.lease(1)
    assert status(office.context)["warnings"][0]["code"] == "weight_zero"


def test_what_happened_while_nobody_looked(office):
    office.policy("retry.max_attempts = 1")
    office.add({"id": "a", "title": "first"}, {"id": "b"}, {"id": "c"})
    office.wait(MINUTE)
    first, second = office.lease(2)
    office.wait(10 * MINUTE)
    office.finish(first["lease"], 500, 250_000)
    office.fail(second["lease"], "exit 3")
    queue.pause(office.context, "pool:anthropic", "out of credits")
    told = summary(office.context)
    assert told["done"]["count"] == 1
    assert told["done"]["tasks"][0] | {"ended_at": ""} == {
        "id": "a",
        "title": "first",
        "project": "default",
        "kind": "code",
        "attempt": 1,
        "ended_at": "",
        "seconds": 600.0,
        "tokens": 500,
        "usd": 0.25,
        "answer": None,
    }
    assert (told["tokens"], told["usd"]) == (500, 0.25)
    assert told["parked"]["tasks"][0]["reason"] == "failed: exit 3 (attempt 1 of 1)"
    assert told["waits"] == {"p50": 60.0, "p90": 60.0, "count": 1}
    assert (told["attempts"]["succeeded"], told["attempts"]["failed"]) == (1, 1)
    assert told["failures"][0]["detail"] == "exit 3"
    assert told["needs_person"] == [
        {"what": "task:b", "why": "parked: failed: exit 3 (attempt 1 of 1)"},
        {"what": "pool:anthropic", "why": "out of credits"},
    ]
    office.wait(13 * HOUR)
    later = summary(office.context)
    assert later["done"]["count"] == 0
    assert later["parked"]["tasks"][0]["new"] is False
    assert summary(office.context, office.context.now() - 24 * HOUR)["done"]["count"] == 1


def test_shares_against_targets_with_the_bound(office):
    office.policy("[caps]\nall = 2")
    projects.add_project(office.context, "web", {"weight": 3})
    office.add(*({"project": "web", "estimate_tokens": 100} for _ in range(4)))
    office.add(*({"estimate_tokens": 100} for _ in range(4)))
    for lease in (*office.lease(2), *office.lease(2)):
        office.wait(30 * SECOND)
        office.finish(lease["lease"], 90)
    for lease in office.lease(2):
        office.finish(lease["lease"], 150)
    told = stats(office.context)
    rows = {row["project"]: row for row in told["projects"]}
    assert (rows["web"]["target"], rows["default"]["target"]) == (0.75, 0.25)
    assert rows["web"]["tokens"] + rows["default"]["tokens"] == sum(
        row["tokens"] for row in rows.values()
    )
    for row in rows.values():
        assert row["lag"] is not None
        assert row["bound"] is not None
        assert 0 <= row["lag"] <= row["bound"]
    assert told["throughput"]["done"] == sum(row["completions"] for row in rows.values())
    assert (told["durations"]["p95"] or 0) >= (told["durations"]["p50"] or 0)
    kinds = {row["project"]: row for row in told["estimates"]}
    assert all(0 < row["within"] <= 1 for row in kinds.values())
    series = told["series"]
    points = sum(point["tokens"] for each in series["projects"].values() for point in each)
    assert points == sum(row["tokens"] for row in rows.values())
    assert all(len(each) == len(series["at"]) for each in series["projects"].values())
    assert len(told["timeline"]) == told["throughput"]["done"]


def test_stats_of_nothing(office):
    told = stats(office.context)
    assert told["waits"] == {"p50": None, "p95": None, "count": 0}
    assert (told["estimates"], told["timeline"]) == ([], [])
    assert told["throughput"] == {"done": 0, "per_hour": 0.0}
