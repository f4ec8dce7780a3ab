"""Documents of projects, pools, workers, pauses and the policy."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from fairlane.model.documents.parts import (
    Answer,
    CheckDocument,
    CountsDocument,
    PauseDocument,
    Time,
)


class PoolDocument(TypedDict):
    name: str
    cause: str
    reason: str
    cooldown: bool
    probing: bool
    paused: bool
    hits: int
    in_flight: int
    until: Time | None
    cap: int | None


class PoolsAnswer(Answer):
    pools: list[PoolDocument]


class PoolAnswer(Answer):
    pool: PoolDocument


class BudgetDocument(TypedDict):
    scope: str
    window: str
    unit: str
    on_exceeded: str
    used: float
    reserved: float
    limit: float
    fraction: float
    warn_at: float
    warn: bool
    frees_at: Time | None


class WorkerDocument(TypedDict):
    name: str
    host: str
    slots: int | None
    free: int | None
    labels: list[str]
    tasks: list[str]
    seen_at: Time
    live: bool


class WorkersAnswer(Answer):
    workers: list[WorkerDocument]


class WorkerAnswer(Answer):
    worker: WorkerDocument


class ProjectDocument(TypedDict):
    name: str
    status: str
    repo: str | None
    base: str | None
    prefix: str | None
    agent: str | None
    template: str | None
    weight: int
    tokens: int
    starts: int
    completions: int
    max_in_flight: int | None
    paused: bool
    usd: float
    tasks: CountsDocument
    workspaces: list[str] | None
    hooks: str  # ours, repo: whose git hooks run when Fairlane calls git
    merge: str | None  # of tasks that say nothing
    carry: str | None
    context: str | None
    checks: list[CheckDocument]
    pr: list[str]
    setup: list[str]
    setup_files: list[str]
    protect: list[str] | None
    budgets: list[dict[str, object]]


class ProjectsAnswer(Answer):
    projects: list[ProjectDocument]


class ProjectAnswer(Answer):
    """One project; `created` after `project_add`."""

    project: ProjectDocument
    created: NotRequired[bool]


class RemovedAnswer(Answer):
    """A project that was removed; `archived`: its tasks are kept."""

    removed: str
    archived: bool


class PausedAnswer(Answer, PauseDocument):
    """A pause; `changed`: it is new."""

    changed: bool


class ResumedAnswer(Answer):
    changed: bool
    scope: str
    paused: list[PauseDocument]


class ClearedAnswer(Answer):
    by_kind: dict[str, int]
    by_project: dict[str, int]
    scope: str
    dry_run: bool
    count: int
    tasks: list[str]


class PolicyKeyDocument(TypedDict):
    key: str
    value: object
    origin: str


class PolicyAnswer(Answer):
    preset: str | None
    file: str | None
    digest: str
    policy: dict[str, object]
    keys: list[PolicyKeyDocument]


class PolicyDifferenceDocument(TypedDict):
    key: str
    a: object
    b: object


class PolicyChangedAnswer(Answer):
    file: str
    digest: str
    differences: list[PolicyDifferenceDocument]


class PolicyCheckedAnswer(Answer):
    file: str
    ok: bool
    preset: str | None
    digest: str


class PolicyDiffAnswer(Answer):
    a: str
    b: str
    differences: list[PolicyDifferenceDocument]


class PresetDocument(TypedDict):
    name: str
    about: str


class PresetsAnswer(Answer):
    presets: list[PresetDocument]


class PolicyUsedAnswer(Answer):
    """A policy file that uses a preset; `backup`: the file before it."""

    file: str
    preset: str
    backup: str | None


class StartsDocument(TypedDict):
    now: list[str]
    then: list[str]


class ReasonsDocument(TypedDict):
    now: str
    then: str


class PolicyTriedAnswer(Answer):
    """What the next plan would do under another policy."""

    policy: str
    starts: StartsDocument
    gains: list[str]
    loses: list[str]
    reason: ReasonsDocument
    differences: list[PolicyDifferenceDocument]


class WorkspaceDocument(TypedDict):
    """A worktree; `keep`: why it must stay."""

    project: str
    name: str
    path: str
    branch: str | None
    keep: str | None


class WorkspacesAnswer(Answer):
    workspaces: list[WorkspaceDocument]


class WorkspacesCleanedAnswer(Answer):
    removed: list[WorkspaceDocument]
    refused: list[WorkspaceDocument]
    dry_run: bool


class ErrorDocument(TypedDict):
    code: str
    message: str
    hint: str


class ErrorAnswer(Answer):
    error: ErrorDocument


class LeaseTokenAnswer(Answer):
    """A token that acts for one attempt."""

    lease: str
    token: str


class LinkAnswer(Answer):
    """A link that opens the dashboard once."""

    path: str
    seconds: int


class ProgramDocument(TypedDict):
    name: str
    path: str


class InitAnswer(Answer):
    home: str
    made: list[str]
    kept: list[str]
    agents: list[ProgramDocument]


class FindingDocument(TypedDict):
    level: str
    what: str
    message: str
    hint: str


class DoctorAnswer(Answer):
    ok: bool
    home: str
    findings: list[FindingDocument]


class BackupAnswer(Answer):
    backup: str
    bytes: int


#: The version of a store's schema before and after it was opened.
Versions = TypedDict("Versions", {"store": str, "from": int | None, "to": int | None})


class MigratedAnswer(Answer, Versions):
    """What opening a store did to its schema."""
