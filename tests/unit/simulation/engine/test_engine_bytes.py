"""The same seed gives the same bytes, in any process; and what it leaves is sound."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from fairlane.engine import decisions
from fairlane.engine.context import Context
from fairlane.model.codec import canonical, digest, encode
from fairlane.model.event import Event
from fairlane.model.instant import SECOND
from fairlane.simulation.engine import simulate
from fairlane.simulation.run import Run
from fairlane.simulation.world import Act
from tests.unit.simulation.rich import Rich, rich_run, rules

pytestmark = pytest.mark.slow


def printed(hash_seed: str) -> str:
    """The digest of the run that a new process makes."""
    words = [sys.executable, "-m", "tests.unit.simulation.rich"]
    env = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


class Kept(Rich):
    """The world keeps the context that it was prepared in."""

    context: Context

    def prepare(self, context: Context) -> None:
        super().prepare(context)
        self.context = context


@pytest.fixture(scope="module")
def kept() -> tuple[Kept, Run]:
    """A world, and what became of it."""
    world = Kept()
    return world, simulate(world, rules(), 5)


def test_the_same_seed_gives_the_same_bytes_in_any_process(kept):
    here = digest(canonical(encode(kept[1])))
    assert digest(canonical(encode(rich_run(5)))) == here
    assert [printed("0"), printed("4242")] == [here, here]


def test_another_seed_gives_another_run(kept):
    assert kept[1].attempts != rich_run(6).attempts


def test_who_looks_more_often_starts_nothing_else(kept):
    """A round at which nothing has happened starts nothing: the plan knows when to wake."""
    world = Rich()
    looks = [Act(world.begin + n * 131 * SECOND, "status", {}) for n in range(600)]
    world.people = sorted([*world.people, *looks], key=lambda act: act.at)
    assert simulate(world, rules(), 5).attempts == kept[1].attempts


def test_what_a_simulation_leaves_is_sound_and_every_decision_can_be_made_again(kept):
    world, run = kept
    store = world.context.store
    assert store.check() == []
    again = decisions.replay(world.context)
    assert (again["different"], again["replayed"] > 100) == ([], True)
    assert {line.outcome for line in run.attempts} >= {
        "succeeded", "failed", "lost", "throttled", "environment", "released", "check_failed",
        "canceled", "launch_failed",
    }  # fmt: skip
    assert {"cap", "lock", "cooldown", "backoff", "needs", "budget", "no_label"} <= run.held.keys()


def test_the_run_is_what_the_log_says(kept):
    world, run = kept
    with world.context.store.read() as reading:
        events = reading.events(limit=1_000_000)
    leased = [(event.task, event.data["attempt"], event.at) for event in events if is_start(event)]
    assert [(line.task, line.number, line.leased_at) for line in run.attempts] == leased
    kinds = Counter(event.kind for event in events)
    assert kinds["added"] == len(run.tasks)
    assert kinds["succeeded"] == sum(line.outcome == "succeeded" for line in run.attempts)


def is_start(event: Event) -> bool:
    return event.kind == "leased"
