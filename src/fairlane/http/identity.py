"""Identity: who calls, and the token of an attempt, which can act for that attempt alone."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope

from fairlane.app.shared_queue import SharedQueue
from fairlane.engine.context import Context
from fairlane.http.messages import HttpError
from fairlane.model.documents.admin import LeaseTokenAnswer
from fairlane.model.errors import NotFound, Refused
from fairlane.model.task import Attempt
from fairlane.service.operations.table import OPERATIONS, Operation

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
    token = shown.encode("utf-8", "replace")
    if hmac.compare_digest(token, home_token.encode()):
        return OWNER
    lease, dot, _ = shown.rpartition(".")
    if dot and lease and hmac.compare_digest(token, lease_token(home_token, lease).encode()):
        return Who("attempt", lease)
    return NOBODY


async def give_token(queue: SharedQueue, home_token: str, lease: str) -> LeaseTokenAnswer:
    """A token for the holder of this attempt."""
    attempt: Attempt = await queue.read(lambda context: _attempt(context, lease))
    if attempt.ended_at is not None:
        message = f"lease {lease} of {attempt.task} has ended ({attempt.outcome})"
        raise Refused(message, "A lease ends once; take a new one.", code="lease_ended")
    return {"schema": "fairlane/1", "lease": lease, "token": lease_token(home_token, lease)}


async def ask_as(
    queue: SharedQueue, name: str, arguments: Mapping[str, object], scope: Scope
) -> Any:
    """The answer of an operation to the caller that the guard identified."""
    who: Who = scope["fairlane.who"]
    if who.lease is not None:
        arguments = await allowed(queue, OPERATIONS[name], arguments, who.lease)
    return await queue.ask(name, arguments, who.actor)


def refuse_attempts(scope: Scope) -> None:
    """What no attempt may do, whatever it says."""
    if scope["fairlane.who"].lease is not None:
        raise _forbidden("the token of an attempt cannot do this")


async def allowed(
    queue: SharedQueue, operation: Operation, arguments: Mapping[str, object], lease: str
) -> dict[str, object]:
    """The arguments with which an attempt may call this; 403: it may not."""
    values = dict(arguments)
    if operation.name in _WITH_LEASE and values.get("lease") == lease:
        return values
    if operation.name in _OF_TASK or operation.name == "add":
        attempt: Attempt = await queue.read(lambda context: _attempt(context, lease))
        if operation.name == "add":
            return _child(values, attempt)
        if values.get("task") == attempt.task:
            return values
    raise _forbidden("the token of an attempt cannot do this")


def _child(values: dict[str, object], attempt: Attempt) -> dict[str, object]:
    """New tasks below the attempt's own, whatever they say."""
    if attempt.ended_at is not None:
        raise _forbidden(f"lease {attempt.lease} has ended")
    if any(values.get(name) for name in _FAR):
        raise _forbidden(f"the token of an attempt adds without {' and '.join(_FAR)}")
    tasks = values.get("tasks")
    if isinstance(tasks, list):
        values["tasks"] = [
            task | {"parent": attempt.task} if isinstance(task, dict) else task for task in tasks
        ]
    return values


def _attempt(context: Context, lease: str) -> Attempt:
    with context.store.read() as reading:
        attempt = reading.attempt(lease)
    if attempt is None:
        hint = "It was never given out, or its task was compacted."
        raise NotFound(f"no lease {lease!r}", hint, code="unknown_lease")
    return attempt


def _forbidden(message: str) -> HttpError:
    hint = "It heartbeats, reports, completes and releases its lease, and adds children."
    return HttpError(403, "forbidden", message, hint)
