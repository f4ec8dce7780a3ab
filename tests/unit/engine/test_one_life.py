"""One life: a story told call by call, and in batches by the runtime, ends in the same rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlane.clock import FixedClock
from fairlane.engine import attempts
from fairlane.engine.attempts import Progress
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Ending, Report
from fairlane.engine.look.workers import Asker
from fairlane.model.errors import FairlaneError
from fairlane.model.event import Happening
from fairlane.model.instant import DAY, MINUTE, SECOND
from fairlane.model.project import History, Pool, Project
from fairlane.service import pull, tasks
from fairlane.settings import Settings
from fairlane.store.base import Filter
from fairlane.store.memory.store import MemoryStore

OUTCOMES = {
    "succeeded": Happening.SUCCEEDED,
    "failed": Happening.FAILED,
    "launch_failed": Happening.LAUNCH_FAILED,
    "throttled": Happening.THROTTLED,
    "environment": Happening.ENVIRONMENT,
    "released": Happening.RELEASED,
    "canceled": Happening.STOPPED,
}
LEASES = st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True)
STEPS = st.one_of(
    st.tuples(st.just("lease"), st.integers(1, 4)),
    st.tuples(st.just("beat"), LEASES),
    st.tuples(st.just("report"), LEASES, st.integers(0, 9_000)),
    st.tuples(st.just("end"), LEASES, st.sampled_from(sorted(OUTCOMES)), st.integers(0, 9_000)),
    st.tuples(st.just("pass_time"), st.integers(1, 20)),
    st.tuples(st.just("reclaim")),
    st.tuples(st.just("cancel"), st.integers(0, 7)),
)
REFUSALS = ("lease_lost", "lease_ended", "unknown_lease", "refused")
Rows = tuple[object, ...]


class Story:
    """One store, and the steps that both tellers share."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self.clock = FixedClock(20_000 * DAY)
        self.context = Context(home, MemoryStore(), Settings(), self.clock, "tester")
        text = 'retry.base = "1s"\nlease.ttl = "5m"\ncooldown.base = "1s"\n'
        self.context.policy_file.write_text(text, encoding="utf-8")
        records = [{"id": f"t{n}", "agent": ("claude", "shell")[n % 2]} for n in range(8)]
        tasks.add(self.context, [{**record, "command": ["make"]} for record in records])

    def pass_time(self, minutes: int) -> None:
        self.clock.at += minutes * MINUTE

    def cancel(self, number: int) -> None:
        quietly(tasks.cancel, self.context, [f"t{number}"])

    def rows(self) -> Rows:
        """Everything that must be the same; the notes that only a holder outside logs are not."""
        with self.context.store.read() as reading:
            placed = reading.listing(Filter(), limit=100)
            return (
                placed,
                [reading.attempts(row.task.id) for row in placed],
                reading.table(Pool),
                reading.table(Project),
                reading.table(History),
                reading.usage("all", 0),
                sorted(
                    (event.kind, event.task or "", event.at, str(event.data))
                    for event in reading.events(limit=10_000)
                    if event.kind != "progress"
                ),
            )


class Outside(Story):
    """A holder outside: one call after the other."""

    def lease(self, limit: int) -> None:
        pull.lease(self.context, limit, "box")

    def beat(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            quietly(pull.heartbeat, self.context, f"L{number}")

    def report(self, numbers: Sequence[int], used: int) -> None:
        for number in numbers:
            quietly(pull.report, self.context, f"L{number}", tokens=used, cost=used, note="n")

    def end(self, numbers: Sequence[int], outcome: str, used: int) -> None:
        for number in numbers:
            quietly(pull.release, self.context, f"L{number}", outcome=outcome, tokens=used)

    def reclaim(self) -> None:
        pull.reclaim(self.context)


class Runtime(Story):
    """The runtime: all at once."""

    def lease(self, limit: int) -> None:
        attempts.lease(self.context, Asker("box"), limit=limit)

    def beat(self, numbers: Sequence[int]) -> None:
        leases = [f"L{number}" for number in numbers]
        attempts.start(self.context, dict.fromkeys(leases))
        attempts.renew(self.context, leases)

    def report(self, numbers: Sequence[int], used: int) -> None:
        news = Progress((0, used, 0, 0), used * 1_000_000, None, "n")
        attempts.progress(self.context, {f"L{number}": news for number in numbers})

    def end(self, numbers: Sequence[int], outcome: str, used: int) -> None:
        ending = Ending(OUTCOMES[outcome], Report((0, used, 0, 0)))
        endings = {f"L{number}": ending for number in numbers}
        if outcome != "canceled":
            attempts.finish(self.context, endings)
        for lease in endings if outcome == "canceled" else ():  # refused where nobody asked for it
            quietly(attempts.finish, self.context, {lease: ending}, strict=True)

    def reclaim(self) -> None:
        attempts.reclaim(self.context)


def quietly(call: Callable[..., object], *arguments: object, **options: object) -> None:
    """A refusal is an answer too."""
    try:
        call(*arguments, **options)
    except FairlaneError as error:
        if error.error_code not in REFUSALS:
            raise


@pytest.mark.slow
@settings(max_examples=120)
@given(st.lists(STEPS, min_size=2, max_size=25))
@example([("report", [4], 1), ("end", [2, 4], "environment", 1)])  # its end brings nothing new
def test_batches_of_the_runtime_are_the_calls_of_a_holder_outside(
    steps: list[tuple[object, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        outside, runtime = Outside(Path(folder) / "one"), Runtime(Path(folder) / "two")
        for name, *arguments in [("lease", 4), *steps]:
            for story in (outside, runtime):
                getattr(story, str(name))(*arguments)
            assert outside.rows() == runtime.rows(), (name, arguments)
            outside.clock.at += SECOND
            runtime.clock.at += SECOND
