"""The real daemon and the simulation start the same attempts in the same order.

Agents on a busy machine begin late, by as much as their luck. So the seed is one for which that
does not matter: the order stays the same when every attempt lasts longer by up to a second, each
by its own draw. Every decision that depends on order and time is there all the same: shares,
priorities, needs, retries after failures, a throttled account and its probe.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

import pytest

from fairlane.agents.demo import Work
from fairlane.model.instant import SECOND
from fairlane.model.record import changed
from fairlane.model.task import Task
from fairlane.policy.policy import Policy
from fairlane.service import demo, projects, tasks
from fairlane.simulation.draws import below, draw
from fairlane.simulation.engine import simulate
from fairlane.simulation.run import Run
from fairlane.simulation.world import Fate
from fairlane.simulation.worlds.demo import DemoWorld, fate_of
from tests.daemon.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SEED, SECONDS, SLOTS = 51, 2.0, 3
POLICY = demo.POLICY.replace("caps.all = 8", f"caps.all = {SLOTS}")


def records() -> tuple[Mapping[str, object], ...]:
    """The tasks of the demo; each is known to use what its first attempt does use."""
    return tuple({**row, "estimate_tokens": used(row)} for row in demo.records(SEED, SECONDS))


def used(row: Mapping[str, object]) -> int:
    env = row["env"]
    assert isinstance(env, dict)
    work = Work({**env, "FAIRLANE_TASK": str(row["id"]), "FAIRLANE_ATTEMPT": "1"})
    return max(1, sum(fate_of(work, 0).tokens[:2]))


class LateWorld(DemoWorld):
    """Every attempt lasts longer, by its own luck."""

    def fate(self, seed: int, task: Task, attempt: int, ran: int = 0) -> Fate:
        fate = super().fate(seed, task, attempt, ran)
        return changed(fate, lasts=fate.lasts + below(SECOND, draw(seed, task.id, attempt, "late")))


def started(run: Run) -> list[tuple[str, int]]:
    return [(line.task, line.number) for line in run.attempts]


def ended(run: Run) -> dict[tuple[str, int], tuple[str | None, int]]:
    return {(line.task, line.number): (line.outcome, line.tokens) for line in run.attempts}


@pytest.fixture(scope="module")
def simulated() -> Run:
    return simulate(DemoWorld(records(), dict(demo.PROJECTS)), rules())


def rules() -> Policy:
    return Policy.parse(tomllib.loads(POLICY))


def test_every_sort_of_decision_is_there(simulated: Run) -> None:
    outcomes = {line.outcome for line in simulated.attempts}
    assert outcomes == {"succeeded", "failed", "throttled"}
    assert {"cap", "needs", "backoff", "cooldown", "probe"} <= simulated.held.keys()
    assert {task.status for task in simulated.tasks} == {"done", "parked"}


def test_luck_with_the_machine_does_not_change_the_order(simulated: Run) -> None:
    late = LateWorld(records(), dict(demo.PROJECTS))
    for luck in range(8):
        assert started(simulate(late, rules(), luck)) == started(simulated)


def test_a_real_daemon_starts_the_same_attempts_in_the_same_order(
    world: World, simulated: Run
) -> None:
    world.policy(POLICY)
    world.settings(f"[worker]\nslots = {SLOTS}\n")
    with world.context() as context:
        for name, weight in demo.PROJECTS:
            projects.add_project(context, name, {"weight": weight})
        tasks.add(context, records())
    world.run()
    with world.context() as context, context.store.read() as reading:
        events = reading.events(limit=10_000)
        names = [task.task for task in simulated.tasks]
        made = [attempt for name in names for attempt in reading.attempts(name)]
    leased = [event for event in events if event.kind == "leased"]
    assert [(event.task, event.data["attempt"]) for event in leased] == started(simulated)
    assert {
        (row.task, row.number): (row.outcome, row.tokens[0] + row.tokens[1]) for row in made
    } == ended(simulated)
    assert world.statuses() == {task.task: task.status for task in simulated.tasks}
