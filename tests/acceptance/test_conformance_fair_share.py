"""Cases with known answers, through the command line: preset fair-share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def rules(home):
    home.policy("fair-share")


def projects(home, **weights):
    for name, weight in weights.items():
        home.ask("project", "add", name, "--weight", weight)


def spend(home, project, tokens, completed=True):
    """Use so many tokens in a project, and complete a task or not."""
    home.add("--id", f"past-{project}", "--project", project)
    lease = home.lease()[f"past-{project}"]
    if tokens:
        home.ask("report", lease, "--tokens", tokens)
    if completed:
        home.ask("complete", lease)
    else:
        home.ask("release", lease, "--failed")
        home.ask("cancel", f"past-{project}")


def two(home):
    for name in ("one", "two"):
        home.add("--id", name, "--project", name)


def first(home):
    leases = home.lease("--limit", 1)
    return next(iter(leases), None)


@pytest.mark.parametrize(("a", "b"), [(1000, 500), (60_000, 40_000)])
def test_three_to_one_goes_to_the_first(home, a, b):
    projects(home, one=3, two=1)
    spend(home, "one", a)
    spend(home, "two", b)
    two(home)
    assert first(home) == "one"


def test_the_guarantee_goes_before_the_share(home):
    projects(home, one=19, two=1)
    spend(home, "one", 95_000)
    two(home)
    assert first(home) == "two"


def test_a_project_at_its_cap_gets_nothing(home):
    home.ask("project", "add", "one", "--max-in-flight", 1)
    for _ in range(2):
        home.add("--project", "one")
    assert len(home.lease()) == 1
    assert home.lease() == {}
    plan = home.ask("plan")
    assert [hold["code"] for hold in plan["holds"]] == ["cap"]


def test_a_paused_project_waits_and_others_go_on(home):
    projects(home, one=1, two=1)
    two(home)
    home.ask("pause", "project:one")
    assert list(home.lease()) == ["two"]
    assert home.hold("one") == "paused"


def test_priority_inside_a_project(home):
    home.add("--id", "late", "--priority", 200)
    home.add("--id", "soon", "--priority", 10)
    assert first(home) == "soon"


def test_the_one_added_first_and_not_the_smaller_text(home):
    home.add("--id", "t2")
    home.add("--id", "t10")
    assert first(home) == "t2"


def budget(home, used, limit, scope="all"):
    home.ask("policy", "set", f'budget=[{{scope="{scope}",tokens={limit}}}]')
    home.ask("project", "add", "one")
    spend(home, "one", used)
    home.add("--id", "x", "--project", "one", "--estimate", 1)
    return home.lease()


@pytest.mark.parametrize(("used", "starts"), [(100_000, 0), (99_999, 1)])
def test_the_budget_for_all(home, used, starts):
    assert len(budget(home, used, 100_000)) == starts
    assert home.hold("x") == (None if starts else "budget")


def test_the_budget_of_a_project(home):
    assert budget(home, 50_000, 50_000, "project:one") == {}
    assert home.hold("x") == "budget"


def test_a_projects_own_budget(home):
    home.ask("project", "add", "one", "--budget", "tokens=50000,window=24h")
    spend(home, "one", 50_000)
    home.add("--id", "x", "--project", "one")
    assert home.lease() == {}
    home.later(24 * 3600 + 60)
    assert list(home.lease()) == ["x"]


def workspaces(home, *, one=("w1",), two=("w2",)):
    for name, places in (("one", one), ("two", two)):
        given = [word for place in places for word in ("--workspace", place)]
        home.ask("project", "add", name, *given)


def test_workspaces_free_0_and_1(home):
    workspaces(home)
    home.add("--id", "before", "--project", "one")
    home.lease()
    two(home)
    assert list(home.lease()) == ["two"]
    assert home.hold("one") == "workspace"


def test_one_workspace_and_four_slots(home):
    workspaces(home)
    for _ in range(4):
        home.add("--project", "one")
    taken = home.ask("lease")["leases"]
    assert [row["workspace"] for row in taken] == ["w1"]


def test_two_that_prefer_the_same_workspace(home):
    workspaces(home, one=("w1", "w3"))
    for name in ("x", "y"):
        home.add("--id", name, "--project", "one", "--workspace", "w1")
    assert list(home.lease()) == ["x"]


def test_the_next_one_when_the_preferred_workspace_is_taken(home):
    workspaces(home, one=("w1", "w3"))
    home.add("--id", "x", "--project", "one", "--workspace", "w1")
    home.lease()
    home.add("--id", "y", "--project", "one", "--workspace", "w1")
    home.add("--id", "z", "--project", "one")
    assert list(home.lease()) == ["z"]


@pytest.mark.parametrize(
    ("frozen", "taken"), [("true", ["a1", "a2", "a3", "a4"]), ("false", ["a1", "b1", "a2", "b2"])]
)
def test_frozen_shares_and_moving_ones(home, frozen, taken):
    home.ask("policy", "set", f"share.frozen={frozen}", 'caps."project:*"=none')
    projects(home, a=1, b=1)
    for project in "ab":
        for number in range(1, 5):
            home.add("--id", f"{project}{number}", "--project", project)
        home.later(1)
    assert list(home.lease("--limit", 4)) == taken


def test_a_guarantee_by_starts_is_not_kept_for_ever(home):
    home.ask("policy", "set", "share.guarantee_counts=starts")
    projects(home, one=19, two=1)
    spend(home, "one", 10)
    spend(home, "two", 95_000, completed=False)
    two(home)
    assert first(home) == "one"


def test_usage_without_ready_work_does_not_matter(home):
    projects(home, one=3, two=1, idle=96)
    for name, tokens in (("one", 60_000), ("two", 40_000), ("idle", 900_000)):
        spend(home, name, tokens)
    two(home)
    assert first(home) == "one"


def test_all_weights_0(home):
    projects(home, one=0, two=0)
    two(home)
    assert first(home) == "one"
