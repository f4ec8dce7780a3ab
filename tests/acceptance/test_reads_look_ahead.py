"""`plan`, `list`, `status` and `why` see what a round would bring in, and change nothing."""

from __future__ import annotations


def answers(home):
    status = home.ask("status")["queued"]
    return home.picks(), {name: row["ready"] for name, row in home.tasks().items()}, status


def test_a_timer_that_has_passed(home):
    home.policy("fail-closed", "caps.all=2")
    home.add("--id", "b", "--priority", 50)
    home.add("--id", "a", "--not-before", "10s", "--priority", 10)
    home.add("--id", "c", "--not-before", "20s")
    assert home.ask("plan")["wake_at"] == "2026-01-30T12:00:10Z"
    home.later(10)
    before = home.dump()
    picks, ready, queued = answers(home)
    assert picks == ["a", "b"]
    assert ready == {"a": True, "b": True, "c": False}
    assert (queued["total"], queued["ready"], queued["waiting"], queued["held"]) == (3, 2, 1, 0)
    assert home.ask("plan")["wake_at"] == "2026-01-30T12:00:20Z"
    assert home.ask("why", "a")["verdict"].startswith("starts")
    assert home.dump() == before
    assert list(home.lease()) == ["a", "b"]


def test_a_task_that_arrives_into_a_full_house_is_held(home):
    home.policy("fail-closed")
    home.add("--id", "a")
    home.add("--id", "b", "--not-before", "10s")
    home.lease()
    home.later(10)
    assert home.hold("b") == "cap"
    assert home.ask("list", "--held-by", "cap")["tasks"][0]["id"] == "b"
    assert home.ask("status")["by_hold"] == {"cap": 1}
    why = home.ask("why", "b")
    assert {hold["code"] for hold in why["holds"]} >= {"cap"}


def test_an_artifact_that_has_appeared(home, tmp_path):
    (tmp_path / "repo").mkdir()
    home.ask("project", "add", "web", "--repo", tmp_path / "repo")
    home.add("--id", "a", "--project", "web", "--artifact", "plan.md")
    assert (home.picks(), home.hold("a")) == ([], "artifact")
    (tmp_path / "repo" / "plan.md").write_text("x")
    assert (home.picks(), home.hold("a")) == (["a"], None)
    assert home.lease() == {"a": "L1"}  # without anybody asking


def test_a_half_open_task_that_may_try_once_more(home):
    home.policy("balanced", "breaker.launch_failures=1", "breaker.half_open_after=15m")
    home.add("--id", "a")
    home.ask("release", home.lease()["a"], "--outcome", "launch_failed", "--reason", "no program")
    assert home.tasks()["a"]["status"] == "parked"
    home.later(15 * 60)
    assert home.picks() == ["a"]
    assert list(home.lease()) == ["a"]


def test_when_a_parked_task_tries_once_more_is_known_before(home):
    home.policy("balanced", "breaker.launch_failures=1", "breaker.half_open_after=15m")
    home.add("--id", "a")
    home.add("--id", "b", "--not-before", "1h")
    home.ask("release", home.lease()["a"], "--outcome", "launch_failed", "--reason", "no program")
    assert home.ask("plan")["wake_at"] == "2026-01-30T12:15:00Z"
    assert home.ask("why", "a")["verdict"] == (
        "parked: launch_failed: no program (attempt 1 of 3); it is tried once more at "
        "2026-01-30T12:15:00Z by itself, `fairlane retry a` puts it back now"
    )
    home.later(15 * 60)
    assert home.ask("why", "a")["verdict"].endswith(
        "it is tried once more with the next round, `fairlane retry a` puts it back now"
    )
    assert home.ask("plan")["wake_at"] == "2026-01-30T13:00:00Z"
    home.ask("release", home.lease()["a"], "--outcome", "launch_failed", "--reason", "no program")
    assert home.ask("plan")["wake_at"] == "2026-01-30T13:00:00Z"
    assert home.ask("why", "a")["verdict"].endswith("; `fairlane retry a` puts it back")
