"""Task: one piece of work, followed until done, canceled or parked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from fairlane.model.instant import Instant, Micros, to_instants
from fairlane.model.lane import Entry, LaneKey
from fairlane.model.record import dataclass


class Status(StrEnum):
    """What is stored. Ready and blocked are not statuses: the planner computes them."""

    QUEUED = "queued"
    LEASED = "leased"
    RUNNING = "running"
    DONE = "done"
    PARKED = "parked"
    CANCELED = "canceled"

    @property
    def in_flight(self) -> bool:
        """Whether an attempt has a lease."""
        return self in (Status.LEASED, Status.RUNNING)

    @property
    def final(self) -> bool:
        """Whether nothing follows by itself or by `retry`."""
        return self in (Status.DONE, Status.CANCELED)


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LAUNCH_FAILED = "launch_failed"
    LOST = "lost"
    THROTTLED = "throttled"
    ENVIRONMENT = "environment"
    RELEASED = "released"
    CANCELED = "canceled"


#: The outcomes that use up an attempt.
FAILURES = frozenset({Outcome.FAILED, Outcome.LAUNCH_FAILED, Outcome.LOST})


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one attempt until a time."""

    id: str = ""
    fence: int = 0
    attempt: int = 1
    worker: str | None = None
    expires_at: Instant | None = None  # None: known to be in flight, never expires (scenarios)
    started_at: Instant | None = None
    alive: bool = False  # its process was seen: expiry does not end it
    estimate: int | None = None  # tokens reserved; None: as predicted
    used: int = 0  # tokens that the attempt has reported so far
    direct: bool = False  # started in direct mode, over the caps

    def __post_init__(self) -> None:
        to_instants(self, "expires_at", "started_at")


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work. Times are instants; aware datetimes are taken too."""

    id: str
    seq: int = 0  # grows with every task added; 0: given by `Snapshot.of` in order
    project: str = "default"
    kind: str = "code"
    title: str = ""
    prompt: str = ""
    template: str | None = None
    base: str | None = None
    merge: str = "keep"
    session: str = "resume"
    agent: str | None = None
    command: tuple[str, ...] = ()
    priority: int = 100  # lower first
    parent: str | None = None
    needs: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    group: str | None = None
    parallel: bool | None = None  # None: as the policy says
    locks: tuple[str, ...] = ()
    workspace: str | None = None
    pool: str | None = None
    labels: tuple[str, ...] = ()
    estimate_tokens: int | None = None
    timeout: Micros | None = None
    max_attempts: int | None = None
    not_before: Instant | None = None
    vars: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    meta: Mapping[str, object] = field(default_factory=dict)
    created_at: Instant = 0
    ready_since: Instant | None = None  # None: since it was created or its timers passed

    # What has happened to it.
    status: Status = Status.QUEUED
    depth: int = 0
    failures: int = 0  # failed + launch_failed + lost since the last `retry`
    attempts: int = 0  # all ever made; only grows
    launch_failures: int = 0  # in a row
    setbacks: int = 0  # in a row: environment, and throttled where it has no pool
    releases: int = 0  # in a row
    half_opened: bool = False  # parked by launch failures once, and tried again
    backoff_until: Instant | None = None
    parked_at: Instant | None = None
    ended_at: Instant | None = None  # when it was done or canceled
    lost_fence: int | None = None  # of the attempt that was lost last: its late success counts
    reason: str = ""  # why it is parked, canceled, or waits after a failure
    stop_requested: str = ""  # why its attempt is being stopped
    artifacts_missing: tuple[str, ...] = ()
    source_hold: str = ""  # what its source says holds it
    paused: bool = False  # by itself
    lease: Lease | None = None

    def __post_init__(self) -> None:
        to_instants(self, "created_at", "ready_since", "not_before", "backoff_until", "parked_at")
        object.__setattr__(self, "status", Status(self.status))

    @property
    def lane(self) -> LaneKey:
        """The lane in which it stands when it is ready."""
        return LaneKey(
            self.project,
            self.kind,
            self.priority,
            self.depth,
            self.failures,
            self.agent,
            self.pool,
            self.parallel,
            tuple(sorted(set(self.locks))) if self.locks else (),
            self.workspace,
            tuple(sorted(set(self.labels))) if self.labels else (),
            self.group,
        )

    @property
    def entry(self) -> Entry:
        """What the planner needs of it beside its lane."""
        since = self.ready_since
        if since is None:
            since = max(self.created_at, self.not_before or 0, self.backoff_until or 0)
        return Entry(self.id, self.seq, self.created_at, since, self.estimate_tokens)
