"""Cases with known answers, through the command line: preset serial-lanes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.acceptance.commands import ROOT
from tests.waiting import LIMIT_SECONDS


@pytest.fixture(autouse=True)
def rules(home):
    home.policy("serial-lanes")


def test_one_of_each_kind_and_two_at_once(home):
    home.ask("policy", "set", "caps.all=2")
    for name, kind in (("a", "implement"), ("b", "implement"), ("c", "review")):
        home.add("--id", name, "--kind", kind, "--parallel")
    leases = home.lease()
    assert list(leases) == ["a", "c"]
    assert home.hold("b") == "cap"
    home.ask("complete", leases["a"])
    assert list(home.lease()) == ["b"]


def test_the_same_id_twice_is_one_task(home):
    first = home.ask("add", "x", "--id", "a")["tasks"][0]
    second = home.ask("add", "y", "--id", "a")["tasks"][0]
    assert (first["created"], second["created"], second["status"]) == (True, False, "queued")
    assert len(home.lease()) == 1
    assert home.lease() == {}
    assert home.task("a")["prompt"] == "x"


def serial(home, *more):
    home.ask("policy", "set", "caps.all=2", 'caps."kind:implement"=2')
    for name in "ab":
        home.add("--id", name, "--kind", "implement", "--group", "g", *more)


def test_two_of_one_group_and_kind_run_one_after_the_other(home):
    serial(home)
    leases = home.lease()
    assert list(leases) == ["a"]
    assert home.hold("b") == "lock"
    home.ask("complete", leases["a"])
    assert list(home.lease()) == ["b"]


def test_parallel_ones_run_together(home):
    serial(home, "--parallel")
    assert list(home.lease()) == ["a", "b"]


def test_a_parallel_one_that_ends_frees_no_lock_of_the_serial_one(home):
    serial(home)
    home.add("--id", "p", "--kind", "implement", "--group", "g", "--parallel")
    leases = home.lease()
    assert list(leases) == ["a", "p"]
    home.ask("complete", leases["p"])
    assert home.lease() == {}
    assert home.hold("b") == "lock"
    home.ask("complete", leases["a"])
    assert list(home.lease()) == ["b"]


@pytest.mark.parametrize("cycle", [False, True])
def test_backpressure_adds_warns_and_defers(home, cycle):
    home.ask("policy", "set", "caps.all=1", "backpressure.soft=1", "backpressure.hard=2")
    warned = []
    for name in "abc":
        document = home.ask("add", "work", "--id", name)
        assert document["deferred"] is False
        warned.append("warning" in document["tasks"][0])
        if cycle and name == "a":
            home.lease()
    assert warned == [False, True, True]
    before = home.dump()
    refused = home.ask("add", "work", "--id", "d", code=75)
    assert (refused["deferred"], refused["tasks"]) == (True, [])
    assert home.dump() == before
    said = home.run("add", "work", "--id", "d")
    assert (said.code, said.out) == (75, "")
    assert "3 deep (hard limit 2)" in said.err


def test_a_warning_tells_the_depth_by_kind(home):
    home.ask("policy", "set", "backpressure.soft=1", "backpressure.hard=9")
    home.add("--kind", "implement")
    home.add("--kind", "review")
    document = home.ask("add", "x", "--kind", "review")
    assert document["tasks"][0]["warning"].endswith(": implement 1, review 2")


def test_a_file_is_added_or_deferred_as_a_whole(home, tmp_path):
    home.ask("policy", "set", "backpressure.soft=1", "backpressure.hard=2")
    rows = "".join(json.dumps({"id": f"f{number}"}) + "\n" for number in range(4))
    (tmp_path / "tasks.jsonl").write_text(rows)
    assert home.ask("add", "--file", tmp_path / "tasks.jsonl", code=75)["tasks"] == []
    assert home.tasks() == {}


def fail(home, name):
    home.ask("release", home.lease()[name], "--failed", "--reason", "exit 1")


def test_the_waits_and_the_sixth_failure(home):
    home.ask("policy", "set", "retry.jitter=0")
    home.add("--id", "a")
    waits = []
    for _ in range(5):
        fail(home, "a")
        waits.append(home.wait("a"))
        home.later(waits[-1])
    assert waits == [30, 60, 120, 240, 300]
    fail(home, "a")
    row = home.tasks()["a"]
    assert (row["status"], row["reason"]) == ("parked", "failed: exit 1 (attempt 6 of 6)")


def test_jitter_stays_within_a_tenth_and_is_the_same_on_every_replay(home):
    home.add("--id", "a")
    for wanted in (30, 60, 120, 240):
        fail(home, "a")
        wait = home.wait("a")
        assert 0.9 * wanted <= wait <= 1.1 * wanted
        home.later(wait)
    replayed = home.ask("replay", "--all")
    assert (replayed["replayed"], replayed["different"]) == (4, [])


@pytest.mark.parametrize(("cap", "soft", "hard"), [(1, 8, 16), (2, 8, 16), (3, 12, 24)])
def test_the_default_limits(home, cap, soft, hard):
    home.ask("policy", "set", f"caps.all={cap}")
    added = 0
    first_warning = None
    while not (document := _add(home))["deferred"]:
        added += 1
        if first_warning is None and "warning" in document["tasks"][0]:
            first_warning = added - cap
    assert (first_warning, added - cap) == (soft, hard)


def _add(home):
    said = home.run("--json", "add", "x")
    return said.document


def test_hard_below_soft_is_refused(home, tmp_path):
    file = tmp_path / "p.toml"
    file.write_text('preset = "serial-lanes"\nbackpressure = { soft = 5, hard = 4 }\n')
    assert "backpressure" in home.error("policy", "check", file, code=2)["message"]
    error = home.error("policy", "set", "backpressure.soft=5", "backpressure.hard=4", code=2)
    assert "backpressure" in error["message"]


def test_tasks_in_backoff_count_can_be_canceled_and_retried(home):
    home.ask("policy", "set", "backpressure.soft=1", "backpressure.hard=2")
    for name in "ab":
        home.add("--id", name)
        fail(home, name)
    assert "warning" in home.ask("add", "x", "--id", "c")["tasks"][0]  # a and b count
    assert home.hold("a") == "backoff"
    home.ask("cancel", "a")
    assert home.tasks()["a"]["status"] == "canceled"
    home.ask("retry", "b")
    assert home.task("b")["failures"] == 0
    assert list(home.lease()) == ["b"]  # at once


def test_after_success_or_cancel_locks_are_gone_and_failures_0(home):
    home.ask("policy", "set", "caps.all=3", 'caps."kind:*"=3')
    for name in ("a", "b", "c"):
        home.add("--id", name, "--group", "g", "--lock", "db")
    fail(home, "a")
    lease = home.lease()["b"]
    home.ask("complete", lease)
    assert home.task("b")["failures"] == 0
    second = home.lease()["c"]
    home.ask("cancel", "c")
    assert home.ask("heartbeat", second)["stop"] is True
    home.later(40)
    assert home.lease() == {}  # held until its process is known dead
    home.ask("release", second, "--outcome", "canceled")
    assert home.tasks()["c"]["status"] == "canceled"
    assert list(home.lease()) == ["a"]
    home.ask("cancel", "a")
    assert home.task("b")["failures"] == 0


def test_a_cap_lowered_below_what_runs(home):
    home.ask("policy", "set", "caps.all=3", 'caps."kind:*"=3')
    for name in "abcd":
        home.add("--id", name, "--parallel")
    leases = home.lease()
    assert len(leases) == 3
    home.ask("policy", "set", "caps.all=1")
    assert home.ask("status")["capacity"] == {
        "mode": "deferred",
        "cap": 1,
        "in_flight": 3,
        "free": 0,
    }
    for name in "ab":
        home.ask("complete", leases[name])
        assert home.lease() == {}
    home.ask("complete", leases["c"])
    assert list(home.lease()) == ["d"]


@pytest.mark.slow
def test_two_callers_add_and_drain_at_the_same_time(home):
    home.ask("policy", "set", "caps.all=2", 'caps."kind:*"=2')
    home.add("--id", "first", "--parallel")
    program = (
        "import sys; from fairlane.app import Fairlane\n"
        "with Fairlane(sys.argv[1]) as queue:\n"
        "    for number in range(15):\n"
        "        queue.add('x', parallel=True)\n"
        "        for row in queue.lease(2, worker=sys.argv[2])['leases']:\n"
        "            queue.complete(row['lease'])\n"
    )
    words = [sys.executable, "-c", program, str(home.folder)]
    environment = {"PYTHONPATH": str(ROOT / "src"), "HOME": "/nonexistent"}
    both = [subprocess.Popen([*words, name], env=environment) for name in ("w1", "w2")]
    assert [each.wait(LIMIT_SECONDS) for each in both] == [0, 0]
    flying = most = 0
    for event in home.ask("events", "--after", 0)["events"]:
        flying += {"leased": 1, "succeeded": -1}.get(event["kind"], 0)
        most = max(most, flying)
    assert most <= 2
