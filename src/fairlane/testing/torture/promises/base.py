"""Promise: one sentence that must hold, and how it is checked; Commit: what one process wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from fairlane.model.event import Event
from fairlane.model.instant import SECOND, Instant
from fairlane.model.project import PolicyText, Pool
from fairlane.model.record import dataclass
from fairlane.model.task import Attempt, Task
from fairlane.policy.policy import Policy
from fairlane.store.base import Booking, Placed
from fairlane.testing.torture.model import Model

#: A plan that waited so long for its turn is still committed: its times may be so far off.
TOLERANCE = SECOND


class Problem(NamedTuple):
    """What is wrong, in a sentence, and with which task."""

    sentence: str
    task: str | None = None


Problems = Iterator[Problem]


def _nothing(*subject: object) -> Problems:
    return iter(())


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise: its number in the book, its name, and the sentence that says it.

    Without `check` whoever watches finds what breaks it by other means.
    """

    number: int
    name: str
    sentence: str
    check: Callable[..., Problems] = _nothing


class Broken(AssertionError):
    """A promise was broken."""

    def __init__(self, promise: Promise, sentence: str, task: str | None = None) -> None:
        self.promise, self.sentence, self.task = promise, sentence, task
        of = f" (task {task})" if task else ""
        super().__init__(f"promise {promise.number}, {promise.name}: {sentence}{of}")


#: Every promise, by when it is checked.
PROMISES: dict[str, list[Promise]] = {}


def promise(when: str, number: int) -> Callable[[Callable[..., Any]], Promise]:
    """Make a promise of a function: its name, the first line of what it says of itself."""

    def make(check: Callable[..., Any]) -> Promise:
        name, sentence = check.__name__.replace("_", " ").strip(), check.__doc__ or ""
        made = Promise(number, name, sentence.strip().split("\n")[0], check)
        PROMISES.setdefault(when, []).append(made)
        return made

    return make


class Party(NamedTuple):
    """A process that commits: where it runs, and by which rules it goes now."""

    policy: Policy | None = None  # None: the one that the store has recorded last
    host: str = ""
    daemon: bool = False  # it goes on with the last good policy where the file is broken
    broken: bool = False  # its policy file cannot be read
    agents: frozenset[str] | None = None  # those that its settings know; None: not told


class Commit:
    """One commit: who made it, when, and every row that it changed, in order."""

    def __init__(
        self, model: Model, process: str, party: Party, true_now: Instant, store_now: Instant
    ) -> None:
        self.model, self.process, self.party = model, process, party
        self.true_now, self.now = true_now, store_now
        self.policy = party.policy or recorded_policy(model)
        self.tasks: list[tuple[Placed | None, Placed]] = []
        self.attempts: list[tuple[Attempt | None, Attempt]] = []
        self.events: list[Event] = []
        self.bookings: list[Booking] = []
        self.times: set[Instant] = {store_now}  # that its writes may have been made by
        self.clocks: dict[str, int] = {}  # of projects, as they were before it
        self.moved: dict[str, int] = {}  # by how much starts, ends and arrivals move them
        self.everyone: int = model.values.get("clock") or 0  # the clock for all, before it
        self.decided_at: Instant | None = None  # when its last plan was made
        self.leased_from: dict[str, Task] = {}  # what tasks were before they were leased
        self.waited: dict[str, str] = {}  # with which code they waited then
        self.since: set[str] = set()  # tasks that were written after its last plan was made
        self.may: Mapping[str, int] = {}  # of a task: the fence whose late success still counts
        self.late: set[str] = set()  # tasks of which a late success was taken
        self.picked: set[str] = set()  # tasks that its decisions start
        self.pools: list[tuple[Pool | None, Pool]] = []

    def is_now(self, at: Instant | None) -> bool:
        """Whether this is about the time of the commit."""
        return at is not None and abs(at - self.now) <= TOLERANCE

    def started(self) -> list[Attempt]:
        """The leases that it has given out."""
        return [after for before, after in self.attempts if before is None]

    def events_of(self, task: str) -> set[str]:
        """What it has logged of a task."""
        return {event.kind for event in self.events if event.task == task}

    def changed_tasks(self) -> dict[str, Placed]:
        """The tasks that it has written, as they are now."""
        return {after.task.id: self.model.tasks[after.task.id] for _, after in self.tasks}


def recorded_policy(model: Model) -> Policy:
    """The policy of the last decision, else the default."""
    import json

    row = model.tables[PolicyText].get(str(model.values.get("policy")))
    if row is None:
        return Policy.preset("balanced")
    return Policy.parse(json.loads(row.text), "recorded policy")
