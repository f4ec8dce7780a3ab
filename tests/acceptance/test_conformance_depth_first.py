"""Cases with known answers, through the command line: preset depth-first."""

from __future__ import annotations

import pytest

from fairlane.model.instant import SECOND, parse_instant


@pytest.fixture(autouse=True)
def rules(home):
    home.policy("depth-first")


def scores(home):
    return {pick["task"]: pick["score"] for pick in home.ask("plan")["picks"]}


def fail(home, name, times):
    for _ in range(times):
        home.ask("release", home.lease("--limit", 1)[name], "--failed")


def test_failures_lower_the_score_but_not_without_end(home):
    home.add("--id", "a")
    assert scores(home) == {"a": 100}  # no bonus for a new one
    fail(home, "a", 4)
    assert scores(home) == {"a": 80}
    fail(home, "a", 15)
    assert scores(home) == {"a": 70}
    fail(home, "a", 1)
    assert home.tasks()["a"]["reason"].endswith("(attempt 20 of 20)")


def test_a_chain_has_depths_and_deeper_goes_first(home):
    parent: tuple[str, ...] = ()
    for kind in ("plan", "spec", "phase", "code"):
        home.add("--id", kind, "--kind", kind, *parent)
        parent = ("--parent", kind)
    assert [row["depth"] for row in home.tasks().values()] == [0, 1, 2, 3]
    for kind in ("plan", "spec", "phase"):
        assert home.picks() == [kind]
        home.ask("complete", home.lease()[kind])
    home.later(5 * 60)
    assert scores(home) == {"code": 135}


def test_the_plan_starves_behind_the_code(home):
    home.add("--id", "root")
    lease = home.lease()["root"]
    home.add("--id", "plan", "--kind", "plan")
    home.later(3600)
    for name, parent in (("x", "root"), ("y", "x"), ("z", "y")):
        home.add("--id", name, "--parent", parent)
    home.ask("complete", lease)
    for name in "xy":
        home.ask("complete", home.lease("--limit", 1)[name])
    assert list(scores(home).items()) == [("z", 130), ("plan", 90)]


def test_a_clock_that_was_ahead(home):
    home.later(600)
    home.add("--id", "a")
    home.later(-600)
    assert scores(home) == {"a": 100}


def test_parent_running_canceled_done(home):
    for name in ("p", "q", "r"):
        home.add("--id", name)
        home.add("--id", f"{name}-child", "--parent", name)
    leases = home.lease()
    home.ask("heartbeat", leases["p"])
    assert home.hold("p-child") == "parent"
    home.ask("cancel", "q")
    home.ask("release", leases["q"], "--outcome", "canceled")
    assert home.hold("q-child") == "upstream"
    home.ask("complete", leases["r"])
    assert home.hold("r-child") is None
    assert home.picks() == ["r-child"]


def test_an_artifact_missing_then_written(home):
    home.add("--id", "p")
    home.ask("complete", home.lease()["p"])
    home.add("--id", "a", "--parent", "p", "--artifact", "plan.md")
    assert home.hold("a") == "artifact"
    assert home.lease() == {}
    folder = home.folder / "artifacts" / "p"
    folder.mkdir(parents=True)
    (folder / "plan.md").write_text("x")
    assert list(home.lease()) == ["a"]


@pytest.mark.parametrize(("flying", "picked"), [(1, 1), (0, 2), (2, 0)])
def test_what_is_in_flight_counts_under_cap_all(home, flying, picked):
    home.ask("policy", "set", "caps.all=2")
    for _ in range(flying):
        home.add()
    assert len(home.lease()) == flying
    for _ in range(5):
        home.add()
    assert len(home.picks()) == picked


def test_what_is_in_flight_counts_under_the_cap_of_its_kind(home):
    home.ask("policy", "set", 'caps."kind:code"=2')
    home.add()
    home.lease()
    for _ in range(5):
        home.add()
    assert len(home.lease()) == 1


def cooldown(home):
    pool = home.ask("pool", "show", "anthropic")["pool"]
    if pool["until"] is None:
        return None
    return (parse_instant(pool["until"]) - home.now) / SECOND


def throttle(home, lease, *more):
    home.ask("release", lease, "--outcome", "throttled", *(more or ("--retry-after", 0)))


def test_cooldowns_double_up_to_64_seconds(home):
    home.add("--id", "a", "--agent", "claude")
    waits = []
    for _ in range(7):
        throttle(home, home.lease()["a"])
        assert home.lease() == {}
        assert home.hold("a") == "cooldown"
        waits.append(cooldown(home))
        home.later(waits[-1])
    assert waits == [2, 4, 8, 16, 32, 64, 64]
    assert home.task("a")["failures"] == 0


@pytest.mark.parametrize("told", ["100", "100s", "1m40s"])
def test_what_the_provider_says_counts_when_it_is_longer(home, told):
    home.add("--id", "a", "--agent", "claude")
    throttle(home, home.lease()["a"], "--retry-after", told)
    assert cooldown(home) == 100


def test_a_window_that_is_used_up(home):
    home.add("--id", "a", "--agent", "claude")
    throttle(home, home.lease()["a"], "--resets-at", "2026-01-30T13:00:00Z")
    assert cooldown(home) == 3600 + 60


def test_ten_tasks_that_see_the_same_429_are_one_hit(home):
    for _ in range(10):
        home.add("--agent", "claude")
    for lease in home.lease().values():
        throttle(home, lease)
    assert home.ask("pool", "show", "anthropic")["pool"]["hits"] == 1
    assert cooldown(home) == 2


def test_a_success_that_began_before_the_429_does_not_clear_the_cooldown(home):
    for name in "ab":
        home.add("--id", name, "--agent", "claude")
    leases = home.lease()
    throttle(home, leases["a"], "--retry-after", 100)
    home.later(10)
    home.ask("complete", leases["b"], "--tokens", 100)
    assert cooldown(home) == 90
    assert home.hold("a") == "cooldown"
    home.later(90)
    home.ask("complete", home.lease()["a"], "--tokens", 100)
    assert home.ask("pool", "show", "anthropic")["pool"]["hits"] == 0


def test_other_pools_go_on(home):
    home.add("--id", "a", "--agent", "claude")
    home.add("--id", "b", "--agent", "codex")
    throttle(home, home.lease("--limit", 1)["a"])
    assert list(home.lease()) == ["b"]
