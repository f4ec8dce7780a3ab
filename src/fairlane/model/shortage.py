"""Shortage: our own side lacks something, so that an attempt cannot start; nobody has failed."""

from __future__ import annotations

import errno
import re

from fairlane.model.errors import FairlaneError

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


class Shortage(FairlaneError):
    """Something is missing here; the attempt counts as `environment`."""

    code = "environment"


def told_in(text: str) -> str:
    """The line in which a program tells of a shortage; empty: none does."""
    return next((line.strip() for line in text.splitlines() if _TOLD.search(line)), "")
