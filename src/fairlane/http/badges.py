"""Badges: who calls, and the token of an attempt, which can act for that attempt alone."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlane.app.office import Office
from fairlane.http.answers import HttpError
from fairlane.model.errors import NotFound, Refused
from fairlane.service.desk import Desk
from fairlane.service.operations.table import OPERATIONS, Operation
from fairlane.service.operations.values import Document
from fairlane.store.base import Attempt

#: What the holder of a lease may do with it, and what it may ask of its task.
_WITH_LEASE = frozenset({"heartbeat", "report", "complete", "release"})
_OF_TASK = frozenset({"show", "why"})
#: Arguments of `add` that reach beyond new tasks.
_FAR = ("again", "force")


@dataclass(frozen=True, slots=True)
class Who:
    """A caller whose proof was good."""

    name: str  # owner: the token; guest: the page's cookie; attempt: a lease's token
    lease: str | None = None  # an attempt's

    @property
    def actor(self) -> str | None:
        """As the log names it; None: the user of this home."""
        return f"lease:{self.lease}" if self.lease else None


OWNER, GUEST, NOBODY = Who("owner"), Who("guest"), Who("nobody")


def lease_token(home_token: str, lease: str) -> str:
    """The token of an attempt: its lease, and a proof that this server gave it out."""
    proof = hmac.new(home_token.encode(), b"lease:" + lease.encode(), hashlib.sha256).digest()
    return f"{lease}.{urlsafe_b64encode(proof).decode().rstrip('=')}"


def who_shows(home_token: str, shown: str) -> Who:
    """Whose token this is; the time it takes does not tell how much of it was right."""
    given = shown.encode("utf-8", "replace")
    if hmac.compare_digest(given, home_token.encode()):
        return OWNER
    lease, dot, _ = shown.rpartition(".")
    if dot and lease and hmac.compare_digest(given, lease_token(home_token, lease).encode()):
        return Who("attempt", lease)
    return NOBODY


async def give_token(office: Office, home_token: str, lease: str) -> dict[str, Any]:
    """A token for whoever works on this attempt."""
    attempt: Attempt = await office.read(lambda desk: _attempt(desk, lease))
    if attempt.ended_at is not None:
        message = f"lease {lease} of {attempt.task} has ended ({attempt.outcome})"
        raise Refused(message, "A lease ends once; take a new one.", code="lease_ended")
    return {"schema": "fairlane/1", "lease": lease, "token": lease_token(home_token, lease)}


async def ask_as(
    office: Office, name: str, arguments: Mapping[str, Any], scope: Mapping[str, Any]
) -> Document:
    """The answer of an operation to whoever the guard found in this request."""
    who: Who = scope["fairlane.who"]
    if who.lease is not None:
        arguments = await allowed(office, OPERATIONS[name], arguments, who.lease)
    return await office.ask(name, arguments, who.actor)


def refuse_attempts(scope: Mapping[str, Any]) -> None:
    """What no attempt may do, whatever it says."""
    if scope["fairlane.who"].lease is not None:
        raise _forbidden("the token of an attempt cannot do this")


async def allowed(
    office: Office, operation: Operation, arguments: Mapping[str, Any], lease: str
) -> dict[str, Any]:
    """The arguments with which an attempt may call this; 403: it may not."""
    held = dict(arguments)
    if operation.name in _WITH_LEASE and held.get("lease") == lease:
        return held
    if operation.name in _OF_TASK or operation.name == "add":
        attempt: Attempt = await office.read(lambda desk: _attempt(desk, lease))
        if operation.name == "add":
            return _child(held, attempt)
        if held.get("task") == attempt.task:
            return held
    raise _forbidden("the token of an attempt cannot do this")


def _child(held: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
    """New tasks below the attempt's own, whatever they say."""
    if attempt.ended_at is not None:
        raise _forbidden(f"lease {attempt.lease} has ended")
    if any(held.get(name) for name in _FAR):
        raise _forbidden(f"the token of an attempt adds without {' and '.join(_FAR)}")
    tasks = held.get("tasks")
    if isinstance(tasks, list):
        held["tasks"] = [
            each | {"parent": attempt.task} if isinstance(each, dict) else each for each in tasks
        ]
    return held


def _attempt(desk: Desk, lease: str) -> Attempt:
    with desk.store.read() as reading:
        attempt = reading.attempt(lease)
    if attempt is None:
        hint = "It was never given out, or its task was compacted."
        raise NotFound(f"no lease {lease!r}", hint, code="unknown_lease")
    return attempt


def _forbidden(message: str) -> HttpError:
    hint = "It heartbeats, reports, completes and releases its lease, and adds children."
    return HttpError(403, "forbidden", message, hint)
