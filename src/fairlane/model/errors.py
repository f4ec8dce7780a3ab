"""Every error that a user can see: what happened, to which thing, what to do now."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from fairlane.model.documents.admin import ErrorAnswer


#: Error numbers of the system for a disk without room.
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
#: Codes of errors of the store.
_OF_THE_STORE = ("corrupt", "read_only", "store")
#: Messages of programs for the same; git gives no reason for a failed write.
_SHORTAGE = (
    r"No space left on device|Disk quota exceeded|Too many open files|Cannot allocate memory"
    r"|Resource temporarily unavailable|(?:unable to|failed to|could ?n.t|could not) write"
)


class FairlaneError(Exception):
    """The base of all; `code` is for the error document, `exit_code` for the shell."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.error_code = code or self.code

    def document(self) -> ErrorAnswer:
        """The error document that every interface gives."""
        return {
            "schema": "fairlane/1",
            "error": {"code": self.error_code, "message": self.message, "hint": self.hint},
        }

    def in_full(self, task: str) -> str:
        """Message and hint as one text, for the task that it is about."""
        hint = self.hint.replace("fairlane retry TASK", f"fairlane retry {task}")
        return f"{self.message}. {hint}" if hint else self.message

    def within(self, place: str, code: str | None = None) -> Self:
        """The same error with the place that it is about in front: `PLACE: message`."""
        return type(self)(f"{place}: {self.message}", self.hint, code or self.error_code)


class Refused(FairlaneError):
    """The thing exists, but what was asked cannot be done with it now."""

    code = "refused"


class Forbidden(Refused):
    """It can be done, but not by this caller."""

    code = "forbidden"


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


class Busy(TryLater):
    """One call at a time is answered here, and another one is under way."""

    code = "busy"


class Interrupted(FairlaneError):
    """A person has interrupted a command that had done a part of its work."""

    code = "interrupted"
    exit_code = 130


class Shortage(FairlaneError):
    """Something is missing here; the attempt counts as `environment`."""

    code = "environment"


def is_environmental(error: Exception) -> bool:
    """Whether the machine or the store caused it, not what was being done."""
    code = error.error_code if isinstance(error, FairlaneError) else ""
    return isinstance(error, OSError | TryLater) or code in _OF_THE_STORE


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or lists all of them."""
    from difflib import get_close_matches

    words = sorted(known)
    swapped = [known for known in words if sorted(known) == sorted(word)]
    near = swapped or get_close_matches(word, words, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"Known: {', '.join(words)}." if words else ""


def listed(names: Sequence[str], most: int) -> str:
    """Names with commas, the first of them; the rest is counted."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def shortage_in(text: str) -> str:
    """The line in which a program reports a shortage; empty: none does."""
    return next((line.strip() for line in text.splitlines() if re.search(_SHORTAGE, line)), "")
