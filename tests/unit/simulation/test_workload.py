"""Workload files: what each key means, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND, parse_instant
from fairlane.model.task import Outcome, Task
from fairlane.policy.policy import Policy
from fairlane.simulation.engine import simulate
from fairlane.simulation.provider import Outage, Quota
from fairlane.simulation.world import Act, Arrival, Shift
from fairlane.simulation.worlds.described import Workload
from fairlane.simulation.worlds.profile import BEGINNING
from fairlane.simulation.worlds.workload import parse_workload, read_text

MONDAY = parse_instant("2026-01-05T00:00:00Z")
WORK = """
[work.default]
duration = "10m"
"""


def workload(text: str, work: str = WORK) -> Workload:
    return parse_workload(read_text((text + work).encode(), "w.toml"), "w.toml")


def arrivals(text: str, seed: int = 1) -> list[Arrival]:
    return list(workload(text).arrivals(seed))


def offsets(text: str, unit: int = MINUTE) -> list[float]:
    """When something arrives, since the begin."""
    return [(arrival.at - MONDAY) / unit for arrival in arrivals(text)]


def ids(found: list[Arrival]) -> list[str]:
    return [str(record["id"]) for arrival in found for record in arrival.records]


def fate(one: Workload, task: str = "x", attempt: int = 1, kind: str = "code", ran: int = 0) -> Any:
    return one.fate(1, Task(task, kind=kind), attempt, ran)


class TestTimes:
    def test_times_and_lengths_since_the_begin(self):
        text = "begin = 2026-01-05T00:00:00Z\n[[source]]\nat = ['1h', 2026-01-05T00:30:00Z, '0s']"
        assert offsets(text) == [0, 30, 60]

    def test_a_steady_pace(self):
        text = "[[source]]\nevery = '20m'\nfrom = '10m'\nuntil = '1h10m'"
        assert offsets(text) == [10, 30, 50]

    def test_a_pace_counts_open_time(self):
        text = """
            days = 8
            [hours.office]
            days = ["mon", "fri"]
            from = "09:00"
            until = "13:00"
            breaks = [["10:00", "11:30"]]
            [[source]]
            every = "1h30m"
            hours = "office"
        """
        friday, week = 96, 168
        # Open on each day for 1 h and for 1 h 30 min; nothing arrives at the end of a part.
        assert offsets(text, HOUR) == [9, 12, friday + 9.5, friday + 12.5, week + 11.5]

    def test_hours_over_midnight_and_week_end(self):
        text = """
            days = 9
            [[source]]
            every = "6h"
            hours = { days = ["sun"], from = "22:00", until = "06:00" }
        """
        sunday = 6 * 24
        assert offsets(text, HOUR) == [0, 6 - 0.0 + sunday + 16, sunday + 28]

    def test_a_rate_is_random_and_close_to_its_mean(self):
        text = "days = 25\n[[source]]\nper_hour = 5"
        found = arrivals(text)
        assert len(found) == pytest.approx(3000, rel=0.05)
        assert found == arrivals(text)
        assert found != arrivals(text, seed=2)
        gaps = [after.at - before.at for before, after in pairwise(found)]
        assert sum(gap > 12 * MINUTE for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.03)

    def test_a_rate_holds_in_open_hours_alone(self):
        text = """
            days = 70
            [[source]]
            per_day = 48
            hours = { days = ["tue"], from = "06:00", until = "18:00" }
        """
        found = arrivals(text)
        assert len(found) == pytest.approx(240, rel=0.15)
        assert {(arrival.at - MONDAY) // DAY % 7 for arrival in found} == {1}
        assert {(arrival.at - MONDAY) % DAY // HOUR for arrival in found} == set(range(6, 18))

    def test_the_end_and_the_largest_number(self):
        assert len(offsets("days = 1\n[[source]]\nevery = '1h'")) == 24
        assert len(offsets("days = 1\n[[source]]\nevery = '1h'\nmost = 3")) == 3
        assert len(offsets("[[source]]\nevery = '1h'\nmost = 3")) == 3
        assert len(offsets("days = 3\n[[source]]\nevery = '1h'")) == 72

    def test_sources_are_merged_by_time(self):
        text = "[[source]]\nat = ['2h', '4h']\n[[source]]\nat = ['1h', '2h']\n"
        assert ids(arrivals(text)) == ["s2-1", "s1-1", "s2-2", "s1-2"]


class TestTasks:
    def test_fields_of_tasks(self):
        text = """
            [projects.web]
            [[source]]
            name = "a"
            project = "web"
            kind = "plan"
            labels = ["gpu"]
            timeout = "2h"
            at = ["0s"]
        """
        record = {"id": "a-1", "project": "web", "kind": "plan", "labels": ["gpu"], "timeout": "2h"}
        assert arrivals(text)[0].records == (record,)

    def test_several_at_once(self):
        text = "[[source]]\nname = 'a'\nat = ['0s', '1h']\ncount = 3"
        assert ids(arrivals(text)) == ["a-1.1", "a-1.2", "a-1.3", "a-2.1", "a-2.2", "a-2.3"]

    def test_a_drawn_number(self):
        text = "days = 10\n[[source]]\nevery = '1h'\ncount = [0, 1, 5]"
        sizes = [len(arrival.records) for arrival in arrivals(text)]
        assert set(sizes) == {1, 5}
        assert len(sizes) == pytest.approx(160, abs=25)

    def test_steps(self):
        text = """
            [[source]]
            name = "f"
            at = ["0s"]
            priority = 10
            group_each = true
            steps = [
              { name = "plan", kind = "plan" },
              { name = "part", needs = ["plan"], count = 2 },
              { name = "end", needs = ["plan", "part"], parent = "plan", priority = 1 },
            ]
        """
        own = {"priority": 10, "group": "f-1"}
        assert arrivals(text)[0].records == (
            {"id": "f-1.plan", **own, "kind": "plan"},
            {"id": "f-1.part-1", **own, "needs": ["f-1.plan"]},
            {"id": "f-1.part-2", **own, "needs": ["f-1.plan"]},
            {
                "id": "f-1.end", **own, "priority": 1, "parent": "f-1.plan",
                "needs": ["f-1.plan", "f-1.part-1", "f-1.part-2"],
            },
        )  # fmt: skip


class TestAttempts:
    def test_the_work_of_a_task(self):
        one = workload(
            """
            [work.code]
            duration = "1m"
            [work.slow]
            duration = "3m"
            [work.slower]
            duration = "4m"
            [[source]]
            name = "a-b"
            at = ["0s"]
            work = "slow"
            steps = [{ name = "x" }, { name = "y", count = 2, work = "slower" }]
            """
        )
        tasks = {"a-b-1.x": 3, "a-b-1.y-2": 4, "a-b-1.y": 3, "other": 1, "a-1.x": 1}
        assert {task: fate(one, task).lasts // MINUTE for task in tasks} == tasks
        assert fate(one, "other", kind="test").lasts == 10 * MINUTE

    def test_tokens_and_dollars(self):
        one = workload(
            """
            [work.a]
            duration = "1m"
            tokens = { input = 1_000_000, output = 2_000, cache_read = 30 }
            usd_per_million = { input = 3, output = 15.5 }
            reports = 4
            [work.b]
            duration = "1m"
            tokens = [7]
            usd_per_million = 1
            [work.c]
            duration = "1m"
            """
        )
        first = fate(one, kind="a")
        assert (first.tokens, first.usd, first.reports) == ((1_000_000, 2_000, 30, 0), 3_031_000, 4)
        assert (fate(one, kind="b").tokens, fate(one, kind="b").usd) == ((0, 7, 0, 0), 7)
        assert (fate(one, kind="c").tokens, fate(one, kind="c").usd) == ((0, 0, 0, 0), None)

    def test_rates_of_outcomes(self):
        one = workload(
            """
            [work.code]
            duration = "10m"
            tokens = 1000
            failed = 0.1
            lost = 0.05
            launch_failed = 0.05
            throttled = 0.2
            retry_after = "90s"
            """
        )
        fates = [fate(one, f"t{number}") for number in range(4000)]
        rates = {
            outcome: sum(row.outcome is outcome for row in fates) / 4000 for outcome in Outcome
        }
        assert rates[Outcome.FAILED] == pytest.approx(0.1, abs=0.015)
        assert rates[Outcome.LOST] == pytest.approx(0.05, abs=0.012)
        assert rates[Outcome.THROTTLED] == pytest.approx(0.2, abs=0.02)
        assert rates[Outcome.SUCCEEDED] == pytest.approx(0.6, abs=0.025)
        for row in fates:
            assert (row.retry_after == 90 * SECOND) == (row.outcome is Outcome.THROTTLED)
            if row.outcome is Outcome.LAUNCH_FAILED:
                assert (row.lasts, sum(row.tokens)) == (BEGINNING, 0)
            elif row.outcome is not Outcome.SUCCEEDED:
                assert row.lasts < 10 * MINUTE
                assert row.tokens[1] / 1000 == pytest.approx(row.lasts / (10 * MINUTE), abs=0.001)

    def test_luck_belongs_to_the_attempt(self):
        one = workload("", "[work.default]\nduration = { median = '10m', p90 = '1h' }")
        assert fate(one, "a") == fate(one, "a")
        different = [fate(one, "a"), fate(one, "a", 2), fate(one, "b"), one.fate(2, Task("a"), 1)]
        assert len({row.lasts for row in different}) == 4

    @pytest.mark.parametrize("duration", ["{ median = '10m', p90 = '1h' }", "{ mean = '10m' }"])
    def test_what_runs_already_takes_longer(self, duration):
        one = workload("", f"[work.default]\nduration = {duration}")
        ran = 30 * MINUTE
        rest = [fate(one, f"t{number}", ran=ran).lasts - ran for number in range(2000)]
        assert min(rest) > 0
        if "mean" in duration:  # it has no memory
            assert sum(rest) / 2000 == pytest.approx(10 * MINUTE, rel=0.08)
        else:
            longer = [fate(one, f"t{number}").lasts for number in range(8_000)]
            longer = sorted(length - ran for length in longer if length > ran)
            assert sorted(rest)[1000] == pytest.approx(longer[len(longer) // 2], rel=0.12)

    def test_longer_than_everything_takes_as_long_again(self):
        assert fate(workload(""), ran=20 * MINUTE).lasts == 40 * MINUTE


class TestHouse:
    def test_quotas_and_outages(self):
        one = workload(
            """
            [agents.mine]
            pool = "own"
            [[pools.own.quota]]
            window = "1m"
            requests = 5
            [[pools.own.quota]]
            window = "5h"
            tokens = 1000
            resets = true
            [[pools.own.outage]]
            from = "1h"
            until = 2026-01-05T02:00:00Z
            outcome = "failed"
            """
        )
        limits = one.limits["own"]
        assert limits.quotas == (Quota(MINUTE, 5), Quota(5 * HOUR, None, 1000, True))
        assert limits.outages == (Outage(MONDAY + HOUR, MONDAY + 2 * HOUR, Outcome.FAILED),)

    def test_workers_come_and_go(self):
        one = workload(
            """
            days = 2
            [[worker]]
            name = "a"
            [[worker]]
            name = "b"
            slots = 3
            labels = ["gpu"]
            hours = { from = "08:00", until = "20:00" }
            until = "1d12h"
            crashes = ["10h", "19h55m", "23h"]
            sudden = true
            """
        )

        def b(hours: float, slots: int = 3, sudden: bool = False) -> Shift:
            return Shift(MONDAY + int(hours * HOUR), "b", slots, ("gpu",), sudden)

        assert list(one.shifts()) == [
            Shift(MONDAY, "a"),
            b(8), b(10, 0, sudden=True), b(10 + 1 / 6), b(19 + 11 / 12, 0, sudden=True),
            b(32), b(36, 0, sudden=True),
        ]  # fmt: skip

    @pytest.mark.parametrize("hours", ['from = "2d"', 'until = "0s"', "hours = [{days = ['sat']}]"])
    def test_one_that_never_comes_does_no_work(self, hours):
        one = workload(f"days = 1\n[[source]]\nat = ['1h']\n[[worker]]\nname = 'a'\n{hours}")
        assert list(one.shifts()) == [Shift(MONDAY, "a", 0)]
        run = simulate(one, Policy.preset("balanced"))
        assert (run.attempts, run.held) == ((), {"no_worker": 23 * HOUR})

    def test_acts(self):
        one = workload(
            """
            [[act]]
            at = "2h"
            do = "resume"
            [[act]]
            at = "1h"
            do = "project_set"
            name = "default"
            values = { weight = 3 }
            """
        )
        change = {"name": "default", "values": {"weight": 3}}
        assert one.acts() == (
            Act(MONDAY + HOUR, "project_set", change),
            Act(MONDAY + 2 * HOUR, "resume", {}),
        )


def test_a_workload_is_simulated():
    """Everything together, through the engine: agents, projects, groups, budgets, acts, crashes."""
    one = workload(
        """
        days = 1
        [agents.mine]
        pool = "own"
        [projects.web]
        weight = 2
        agent = "mine"
        budgets = [{ tokens = 40_000, window = "12h" }]
        [projects.api]
        workspaces = ["one", "two"]
        [groups.top]
        priority = 5
        [groups.under]
        parent = "top"
        [[pools.own.quota]]
        window = "1h"
        requests = 2
        [[source]]
        name = "w"
        project = "web"
        group = "under"
        every = "20m"
        until = "3h"
        [[source]]
        name = "a"
        project = "api"
        at = ["0s"]
        count = 6
        [[worker]]
        name = "box"
        slots = 3
        crashes = ["15m"]
        [[act]]
        at = "30m"
        do = "pause"
        scope = "project:api"
        [[act]]
        at = "2h"
        do = "resume"
        scope = "project:api"
        [[act]]
        at = "4h"
        do = "cancel"
        ids = ["nobody"]
        """,
        "[work.default]\nduration = '12m'\ntokens = 1000",
    )
    run = simulate(one, Policy.preset("balanced"))
    assert {task.status for task in run.tasks} == {"done"}
    assert len(run.tasks) == 15
    assert run.weights == {"api": 1, "default": 1, "web": 2}
    outcomes = {attempt.outcome for attempt in run.attempts}
    assert outcomes == {"succeeded", "throttled", "lost"}
    starts = [row.leased_at - MONDAY for row in run.attempts if row.task.startswith("a-")]
    assert not any(30 * MINUTE <= start < 2 * HOUR for start in starts)
    api = [row for row in run.attempts if row.task.startswith("a-") and row.outcome == "succeeded"]
    for row in api:  # two workspaces
        assert row.ended_at is not None
        together = [
            other for other in api if other.leased_at <= row.leased_at < (other.ended_at or 0)
        ]
        assert len(together) <= 2
