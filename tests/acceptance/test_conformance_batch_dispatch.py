"""Cases with known answers, through the command line: preset batch-dispatch."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(autouse=True)
def rules(home):
    home.policy("batch-dispatch")


@pytest.mark.parametrize(
    ("cap", "batch", "ready", "picks", "reason"),
    [
        (5, 3, 0, 0, "none"),
        (0, 3, 10, 0, "capacity"),
        (2, 3, 10, 2, "capacity"),
        (10, 3, 10, 3, "batch"),
        (10, 5, 2, 2, "ready"),
    ],
)
def test_capacity_batch_and_ready(home, cap, batch, ready, picks, reason):
    home.ask("policy", "set", f"caps.all={cap}", f"capacity.batch={batch}")
    for _ in range(ready):
        home.add()
    plan = home.ask("plan")
    assert (len(plan["picks"]), plan["reason"]) == (picks, reason)
    taken = home.ask("lease")
    assert (len(taken["leases"]), taken["reason"]) == (picks, reason)


def test_the_batch_is_of_the_interval_over_all_callers(home):
    home.ask("policy", "set", "capacity.batch=2")
    for _ in range(5):
        home.add()
    assert len(home.lease("--worker", "w1", "--limit", 1)) == 1
    assert len(home.lease("--worker", "w2")) == 1
    assert home.lease("--worker", "w3") == {}
    plan = home.ask("plan")
    assert (plan["reason"], plan["wake_at"]) == ("batch", "2026-01-30T12:03:00Z")
    home.later(180)
    assert len(home.lease("--worker", "w3")) == 2


def launch_failure(home, name, lease):
    home.ask("release", lease, "--outcome", "launch_failed", "--reason", "no such program")


def test_one_of_three_cannot_be_launched(home):
    home.ask("policy", "set", "capacity.batch=3")
    for name in "abc":
        home.add("--id", name)
    leases = home.lease()
    launch_failure(home, "b", leases["b"])
    for name in "ac":
        assert home.ask("heartbeat", leases[name])["status"] == "running"
    row = home.tasks()["b"]
    assert (row["status"], row["failures"], row["hold"]["code"]) == ("queued", 1, "backoff")


def test_three_launch_failures_in_a_row_park_with_the_last_error(home):
    home.add("--id", "a")
    for _ in range(3):
        launch_failure(home, "a", home.lease()["a"])
        home.later(600)
    row = home.tasks("--status", "parked")["a"]
    assert row["reason"] == "launch_failed: no such program (attempt 3 of 3)"
    assert home.ask("status")["parked"] == 1
    assert row["reason"] in home.run("list").out.replace("\n", " ").replace("  ", "")
    home.later(30 * 24 * 3600)
    assert home.picks() == []  # no half-open here


@pytest.mark.parametrize("outcome", ["environment", "released", "throttled"])
def test_what_is_not_the_tasks_fault_is_no_failure(home, outcome):
    home.add("--id", "a", "--agent", "claude")
    for _ in range(4):
        home.ask("release", home.lease()["a"], "--outcome", outcome)
        home.later(3600)
    row = home.tasks()["a"]
    assert (row["status"], row["failures"], row["attempts"]) == ("queued", 0, 4)


def test_pause_and_resume_are_durable_and_twice_is_once(home):
    home.add("--id", "a")
    first = home.ask("pause", "--reason", "release day")
    assert (first["by"], first["since"]) == ("ana", "2026-01-30T12:00:00Z")
    home.later(60)
    second = home.ask("pause", "--reason", "another")
    assert second == first | {"changed": False}
    assert home.ask("status")["paused"] == [
        {"scope": "all", "by": "ana", "since": "2026-01-30T12:00:00Z", "reason": "release day"}
    ]
    taken = home.ask("lease")
    assert (taken["leases"], taken["reason"]) == ([], "paused")
    assert home.ask("resume")["changed"] is True
    assert home.ask("resume")["changed"] is False
    kinds = [event["kind"] for event in home.ask("events")["events"]]
    assert kinds.count("paused") == kinds.count("resumed") == 1
    assert list(home.lease()) == ["a"]


def test_an_id_with_another_projects_prefix(home):
    home.ask("project", "add", "web", "--prefix", "web-")
    home.ask("project", "add", "api")
    before = home.dump()
    error = home.error("add", "x", "--id", "web-1", "--project", "api")
    assert error["code"] == "foreign_prefix"
    assert home.dump() == before
    home.ask("add", "x", "--id", "web-1", "--project", "api", "--force")
    assert home.tasks()["web-1"]["project"] == "api"
    home.add("--id", "web-2")
    assert home.tasks()["web-2"]["project"] == "web"  # routed by its prefix


def test_adding_what_runs_or_is_done_never_runs_it_again(home):
    home.add("--id", "a")
    lease = home.lease()["a"]
    row = home.ask("add", "x", "--id", "a", "--again")["tasks"][0]
    assert (row["created"], row["status"]) == (False, "leased")
    home.ask("complete", lease)
    row = home.ask("add", "x", "--id", "a")["tasks"][0]
    assert (row["created"], row["status"]) == (False, "done")
    home.later(3600)
    assert home.lease() == {}
    row = home.ask("add", "x", "--id", "a", "--again")["tasks"][0]
    assert (row["created"], row["status"]) == (False, "queued")
    taken = home.ask("lease")["leases"][0]
    assert (taken["task"], taken["attempt"], taken["fence"]) == ("a", 2, 2)


def test_a_dry_run_changes_nothing_not_even_a_counter(home, tmp_path):
    home.add("--id", "a")
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps({"prompt": str(n)}) + "\n" for n in range(3)))
    before = home.dump()
    assert home.ask("add", "x", "--dry-run", "--group", "g")["tasks"][0]["created"] is True
    assert len(home.ask("add", "--file", file, "--chain", "--dry-run")["tasks"]) == 3
    home.ask("plan")
    home.ask("clear", "--dry-run")
    assert home.dump() == before
    assert home.ask("add", "x")["tasks"][0]["id"] == "t1"
