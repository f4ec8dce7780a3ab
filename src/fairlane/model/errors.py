"""Every error that a user can see: what happened, to which thing, what to do now."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable


#: What the system says where there is no room for what was to be written.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Error numbers of the system -> what is missing.
MISSING = {
    errno.ENOSPC: "no space left",
    errno.EDQUOT: "the quota is used up",
    errno.EMFILE: "too many files are open in one process",
    errno.ENFILE: "too many files are open on this machine",
    errno.ENOMEM: "there is not enough memory",
    errno.EAGAIN: "no more processes can be started",
}
#: Those that are about a disk.
ON_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
#: How programs tell the same; of a write that fails git does not say why.
_TOLD = re.compile(
    r"No space left on device|Disk quota exceeded|Too many open files|Cannot allocate memory"
    r"|Resource temporarily unavailable|(?:unable to|failed to|could ?n.t|could not) write"
)


class FairlaneError(Exception):
    """The base of all; `code` goes into the error document, `exit_code` to the shell."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.error_code = code or self.code

    def document(self) -> dict[str, object]:
        """The error document that every interface gives."""
        error = {"code": self.error_code, "message": self.message, "hint": self.hint}
        return {"schema": "fairlane/1", "error": error}


class Refused(FairlaneError):
    """The thing exists, but what was asked cannot be done with it now."""

    code = "refused"


class NotFound(FairlaneError):
    """There is no such thing."""

    code = "not_found"


class Invalid(FairlaneError):
    """Input that breaks a rule; nothing was changed."""

    code = "invalid"
    exit_code = 2


class TryLater(FairlaneError):
    """Nothing is wrong with the request; the time is."""

    code = "try_later"
    exit_code = 75


class Shortage(FairlaneError):
    """Something is missing here; the attempt counts as `environment`."""

    code = "environment"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or lists all of them."""
    from difflib import get_close_matches

    words = sorted(known)
    near = get_close_matches(word, words, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"Known: {', '.join(words)}." if words else ""


def told_in(text: str) -> str:
    """The line in which a program tells of a shortage; empty: none does."""
    return next((line.strip() for line in text.splitlines() if _TOLD.search(line)), "")
