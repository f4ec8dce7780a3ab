"""Staff: which workers fit a lane, and which of them a pick takes."""

from __future__ import annotations

from fairlane.model.resources import Worker
from fairlane.planner.ledger import Ledger
from fairlane.planner.rules import LaneRules

#: Stands for "no limit" where slots are compared.
_PLENTY = 1 << 40


class Staff:
    """The workers that live; with none at all one is assumed, by default as wide as cap `all`."""

    def __init__(
        self,
        workers: tuple[Worker, ...],
        cap_all: int | None,
        ledger: Ledger,
        assumed: Worker | None = None,
    ) -> None:
        self._ledger = ledger
        local = assumed or Worker("local")
        slots = cap_all if local.slots is None else local.slots
        self.everyone = workers
        living = [worker for worker in workers if worker.live]
        self.live = tuple(sorted(living, key=lambda worker: worker.name))
        self.assumed = not self.live
        if self.assumed:
            self.live = (Worker(local.name, slots, local.labels),)
        self._assumed_slots = _PLENTY if slots is None else slots
        #: The only one, where there is but one.
        self._sole = self.live[0].name if len(self.live) == 1 else None
        self._fitting: dict[tuple[str, ...], tuple[Worker, ...]] = {}

    def fitting(self, labels: tuple[str, ...]) -> tuple[Worker, ...]:
        """The live workers that have all these labels."""
        found = self._fitting.get(labels)
        if found is None:
            needed = set(labels)
            found = tuple(each for each in self.live if needed.issubset(each.labels))
            self._fitting[labels] = found
        return found

    def free(self, worker: Worker) -> int:
        """Its free slots."""
        taken = self._ledger.total if self.assumed else len(self._ledger.slots.get(worker.name, ()))
        return max(0, (_PLENTY if worker.slots is None else worker.slots) - taken)

    def has_slot(self, labels: tuple[str, ...]) -> bool:
        """Whether a worker that fits has a free slot."""
        if self.assumed and not labels:
            return self._ledger.total < self._assumed_slots
        return any(map(self.free, self.fitting(labels)))

    def free_slots(self) -> int | None:
        """Free slots of all together; None: no limit."""
        if any(worker.slots is None for worker in self.live):
            return None
        return sum(self.free(worker) for worker in self.live)

    def holders(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """The tasks on the workers that have all these labels."""
        if self.assumed:
            return tuple(self._ledger.holders.get("all", ()))
        slots = (self._ledger.slots.get(each.name, ()) for each in self.fitting(labels))
        return tuple(task for tasks in slots for task in tasks)

    def choose(self, lane: LaneRules) -> str:
        """Of those with a free slot: fewest labels it does not need, most free slots, the name."""
        if self._sole is not None:
            return self._sole
        fits = [each for each in self.fitting(lane.labels) if self.free(each) > 0]
        if len(fits) == 1:
            return fits[0].name
        needed = len(set(lane.labels))
        best = min(
            fits, key=lambda each: (len(set(each.labels)) - needed, -self.free(each), each.name)
        )
        return best.name
