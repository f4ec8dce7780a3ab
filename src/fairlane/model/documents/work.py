"""Documents of what attempts changed: files, commits, checks, merges."""

from __future__ import annotations

from typing import TypedDict

from fairlane.model.documents.parts import Answer, Time


class ChangeDocument(TypedDict):
    """One file that an attempt changed."""

    path: str
    change: str  # A, M, D, R
    added: int
    removed: int
    binary: bool


class PatchDocument(ChangeDocument):
    """The same with its text; null: not asked for, or there was no room for it."""

    old_path: str | None
    patch: str | None


class DiffAnswer(Answer):
    """What an attempt changed; `truncated`: not all of it is here."""

    task: str
    attempt: int
    start: str
    head: str | None
    files: list[PatchDocument]
    truncated: bool


class OpenedAnswer(Answer):
    """The folder of a task on this machine; `runs_by_itself` names what could run there."""

    task: str
    attempt: int
    path: str
    branch: str | None
    runs_by_itself: list[str]


class CommitDocument(TypedDict):
    id: str
    subject: str
    author: str
    at: Time


class WorkDocument(TypedDict):
    """The work of a task in its repository, as its last attempt left it."""

    repo: str
    branch: str
    base: str | None
    start: str | None
    head: str | None
    path: str
    worker: str | None
    dirty: bool
    files: list[ChangeDocument]
    more_files: int  # that are not listed
    commits: list[CommitDocument]  # newest first


class AttemptCheckDocument(TypedDict):
    """A check of an attempt; `exit` and `passed` are null until it has run."""

    name: str
    argv: list[str]
    exit: int | None
    passed: bool | None
    seconds: float | None
    attempt: int
    log: str | None


class MergeHoldDocument(TypedDict):
    gate: str
    code: str
    reason: str
    until: Time | None


class MergeStateDocument(TypedDict):
    """What became of the work after its task was done."""

    state: str
    mode: str
    base: str | None
    position: int | None
    head: str | None
    commit: str | None
    url: str | None
    carries: list[str]
    files: list[str]
    check: str | None
    detail: str
    tries: int
    at: Time | None
    by: str | None
    hold: MergeHoldDocument | None


class SessionDocument(TypedDict):
    """The agent's own session, with which a later attempt can go on."""

    id: str
    agent: str | None
    worker: str | None
    resumable: bool


class QuestionDocument(TypedDict):
    """What an agent asks a person."""

    text: str
    options: list[str]
    asked_at: Time
    attempt: int


ApprovalDocument = TypedDict("ApprovalDocument", {"for": list[str], "since": Time})


class ForecastDocument(TypedDict):
    """When a task is expected to start."""

    p50: Time
    p90: Time
    at: Time
