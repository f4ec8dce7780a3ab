"""How much each part of bench measures: all of it, or little of it in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Lengths of queues, and how often a thing is repeated."""

    queues: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)  # ready tasks, shortest first
    lanes: tuple[int, ...] = (10, 100, 300, 1_000, 3_000)
    lane_tasks: int = 30_000  # ready tasks in each of these numbers of lanes
    flying: tuple[tuple[int, int], ...] = ((16, 4), (2_000, 50))  # tasks in flight, projects
    turns: int = 15  # of what takes milliseconds
    slow_turns: int = 5  # of what takes seconds
    leases: int = 200  # of which the slowest in a hundred counts
    lives: int = 20  # in one turn
    batch: int = 100
    picks: int = 5_000  # in one round against a bare heap
    file_tasks: int = 100_000
    long_turns: int = 3  # of what takes many seconds
    callers: tuple[int, ...] = (8, 32)
    calls: int = 480  # of all callers together, in one turn
    programs: int = 2_000
    starts: int = 25
    idle_seconds: float = 20.0
    quiet_seconds: float = 3.0  # a daemon that idles so long is up
    finished: int = 300_000
    simulated: int = 100_000

    @property
    def short(self) -> int:
        """The length of the shortest queue."""
        return self.queues[0]

    @property
    def long(self) -> int:
        """The length of the longest queue."""
        return self.queues[-1]


FULL = Sizes()
SMALL = Sizes(
    queues=(600, 1_200), lanes=(10, 300), lane_tasks=600, flying=((4, 2), (20, 5)),
    turns=2, slow_turns=1, leases=10, lives=2, batch=10, picks=200, file_tasks=300, long_turns=1,
    callers=(2, 4), calls=8, programs=20, starts=2, idle_seconds=0.5, quiet_seconds=0.3,
    finished=500, simulated=1_000,
)  # fmt: skip
