"""Parts that many documents have: times, statuses, counters, holds."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypedDict

from fairlane.model.task import Status

#: An instant in RFC 3339.
Time: TypeAlias = Annotated[str, "date-time"]
#: The status of a task; `str(task.status)`.
StatusName: TypeAlias = Annotated[str, Status]


class Answer(TypedDict):
    """What every answer has."""

    schema: Literal["fairlane/1"]


class HoldDocument(TypedDict):
    """Why a task does not start now."""

    gate: str
    code: str
    reason: str
    until: Time | None
    holders: list[str]


class HeldDocument(HoldDocument):
    """The tasks that one hold keeps; `tasks` are the first few."""

    count: int
    tasks: list[str]


class CountersDocument(TypedDict):
    input: int
    output: int
    cache_read: int
    cache_write: int


class CountsDocument(TypedDict):
    queued: int
    leased: int
    running: int
    done: int
    parked: int
    canceled: int


class RoomDocument(TypedDict):
    """Cap `all`, what is in flight, and how many more may start (null: no limit)."""

    cap: int | None
    free: int | None
    in_flight: int


class PauseDocument(TypedDict):
    scope: str
    by: str
    reason: str
    since: Time


class SpreadDocument(TypedDict):
    """A median with the number of samples, in seconds."""

    p50: float | None
    count: int


class Spread90Document(SpreadDocument):
    p90: float | None


class Spread95Document(SpreadDocument):
    p95: float | None


class CheckDocument(TypedDict):
    """One check that follows an attempt."""

    name: str
    argv: list[str]
    timeout: str | None
