"""Identity: who calls, and the token of an attempt, which can act for that attempt alone."""

from __future__ import annotations

from pathlib import Path

from starlette.types import Scope

from fairlane.app.shared_queue import SharedQueue
from fairlane.engine.context import Context
from fairlane.model.documents.admin import LeaseTokenAnswer
from fairlane.model.errors import NotFound, Refused
from fairlane.model.record import dataclass, field
from fairlane.model.task import Attempt
from fairlane.service.attempt_rights import not_for_attempts
from fairlane.service.home.setup import attempt_key, home_token, lease_token
from fairlane.service.page_rights import not_for_page


@dataclass(frozen=True, slots=True)
class Who:
    """A caller whose proof was good."""

    name: str  # owner: the token; guest: the page's cookie; attempt: a lease's token
    lease: str | None = None  # an attempt's


OWNER, GUEST, NOBODY = Who("owner"), Who("guest"), Who("nobody")


@dataclass(frozen=True, slots=True)
class Secrets:
    """What callers prove that they know."""

    token: str = field(repr=False)  # the owner's
    attempt_key: str = field(repr=False)  # makes the tokens of attempts

    @classmethod
    def of(cls, home: Path) -> Secrets:
        """Those of a home folder, made if there are none."""
        return cls(home_token(home), attempt_key(home))


async def give_token(queue: SharedQueue, key: str, lease: str) -> LeaseTokenAnswer:
    """A token for the holder of this attempt."""
    attempt: Attempt = await queue.read(lambda context: _attempt(context, lease))
    if attempt.ended_at is not None:
        message = f"lease {lease} of {attempt.task} has ended ({attempt.outcome})"
        raise Refused(message, "A lease ends once; take a new one.", code="lease_ended")
    return {"schema": "fairlane/1", "lease": lease, "token": lease_token(key, lease)}


def refuse_attempts(scope: Scope) -> None:
    """What no attempt may do, whatever it says."""
    if scope["fairlane.who"].lease is not None:
        raise not_for_attempts("", token=True)


def owner_only(scope: Scope) -> None:
    """What neither an attempt nor the page may do."""
    refuse_attempts(scope)
    if scope["fairlane.who"] is GUEST:
        raise not_for_page(scope["path"])


def _attempt(context: Context, lease: str) -> Attempt:
    with context.store.read() as reading:
        attempt = reading.attempt(lease)
    if attempt is None:
        hint = "It was never given out, or its task was compacted."
        raise NotFound(f"no lease {lease!r}", hint, code="unknown_lease")
    return attempt
