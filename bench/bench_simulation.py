"""Simulations in virtual time: tasks a second, with two policies in two processes.

The processes are started, read the workload, simulate it, and hand back every task and attempt:
all of that counts. The tasks of both policies count together, as both are simulated at once.
"""

from __future__ import annotations

from bench.measure import Row, seconds, show_seconds
from bench.sizes import Sizes
from fairlane.policy.policy import Policy
from fairlane.simulation.apart import Apart
from fairlane.simulation.run import Run
from fairlane.simulation.simulate import orders_of

PROJECTS, SLOTS = 20, 64
#: Arrivals keep the slots busy for nine tenths of the time: an hour of a slot is six tasks.
PER_HOUR = SLOTS * 6 * 0.9 / PROJECTS
#: The preset `balanced` with all slots, and the same without shares: the oldest first.
POLICIES = (
    {"name": "shares", "policy": {"caps": {"all": SLOTS}}},
    {"name": "age", "policy": {"caps": {"all": SLOTS}, "order": ["age"]}},
)
#: Tasks a second that are asked for on two cores.
ASKED = 5_000


def rows(sizes: Sizes) -> list[Row]:
    """One figure."""
    return [simulated(sizes.simulated)]


def simulated(tasks: int) -> Row:
    """The same workload under two policies, in two processes."""
    orders = orders_of(lambda: Policy.preset("balanced"), workload(tasks), POLICIES)
    runs: list[Run] = []
    took = seconds(lambda: runs.extend(Apart().run(orders)))
    done = sum(task.status == "done" for run in runs for task in run.tasks)
    if done < 0.99 * len(orders) * tasks:
        raise AssertionError(f"only {done:,} tasks were done")
    rate = len(orders) * tasks / took
    return Row(
        f"simulation: {tasks:,} tasks, {PROJECTS} projects, {SLOTS} slots, two policies at once",
        f"{rate:,.0f} tasks/s ({show_seconds(took)})",
        f"asked: {ASKED:,} tasks/s on two cores, both policies together",
        rate / ASKED,
        ">= 1",
    )


def workload(tasks: int) -> dict[str, object]:
    """Projects of several weights, each with its source; attempts differ, and some fail."""
    names = [f"p{number:02}" for number in range(PROJECTS)]
    return {
        "title": "bench",
        "work": {
            "default": {
                "duration": {"median": "7m", "p90": "20m"},
                "tokens": {"input": {"median": 40_000, "p90": 150_000}, "output": 5_000},
                "usd_per_million": {"input": 3, "output": 15},
                "failed": 0.03,
            }
        },
        "projects": {name: {"weight": 1 + at % 5} for at, name in enumerate(names)},
        "source": [
            {"name": name, "project": name, "per_hour": PER_HOUR, "most": tasks // PROJECTS}
            for name in names
        ],
        "worker": [{"name": "server", "slots": SLOTS}],
    }
