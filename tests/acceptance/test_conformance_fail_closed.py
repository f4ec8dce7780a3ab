"""Cases with known answers, through the command line: preset fail-closed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.acceptance.commands import ROOT


@pytest.fixture(autouse=True)
def rules(home):
    home.policy("fail-closed")


def test_priorities_then_age_and_the_same_again(home):
    home.ask("policy", "set", "caps.all=2")
    for name, priority in (("c", 50), ("a", 10), ("b", 10), ("d", 100)):
        home.add("--id", name, "--priority", priority)
    assert home.picks() == ["a", "b"]
    assert home.picks() == ["a", "b"]
    assert list(home.lease()) == ["a", "b"]


def test_after_a_lease_nothing_is_free(home):
    home.add("--id", "a")
    home.lease()
    plan = home.ask("plan")
    assert plan["capacity"] == {"cap": 1, "in_flight": 1, "free": 0}
    assert plan["reason"] == "none"


def test_an_expired_lease_is_reclaimed_with_a_failure_and_a_backoff(home):
    home.add("--id", "a")
    home.lease("--worker", "elsewhere")
    home.later(300)
    assert home.ask("reclaim") == {"schema": "fairlane/1", "reclaimed": ["a"], "parked": []}
    task = home.task("a")
    assert (task["status"], task["failures"], task["attempts"]) == ("queued", 1, 1)
    assert home.wait("a") == 1
    assert home.ask("reclaim")["reclaimed"] == []  # each counts once


def test_a_lease_that_has_not_expired_stays(home):
    home.add("--id", "a")
    home.lease()
    home.later(299.999)
    assert home.ask("reclaim")["reclaimed"] == []


def test_the_third_expired_lease_parks_and_retry_puts_it_back(home):
    home.add("--id", "a")
    for number in range(3):
        assert list(home.lease()) == ["a"]
        home.later(300)
        if number < 2:
            assert home.ask("reclaim")["parked"] == []
            home.later(2)
    assert home.ask("reclaim") == {"schema": "fairlane/1", "reclaimed": ["a"], "parked": ["a"]}
    parked = home.task("a")
    assert (parked["status"], parked["reason"]) == ("parked", "lost (attempt 3 of 3)")
    home.later(100_000)
    assert home.picks() == []
    assert home.lease() == {}
    assert home.ask("status")["parked"] == 1
    assert home.ask("retry", "a")["tasks"][0]["status"] == "queued"
    back = home.task("a")
    assert (back["failures"], back["attempts"], back["reason"]) == (0, 3, "")
    assert home.picks() == ["a"]


def test_two_failed_releases_of_two_park(home):
    home.add("--id", "a", "--max-attempts", 2)
    for number in (1, 2):
        lease = home.lease()["a"]
        document = home.ask("release", lease, "--failed", "--reason", "exit 1")
        assert document["status"] == ("queued" if number == 1 else "parked")
        home.later(60)
    assert home.tasks()["a"]["reason"] == "failed: exit 1 (attempt 2 of 2)"


@pytest.mark.parametrize("verb", ["heartbeat", "complete", "release", "report"])
def test_an_unknown_lease_is_named(home, verb):
    home.add("--id", "a")
    before = home.dump()
    error = home.error(verb, "L99")
    assert (error["code"], "L99" in error["message"]) == ("unknown_lease", True)
    assert home.dump() == before


def test_retry_of_what_is_neither_parked_nor_waiting_is_refused(home):
    home.add("--id", "a")
    before = home.dump()
    assert "a" in home.error("retry", "a")["message"]
    assert home.dump() == before
    lease = home.lease()["a"]
    assert "a" in home.error("retry", "a")["message"]
    home.ask("complete", lease)
    assert "a" in home.error("retry", "a")["message"]


def test_the_waits_double_up_to_a_minute(home):
    home.add("--id", "a", "--max-attempts", 9)
    waits = []
    for _ in range(8):
        home.ask("release", home.lease()["a"], "--failed")
        assert home.tasks()["a"]["hold"]["code"] == "backoff"
        waits.append(home.wait("a"))
        home.later(60)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_an_expired_lease_of_another_host_makes_room_in_the_same_round(home):
    for name in "ab":
        home.add("--id", name)
    lost = home.lease("--worker", "far")["a"]
    home.later(300)
    plan = home.ask("plan")
    assert [each["task"] for each in plan["reclaims"]] == ["a"]
    assert [pick["task"] for pick in plan["picks"]] == ["b"]
    assert list(home.lease("--worker", "near")) == ["b"]
    flying = 0
    for event in home.ask("events")["events"]:  # at no event is more than one in flight
        flying += {"leased": 1, "lost": -1}.get(event["kind"], 0)
        assert flying <= 1
    assert home.error("release", lost, "--failed")["code"] == "lease_lost"
    assert home.error("heartbeat", lost)["code"] == "lease_lost"
    done = home.ask("complete", lost)
    assert (done["task"], done["status"], done["late"]) == ("a", "done", True)


def test_a_completion_long_after_expiry_is_refused_once_leased_again(home):
    home.add("--id", "a")
    first = home.lease()["a"]
    home.later(300)
    home.ask("reclaim")
    home.later(1)
    second = home.lease()["a"]
    error = home.error("complete", first, "--tokens", "700")
    assert error["code"] == "lease_lost"
    assert home.ask("project", "show", "default")["project"]["tokens"] == 700  # booked either way
    assert home.ask("complete", second)["status"] == "done"
    attempts = home.ask("show", "a")["attempts"]
    assert [each["outcome"] for each in attempts] == ["lost", "succeeded"]
    assert attempts[0]["tokens"]["output"] == 700


def test_a_late_success_is_taken_from_the_parked_but_not_after_retry(home):
    home.ask("policy", "set", "retry.max_attempts=1")
    home.add("--id", "a")
    lease = home.lease()["a"]
    home.later(300)
    assert home.ask("reclaim")["parked"] == ["a"]
    home.ask("retry", "a")
    assert home.error("complete", lease)["code"] == "lease_lost"
    again = home.lease()["a"]
    home.later(300)
    home.ask("reclaim")
    home.later(10_000)
    assert home.ask("complete", again)["status"] == "done"


def test_a_run_longer_than_the_ttl_keeps_its_lease_with_heartbeats(home):
    home.add("--id", "a")
    lease = home.lease()["a"]
    for _ in range(10):
        home.later(299)
        beat = home.ask("heartbeat", lease)
        assert (beat["status"], beat["stop"]) == ("running", False)
        assert home.ask("reclaim")["reclaimed"] == []
    assert home.ask("complete", lease)["status"] == "done"


def test_a_clean_release_then_a_lease_at_the_same_instant(home):
    home.add("--id", "a")
    first = home.ask("lease")["leases"][0]
    released = home.ask("release", first["lease"])
    assert (released["task"], released["status"]) == ("a", "queued")
    second = home.ask("lease")["leases"][0]
    assert second["lease"] != first["lease"]
    assert second["fence"] > first["fence"]
    assert home.task("a")["failures"] == 0
    assert home.error("complete", first["lease"])["code"] == "lease_ended"


def test_a_repeated_complete_of_ones_own_is_no_error(home):
    home.add("--id", "a")
    lease = home.lease()["a"]
    home.ask("complete", lease)
    again = home.ask("complete", lease)
    assert (again["status"], again["code"]) == ("done", "already_done")
    assert home.error("release", lease)["code"] == "lease_ended"


@pytest.mark.parametrize("cap", ["2.5", '"abc"', "abc", "-1"])
def test_a_cap_that_is_none_is_refused_and_the_old_policy_stays(home, cap):
    for name in "abc":
        home.add("--id", name)
    before = home.ask("policy", "show")
    error = home.error("policy", "set", f"caps.all={cap}", code=2)
    assert "caps.all" in error["message"]
    assert home.ask("policy", "show") == before
    assert len(home.lease()) == 1


@pytest.mark.parametrize("cap", ["2.5", '"abc"', "-1"])
def test_a_broken_policy_file_refuses_decisions_but_answers_questions(home, cap):
    for name in "abc":
        home.add("--id", name)
    home.lease("--limit", 0)  # a round that records the policy in force
    file = home.folder / "policy.toml"
    file.write_text(f'preset = "fail-closed"\ncaps.all = {cap}\n')
    before = home.dump()
    for words in (("lease",), ("add", "x"), ("reclaim",), ("edit", "a", "--priority", 1)):
        error = home.error(*words, code=2)
        assert str(file) in error["message"]
    assert home.dump() == before
    said = home.run("status", "--json")
    assert said.code == 0
    assert "warning:" in said.err
    assert said.document["capacity"]["cap"] == 1
    assert home.run("list").code == 0


def test_next_eligible_is_an_instant_and_not_text(home):
    home.later(-2 * 3600 - 1)  # 09:59:59
    home.add("--id", "a", "--not-before", "2026-01-30T10:00:00Z")
    assert home.picks() == []
    home.later(1.5)
    assert home.ask("plan")["now"] == "2026-01-30T10:00:00.500Z"
    assert home.picks() == ["a"]
    assert list(home.lease()) == ["a"]


@pytest.mark.slow
def test_many_processes_lease_at_once(home):
    home.ask("policy", "set", "caps.all=5")
    for number in range(12):
        home.add("--id", f"n{number}")
    words = [sys.executable, "-m", "fairlane", "--home", str(home.folder), "--json"]
    environment = {"PYTHONPATH": str(ROOT / "src"), "HOME": "/nonexistent"}
    processes = [
        subprocess.Popen(
            [*words, "lease", "--limit", "2", "--worker", f"w{number}"],
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        for number in range(6)
    ]
    taken = [
        row["task"] for each in processes for row in json.loads(each.communicate()[0])["leases"]
    ]
    assert len(taken) == len(set(taken)) == 5
    assert home.ask("status")["capacity"]["in_flight"] == 5
