"""Documents of groups: listed, in full, added or changed."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from fairlane.model.documents.parts import Answer, CountsDocument, StatusName, Time
from fairlane.model.documents.sources import ReasonDocument
from fairlane.model.documents.tasks import AddedAnswer, LinkedDocument


class GroupDocument(TypedDict):
    """A group with its progress, the groups under it included."""

    name: str
    title: str
    progress: str
    total: int
    ready: int
    waiting: int
    done: bool
    stranded: bool
    paused: bool
    parent: str | None
    priority: int | None
    by_status: CountsDocument
    groups: list[str]


class GroupsAnswer(Answer):
    groups: list[GroupDocument]


class GroupAnswer(Answer):
    """One group; `created` after `group_add`."""

    group: GroupDocument
    created: NotRequired[bool]


class GroupRunningDocument(TypedDict):
    id: str
    group: str | None
    title: str
    status: StatusName
    worker: str | None
    attempt: int
    since: Time | None
    note: str


class GroupHoldDocument(TypedDict):
    """Tasks that do not start now, by what holds them; `tasks` are the first few."""

    gate: str
    code: str
    reason: str
    count: int
    tasks: list[str]


class GroupParkedDocument(ReasonDocument):
    group: str | None


#: From the first task that was added to the last that ended; open while one is unfinished.
SpanDocument = TypedDict("SpanDocument", {"from": Time | None, "until": Time | None})


class GroupProgressDocument(TypedDict):
    """What runs, starts next, is held or parked, and what the group has cost so far."""

    running: list[GroupRunningDocument]
    next: list[str]
    holds: list[GroupHoldDocument]
    parked: list[GroupParkedDocument]
    span: SpanDocument
    tokens: int
    usd: float


class TreeGroupDocument(GroupDocument):
    depth: int


class FullGroupDocument(GroupDocument, GroupProgressDocument):
    tasks: list[LinkedDocument]
    tree: list[TreeGroupDocument]


class FullGroupAnswer(Answer):
    group: FullGroupDocument


class GroupSetAnswer(Answer):
    """A group that was changed; `followed`: the number of queued tasks with its new priority."""

    group: GroupDocument
    followed: int


class JoinedGroupDocument(TypedDict):
    name: str
    parent: str | None
    created: bool


class TreeAddedAnswer(AddedAnswer):
    """A tree of groups and tasks; `unrouted` are the tasks that were left out."""

    created: bool
    group: GroupDocument | None
    groups: list[JoinedGroupDocument]
    unrouted: list[ReasonDocument]
