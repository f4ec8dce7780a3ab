"""Documents of imports, sync and conversion."""

from __future__ import annotations

from typing import NotRequired, TypedDict, final

from fairlane.model.documents.admin import ErrorDocument
from fairlane.model.documents.parts import Answer, Time


class ReasonDocument(TypedDict):
    """A task or an item, and why."""

    id: str
    reason: str


class SkippedDocument(ReasonDocument):
    where: str
    broken: NotRequired[bool]  # the record is wrong; nobody chose to leave it out


class ImportedDocument(TypedDict):
    id: str
    project: str
    group: str | None


class ChangedFieldsDocument(TypedDict):
    id: str
    fields: list[str]


class FailedWriteDocument(TypedDict):
    """What could not be written back; `id` null: nothing could."""

    id: str | None
    message: str


#: Where items came from; `import` is the number by which it can be undone.
ImportNumber = TypedDict(
    "ImportNumber", {"source": str, "path": str, "import": int | None, "dry_run": bool}
)


@final
class ImportAnswer(Answer, ImportNumber):
    """What an import did; the ids are those of tasks, of what is skipped or deferred the source's.

    `deferred`: what the queue has no room for now; importing again brings it in.
    `restarted`: tasks that were over, of items that a person has put back.
    `written` and `untold` are there where results are written back.
    """

    created: list[ImportedDocument]
    changed: list[ChangedFieldsDocument]
    unchanged: list[str]
    canceled: list[ReasonDocument]
    held: list[ReasonDocument]
    parked: list[ReasonDocument]
    skipped: list[SkippedDocument]
    conflicts: list[ReasonDocument]
    deferred: list[ReasonDocument]
    restarted: list[ReasonDocument]
    groups: list[str]
    notes: list[str]
    written: NotRequired[list[str]]
    untold: NotRequired[list[FailedWriteDocument]]


class UndoAnswer(Answer, ImportNumber):
    canceled: list[ReasonDocument]
    left: list[ReasonDocument]


class WrittenDocument(TypedDict):
    """The items whose state was written back."""

    written: list[str]
    failed: list[FailedWriteDocument]


@final
class FailedSourceDocument(TypedDict):
    """A source that could not be asked."""

    source: str
    path: str
    error: ErrorDocument


class SyncAnswer(Answer):
    dry_run: bool
    sources: list[ImportAnswer | FailedSourceDocument]
    warnings: list[str]


class ConvertedPauseDocument(TypedDict):
    scope: str
    by: str
    since: Time | None
    reason: str


class ConvertAnswer(Answer):
    """What another scheduler's files amount to; `added` and on: after it was written.

    `tasks` counts what can come in; `skipped` names the work that cannot.
    """

    format: str
    file: str
    policy: str
    settings: str
    projects: list[dict[str, object]]
    pauses: list[ConvertedPauseDocument]
    tasks: int
    skipped: list[SkippedDocument]
    notes: list[str]
    unknown: list[str]
    added: int
    changed: bool
    written: list[str]
    backups: list[str]
