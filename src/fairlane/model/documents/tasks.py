"""Documents of tasks, their attempts, leases and logs."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from fairlane.model.documents.admin import ErrorDocument
from fairlane.model.documents.parts import (
    Answer,
    CheckDocument,
    CountersDocument,
    HoldDocument,
    StatusName,
    Time,
)
from fairlane.model.documents.work import (
    ApprovalDocument,
    AttemptCheckDocument,
    ForecastDocument,
    MergeStateDocument,
    QuestionDocument,
    SessionDocument,
    WorkDocument,
)


class AddedDocument(TypedDict):
    id: str
    created: bool
    status: StatusName
    position: int | None
    warning: NotRequired[str]


class AddedAnswer(Answer):
    """`code`, `message` and `hint` are there when the whole call is deferred."""

    tasks: list[AddedDocument]
    deferred: bool
    dry_run: NotRequired[bool]
    code: NotRequired[str]
    message: NotRequired[str]
    hint: NotRequired[str]


class RecipeAddedDocument(AddedAnswer):
    """The answer of `add` with a recipe."""

    recipe: str
    group: str


class TaskDocument(TypedDict):
    """A task as lists show it."""

    id: str
    project: str
    kind: str
    title: str
    reason: str
    stop_requested: str
    priority: int
    attempts: int
    failures: int
    depth: int
    group: str | None
    agent: str | None
    pool: str | None
    parent: str | None
    ready_since: Time | None
    ended_at: Time | None
    status: StatusName
    ready: bool
    hold: HoldDocument | None
    created_at: Time
    merge_state: str
    needs_person: bool
    starts: ForecastDocument | None


class TaskLeaseDocument(TypedDict):
    """The lease of a task in flight."""

    expires_at: Time | None
    started_at: Time | None
    lease: str
    fence: int
    attempt: int
    worker: str | None


class FullTaskDocument(TaskDocument):
    """Everything that a task says, and what has happened to it."""

    prompt: str
    merge: str
    session: str
    carry: str
    context: str
    checks: list[CheckDocument]
    no_checks: bool
    source_hold: str
    template: str | None
    base: str | None
    workspace: str | None
    timeout: str | None
    not_before: Time | None
    backoff_until: Time | None
    parked_at: Time | None
    estimate_tokens: int | None
    max_attempts: int | None
    command: list[str]
    artifacts: list[str]
    artifacts_missing: list[str]
    locks: list[str]
    labels: list[str]
    env: list[str]  # names only
    seq: int
    parallel: bool | None
    paused: bool
    lease: TaskLeaseDocument | None
    vars: dict[str, object]
    meta: dict[str, object]


class AttemptDocument(TypedDict):
    lease: str
    executor: str
    detail: str
    note: str
    attempt: int
    fence: int
    estimate_tokens: int
    worker: str | None
    workspace: str | None
    outcome: str | None
    session: str | None
    started_at: Time | None
    ended_at: Time | None
    leased_at: Time
    expires_at: Time
    tokens: CountersDocument
    usd: float | None
    direct: bool
    result: dict[str, object] | None


class EventDocument(TypedDict):
    task: str | None
    project: str | None
    number: int
    at: Time
    kind: str
    data: dict[str, object]


class FollowedEvent(Answer, EventDocument):
    """An event as those who follow the log get it."""


class LinkedDocument(TypedDict):
    id: str
    status: StatusName


class TasksAnswer(Answer):
    """`cursor` is the next page's, null on the last."""

    tasks: list[TaskDocument]
    cursor: NotRequired[int | None]


class TaskAnswer(Answer):
    """`answer` is what its last attempt that has ended said in the end."""

    task: FullTaskDocument
    hold: HoldDocument | None
    attempts: list[AttemptDocument]
    answer: str | None
    work: WorkDocument | None
    checks: list[AttemptCheckDocument]
    merge_state: MergeStateDocument
    question: QuestionDocument | None
    approval: ApprovalDocument | None
    session: SessionDocument | None
    schedule: str | None
    needs: list[LinkedDocument]
    dependents: list[LinkedDocument]
    events: list[EventDocument]


class ChangedDocument(LinkedDocument):
    reason: str
    stop_requested: str


class ChangedAnswer(Answer):
    tasks: list[ChangedDocument]


class LogAnswer(Answer):
    """A part of a log; `next` is the offset of what follows."""

    task: str
    stream: str
    text: str
    attempt: int
    offset: int
    next: int
    size: int
    ended: bool


class EntryDocument(TypedDict):
    """One entry of a transcript; what is invisible in its texts is escaped."""

    n: int
    at: Time | None
    kind: str  # said, tool, result, turn, error, answer, line
    text: str
    tool: str | None
    argument: str | None
    truncated: bool
    tokens: CountersDocument | None


class TranscriptAnswer(Answer):
    """`cursor` goes on from here; `ended`: nothing more comes."""

    task: str
    attempt: int
    entries: list[EntryDocument]
    cursor: str
    ended: bool


class EventsAnswer(Answer):
    events: list[EventDocument]
    cursor: int


class StartDocument(TypedDict):
    """The work of a needed task from which an attempt starts."""

    task: str
    head: str


class LeaseDocument(TypedDict):
    """A lease with all that its holder needs; empty where it does not exist."""

    lease: str
    task: str
    project: str
    kind: str
    title: str
    prompt: str  # the template filled; the last error where an agent starts anew
    fence: int
    attempt: int
    estimate_tokens: int
    worker: str | None
    agent: str
    workspace: str | None
    expires_at: Time
    command: list[str]
    vars: dict[str, str]
    argv: list[str]  # the agent's command line
    session: str | None  # the one to resume
    timeout: float | None  # seconds
    silence: float | None  # seconds
    repo: str | None
    base: str | None
    branch: str | None
    start: list[StartDocument]
    checks: list[CheckDocument]
    merge: str
    artifacts: list[str]
    meta: dict[str, object]
    url: str | None
    token: str | None


class LocalLeaseDocument(LeaseDocument):
    """A lease as a holder on this host gets it; never sent over HTTP."""

    run: str  # its run folder
    subject: str  # of the commit that Fairlane makes of what the attempt left
    handle: str | None
    env: dict[str, str]
    executor: str
    direct: bool
    pool: str | None
    baseline: tuple[int, int, int, int] | None  # tokens that the resumed session used before
    workspaces: list[str] | None  # the project's, where it names them
    pr: list[str]  # the project's command that opens a pull request
    setup: list[str]  # the project's command for a new worktree
    setup_files: list[str]
    protect: list[str] | None
    project_checks: list[list[str]]  # command lines of the project's, also where the task has none
    checked: list[dict[str, object]]  # what came of its checks so far
    work: dict[str, object] | None  # what they check
    hooks: str  # the project's: ours, repo
    problem: str  # why the prompt or the command line could not be made; empty: they were


class LeasesAnswer(Answer):
    """What may start now, and what ended the round."""

    leases: list[LeaseDocument]
    reason: str


class CheckResultDocument(TypedDict):
    """What came of one check."""

    name: str
    argv: list[str]
    exit: int | None
    passed: bool
    seconds: float
    attempt: int
    log: str
    problem: str
    tail: str


class CheckedAnswer(Answer):
    """Checks that ran again; `error` has the code `check_failed` where one failed."""

    task: str
    passed: bool
    checks: list[CheckResultDocument]
    error: NotRequired[ErrorDocument]


class HeldAnswer(Answer):
    """A lease after a call of its holder."""

    lease: str
    task: str
    status: StatusName
    expires_at: NotRequired[Time]
    stop: NotRequired[bool]
    late: NotRequired[bool]
    code: NotRequired[str]


class ReclaimedAnswer(Answer):
    reclaimed: list[str]
    parked: list[str]
    taken_in: NotRequired[list[str]]
    started: NotRequired[list[str]]
