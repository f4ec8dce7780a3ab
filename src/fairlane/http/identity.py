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
from fairlane.model.documents.admin import LeaseTokenAnswer
from fairlane.model.errors import NotFound, Refused
from fairlane.model.task import Attempt
from fairlane.service.attempt_rights import not_for_attempts


@dataclass(frozen=True, slots=True)
class Who:
    """A caller whose proof was good."""

    name: str  # owner: the token; guest: the page's cookie; attempt: a lease's token
    lease: str | None = None  # an attempt's


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
    return await queue.ask(name, arguments, who.lease)


def refuse_attempts(scope: Scope) -> None:
    """What no attempt may do, whatever it says."""
    if scope["fairlane.who"].lease is not None:
        raise not_for_attempts("", token=True)


def _attempt(context: Context, lease: str) -> Attempt:
    with context.store.read() as reading:
        attempt = reading.attempt(lease)
    if attempt is None:
        hint = "It was never given out, or its task was compacted."
        raise NotFound(f"no lease {lease!r}", hint, code="unknown_lease")
    return attempt
