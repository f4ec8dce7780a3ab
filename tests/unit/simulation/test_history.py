"""The world of history: a store goes on in a simulation as it is, drawn from what it recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from fairlane.engine.context import Context
from fairlane.engine.look.planned import preview
from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND
from fairlane.model.project import History, Project, WorkerRow
from fairlane.model.record import changed
from fairlane.model.task import Attempt, Outcome, Task
from fairlane.service import projects, queue, tasks
from fairlane.simulation.engine import simulate
from fairlane.simulation.world import Fate, Shift
from fairlane.simulation.worlds.history import HistoryWorld, history_world
from fairlane.simulation.worlds.rates import rates_of
from fairlane.simulation.worlds.samples import LASTS, LEAST, LEVELS, Place, Samples, sample_of
from fairlane.simulation.worlds.trace import read_trace
from fairlane.simulation.worlds.trace_writer import trace_of
from fairlane.store.memory.store import MemoryStore
from tests.unit.contexts import NOON, TestContext

PLACE = Place("web", "code", "claude")


def samples(*rows: tuple[Place, Iterable[int]]) -> Samples:
    """Attempts of some places with these minutes."""
    fates = [(place, Fate(minutes * MINUTE)) for place, lengths in rows for minutes in lengths]
    return Samples(fates, 70_000)


class TestSamples:
    @pytest.mark.parametrize("level", range(4))
    def test_the_most_alike_of_which_there_are_enough(self, level):
        """Each level has samples; those before this one have too few of their own."""
        alike = [
            PLACE, Place("api", "code", "claude"), Place("api", "plan", "claude"),
            Place("api", "plan", "codex"),
        ]  # fmt: skip
        rows = [(place, range(1, 2)) for place in alike[:level]]
        rows += [
            (place, range(10 * at + 1, 10 * at + 1 + LEAST))
            for at, place in enumerate(alike)
            if at >= level
        ]
        found = samples(*rows).find(PLACE)
        assert found.level == LEVELS[level]
        assert len(found.fates) == LEAST + level

    def test_with_few_of_all_the_defaults_of_the_policy(self):
        some = samples((PLACE, range(1, LEAST)))
        assert some.find(PLACE).level == "default"
        assert some.fate(1, "t", 1, PLACE) == Fate(LASTS, tokens=(0, 70_000, 0, 0))

    def test_all_are_drawn_and_nothing_else(self):
        some = samples((PLACE, range(1, 8)))
        drawn = Counter(some.fate(1, f"t{number}", 1, PLACE).lasts for number in range(1400))
        assert sorted(drawn) == [minutes * MINUTE for minutes in range(1, 8)]
        assert min(drawn.values()) > 150

    def test_what_runs_is_drawn_among_those_that_took_longer(self):
        some = samples((PLACE, range(1, 21)), (Place("api", "code", "claude"), range(100, 104)))
        drawn = {some.fate(1, f"t{n}", 1, PLACE, 15 * MINUTE).lasts // MINUTE for n in range(200)}
        assert drawn == set(range(16, 21))
        assert some.find(PLACE, 19 * MINUTE) == (LEVELS[0], (Fate(20 * MINUTE),))
        assert some.find(PLACE, 20 * MINUTE).level == LEVELS[1], "none of its own took longer"
        assert some.fate(1, "t", 1, PLACE, 200 * MINUTE).lasts == 400 * MINUTE

    def test_ends_that_somebody_decided_are_no_samples(self):
        attempt = Attempt(
            "L1", "t", "web", "code", "claude", 1, 1, "box", NOON, NOON, ended_at=NOON + MINUTE,
            outcome="failed", tokens=(1, 2, 3, 4), usd=5,
        )  # fmt: skip
        assert sample_of(attempt) == (PLACE, Fate(MINUTE, Outcome.FAILED, (1, 2, 3, 4), 5))
        for outcome in ("released", "canceled"):
            assert sample_of(changed(attempt, outcome=outcome)) is None
        assert sample_of(changed(attempt, ended_at=None, outcome=None)) is None


@pytest.fixture
def home(tmp_path) -> TestContext:
    """A store with a past: ten attempts of an hour ago."""
    made = TestContext(tmp_path)
    made.policy("caps.all = 3\nlease.ttl = '3h'\nattempt.timeout = 'none'")
    projects.add_project(made.context, "web", {"weight": 2})
    made.add(*({"id": f"old{number}", "project": "web"} for number in range(10)))
    for number in range(10):
        (lease,) = made.lease(1)
        made.wait((number + 1) * MINUTE)
        made.finish(lease["lease"], output=1000 * (number + 1), usd=10)
    made.wait(HOUR)
    return made


def copied(world: HistoryWorld, home: TestContext) -> Context:
    """A context with the store of a simulation at its begin."""
    context = Context(
        home.context.home, MemoryStore(), home.context.settings, home.clock, "simulation"
    )
    world.prepare(context)
    return context


class TestOfStore:
    def test_the_copy_plans_as_the_store(self, home):
        home.add({"id": "first"}, {"id": "second", "needs": ["first"]}, {"id": "third"})
        home.add({"id": "later", "not_before": "2026-02-01T00:00:00Z"}, {"id": "stopped"})
        home.add(*({"id": f"web{number}", "project": "web"} for number in range(3)))
        queue.pause(home.context, "task:stopped")
        (lease,) = home.lease(1)
        home.wait(MINUTE)
        context = copied(history_world(home.context), home)
        assert context.store.check() == []
        with home.context.store.read() as real, context.store.read() as copy:
            snapshot, plan, _ = preview(home.context, real)
            again, planned, _ = preview(context, copy)
            assert [pick.task for pick in planned.picks] == [pick.task for pick in plan.picks]
            assert planned.holds == plan.holds
            assert planned.clocks == plan.clocks
            assert again.lanes == snapshot.lanes
            assert again.wait_counts == snapshot.wait_counts
            assert again.usage == snapshot.usage
            assert again.projects == snapshot.projects
            assert copy.table(History) == real.table(History)
            assert copy.recent("web", "code", "claude", 50) == real.recent(
                "web", "code", "claude", 50
            )
            (held,) = copy.open_attempts()
        assert (held.lease, held.worker, held.host) == (lease["lease"], "box", "box")

    def test_it_changes_nothing(self, home):
        home.add({"id": "a"})
        home.lease(1)
        with home.context.store.read() as reading:
            before = reading.mark()
        simulate(history_world(home.context, days=1), home.context.policy())
        with home.context.store.read() as reading:
            assert reading.mark() == before

    def test_everything_goes_on_to_its_end(self, home):
        home.add(
            {"id": "runs", "project": "web"}, {"id": "next", "project": "web", "needs": ["runs"]}
        )
        home.lease(1)
        home.wait(7 * MINUTE + 30 * SECOND)
        run = simulate(history_world(home.context), home.context.policy())
        ends = {task.task: task.ended_at - home.clock.at for task in run.tasks if task.ended_at}
        assert {task.task: task.status for task in run.tasks} == {"runs": "done", "next": "done"}
        assert [row.task for row in run.attempts] == ["runs", "next"]
        lasted = (run.attempts[0].ended_at or 0) - run.attempts[0].leased_at
        assert lasted in (8 * MINUTE, 9 * MINUTE, 10 * MINUTE)
        assert run.attempts[1].leased_at == home.clock.at + ends["runs"]
        assert run.attempts[1].tokens in range(1000, 11_000, 1000)

    def test_nothing_that_has_ended_is_told_again(self, home):
        run = simulate(history_world(home.context), home.context.policy())
        assert (run.tasks, run.attempts) == ((), ())

    def test_new_attempts_get_new_leases_and_fences(self, home):
        home.add({"id": "a"})
        context = copied(history_world(home.context), home)
        tasks.add(context, [{"id": "b"}])
        with context.store.write() as tx:
            assert tx.number("fence") == 11
            rows = tx.tasks(["a", "b"])
        assert rows["b"].seq > rows["a"].seq

    def test_what_it_rests_on(self, home):
        world = history_world(home.context)
        found = world.rests_on(Task("x", project="web", kind="code", agent="claude"))
        assert (found.level, len(found.fates)) == (LEVELS[0], 10)
        assert world.rests_on(Task("x", project="api", agent="codex")).level == "all"
        fate = found.fates[3]
        assert (fate.lasts, fate.tokens, fate.usd) == (4 * MINUTE, (0, 4000, 0, 0), 10)

    def test_workers_that_live_and_leases_whose_worker_does_not(self, home):
        home.wait(3 * HOUR)
        now = home.clock.at
        assert history_world(home.context).shifts() == (Shift(now, "box"),), "its own, next time"
        home.add({"id": "a"})
        with home.context.store.write() as tx:
            tx.put(
                WorkerRow("gone", "gone", 8, (), now - 4 * HOUR),
                WorkerRow("here", "here", 2, ("gpu",), now),
            )
        world = history_world(home.context)
        assert world.shifts() == (Shift(now, "here", 2, ("gpu",)),)
        home.lease(1)
        home.wait(4 * HOUR)
        run = simulate(history_world(home.context), home.context.policy())
        assert [(row.worker, row.outcome) for row in run.attempts][:1] == [("box", "lost")]
        assert [task.status for task in run.tasks] == ["done"]

    def test_its_trace_has_what_is_unfinished(self, home):
        home.add({"id": "runs"}, {"id": "next", "needs": ["runs", "old1"]})
        home.lease(1)
        home.wait(MINUTE)
        world = history_world(home.context)
        run = simulate(world, home.context.policy())
        trace = read_trace(trace_of(world, run))
        assert [row["id"] for arrival in trace.arrived for row in arrival.records] == [
            "runs", "next",
        ]  # fmt: skip
        assert trace.arrived[1].records[0]["needs"] == ["runs"]
        again = simulate(trace, home.context.policy())
        assert [row.task for row in again.attempts] == ["runs", "next"]

    def test_a_project_without_its_repository(self, home, tmp_path):
        with home.context.store.write() as tx:
            web = tx.table(Project)["web"]
            tx.put(
                changed(web, repo=str(tmp_path / "gone"), base="main", merge="merge", prefix="w-")
            )
        home.add({"id": "w-1", "project": "web"})
        run = simulate(history_world(home.context), home.context.policy())
        assert [task.status for task in run.tasks] == ["done"]
        assert run.weights["web"] == 2


class TestRates:
    def test_arrivals_go_on_by_hour_of_the_week(self):
        """Two weeks: every Monday at nine o'clock ten tests, every Tuesday at ten one plan."""
        monday = 10_000 * 7 * DAY + 4 * DAY
        past: list[Task] = []
        for week in (0, 1):
            start = monday + week * 7 * DAY
            for number in range(10):
                at = start + 9 * HOUR + number * MINUTE
                past.append(Task(f"t{week}-{number}", len(past) + 1, kind="test", created_at=at))
            at = start + DAY + 10 * HOUR
            past.append(Task(f"p{week}", len(past) + 1, kind="plan", agent="codex", created_at=at))
        rates = rates_of(past, past[0].created_at + 14 * DAY)
        begin = monday + 14 * DAY
        found = list(rates.arrivals(1, begin, begin + 70 * DAY))
        kinds = Counter(arrival.records[0]["kind"] for arrival in found)
        assert kinds["test"] == pytest.approx(100, abs=30)
        assert kinds["plan"] == pytest.approx(10, abs=8)
        hours = {((row.at - begin) % (7 * DAY) // HOUR, row.records[0]["kind"]) for row in found}
        assert hours == {(9, "test"), (34, "plan")}
        assert len({str(row.records[0]["id"]) for row in found}) == len(found)
        assert {row.records[0].get("agent") for row in found} == {None, "codex"}
        assert found == list(rates.arrivals(1, begin, begin + 70 * DAY))
        assert found != list(rates.arrivals(2, begin, begin + 70 * DAY))

    def test_less_than_a_week_gives_one_rate(self):
        past = [Task(f"t{number}", number, created_at=NOON + number * HOUR) for number in range(12)]
        rates = rates_of(past, NOON + 12 * HOUR)
        found = list(rates.arrivals(1, NOON + DAY, NOON + 21 * DAY))
        assert len(found) == pytest.approx(480, rel=0.12)
        assert all(NOON + DAY <= row.at < NOON + 21 * DAY for row in found)

    def test_nothing_recorded_nothing_arrives(self):
        assert list(rates_of([], NOON).arrivals(1, NOON, NOON + 7 * DAY)) == []

    def test_they_are_simulated(self, home):
        home.wait(10 * HOUR)
        world = history_world(home.context, days=1, with_arrivals=True)
        run = simulate(world, home.context.policy(), 5)
        assert 10 <= len(run.tasks) <= 35, "ten in twelve hours"
        assert {task.project for task in run.tasks} == {"web"}
        assert simulate(history_world(home.context, days=1), home.context.policy()).tasks == ()
