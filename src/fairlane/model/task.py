"""Task: one piece of work, followed until done, canceled or parked; and lanes of equal tasks."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from fairlane.model.instant import Instant, Micros, show_duration, to_instants
from fairlane.model.record import NamedTuple, changed, dataclass, field

if TYPE_CHECKING:
    from fairlane.model.documents.parts import CheckDocument


class LaneKey(NamedTuple):
    """The task's own fields that gates and order look at; never depends on the policy."""

    project: str = "default"
    kind: str = "code"
    priority: int = 100
    depth: int = 0
    failures: int = 0
    agent: str | None = None
    pool: str | None = None
    parallel: bool | None = None
    locks: tuple[str, ...] = ()
    workspace: str | None = None
    labels: tuple[str, ...] = ()
    group: str | None = None


def lane_key(parts: list[Any]) -> LaneKey:
    """A key from its parts as JSON has them."""
    parts[8], parts[10] = tuple(parts[8]), tuple(parts[10])
    return LaneKey(*parts)


class Shape(NamedTuple):
    """What gates can see of a lane: lanes of one shape get the same answers."""

    project: str
    kind: str
    agent: str | None
    pool: str | None
    parallel: bool | None
    locks: tuple[str, ...]
    workspace: str | None
    labels: tuple[str, ...]
    group: str | None


class Entry(NamedTuple):
    """One task of a lane."""

    task: str
    seq: int
    created_at: Instant
    ready_since: Instant
    estimate: int | None = None  # the caller's guess in tokens


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane with its first tasks in order; a store reads only as many as a round may take."""

    key: LaneKey
    count: int  # ready tasks in it, read or not
    by_ready: tuple[Entry, ...]  # oldest first by `ready_since`
    by_created: tuple[Entry, ...]  # oldest first by `created_at`
    shape: Shape = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", shape_of(self.key))

    def in_order(self, age_from: str) -> tuple[Entry, ...]:
        """Its tasks, oldest first by the age that the policy names."""
        return self.by_created if age_from == "created" else self.by_ready


def lane_of(key: LaneKey, entries: list[Entry]) -> Lane:
    """A lane whose tasks are all known."""
    by_ready = tuple(sorted(entries, key=lambda entry: (entry.ready_since, entry.seq)))
    by_created = tuple(sorted(entries, key=lambda entry: (entry.created_at, entry.seq)))
    return Lane(key, len(entries), by_ready, by_ready if by_ready == by_created else by_created)


def shape_of(key: LaneKey) -> Shape:
    """The part of a lane's key that gates look at."""
    return Shape(key[0], key[1], *key[5:])


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
    CHECK_FAILED = "check_failed"
    LAUNCH_FAILED = "launch_failed"
    LOST = "lost"
    THROTTLED = "throttled"
    ENVIRONMENT = "environment"
    RELEASED = "released"
    CANCELED = "canceled"


#: What a project's `setup` is called where checks are listed.
SETUP = "setup"
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


class Check(NamedTuple):
    """A command that must succeed before a task is done."""

    name: str
    argv: tuple[str, ...]
    timeout: Micros | None = None  # None: as the settings say

    def document(self) -> CheckDocument:
        """A check as every interface shows it, and as attempts keep it."""
        timeout = None if self.timeout is None else show_duration(self.timeout)
        return {"name": self.name, "argv": list(self.argv), "timeout": timeout}


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
    carry: str = "base"  # needs: it starts from the work of its parent and its needs
    context: str = "none"  # needs: its prompt says what they did
    checks: tuple[Check, ...] = ()  # in addition to its project's
    no_checks: bool = False  # not even its project's
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
    check_rounds: int = 0  # in a row: attempts that a check failed, and that used up none
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
        """Its lane while it is ready."""
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
        """What the planner needs of it in addition to its lane."""
        since = self.ready_since
        if since is None:
            since = max(self.created_at, self.not_before or 0, self.backoff_until or 0)
        return Entry(self.id, self.seq, self.created_at, since, self.estimate_tokens)


#: Runs a command as it is given.
SHELL = "shell"
#: Who runs a task that has no command where nobody names an agent.
DEFAULT_AGENT = "claude"
SHIPPED = ("claude", "codex", "gemini", "opencode", "shell", "demo")
#: Agent -> the pool whose limits it shares; an agent that is not here draws on none.
POOLS = {"claude": "anthropic", "codex": "openai", "gemini": "google", "demo": "demo"}


def agent_of(own: str | None, project: str | None, default: str | None, has_command: bool) -> str:
    """Who runs a task: its own agent; `shell` a command; else its project's, or the default."""
    return own or (SHELL if has_command else project or default or DEFAULT_AGENT)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a task. `ended_at` None: its lease has not ended."""

    lease: str
    task: str
    project: str
    kind: str
    agent: str | None
    number: int
    fence: int
    worker: str | None
    leased_at: Instant
    expires_at: Instant
    estimate: int = 0  # tokens reserved at the start
    weight: int = 1  # of its project at the start; 0: it moves no share clock
    charged: int = 0  # tokens that its project's clock has been charged with so far
    workspace: str | None = None
    started_at: Instant | None = None  # first heartbeat or report
    ended_at: Instant | None = None
    outcome: str | None = None
    detail: str = ""
    tokens: tuple[int, int, int, int] = (0, 0, 0, 0)  # input, output, cache read, cache write
    usd: int | None = None  # micro-dollars; None: the program does not say
    host: str | None = None
    handle: str | None = None  # by which its executor finds it again
    executor: str = "none"  # none: somebody outside holds the lease
    direct: bool = False
    session: str | None = None
    note: str = ""  # the last progress that it reported
    result: Mapping[str, object] | None = None
    work: Mapping[str, object] | None = None  # what it changed in its repository
    checks: tuple[Mapping[str, object], ...] = ()  # one for each, with what came of it


def lease_of(attempt: Attempt) -> Lease:
    """The lease of an attempt that has not ended; what it used is counted elsewhere."""
    return changed(
        _NO_LEASE,
        id=attempt.lease,
        fence=attempt.fence,
        attempt=attempt.number,
        worker=attempt.worker,
        expires_at=attempt.expires_at,
        started_at=attempt.leased_at,
        estimate=attempt.estimate,
        direct=attempt.direct,
    )


_NO_LEASE = Lease()
