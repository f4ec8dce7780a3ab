"""Where the socket of an attempt is."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

#: The longest folder for sockets: the kernel takes paths of 107 bytes.
_FOLDER_MAX = 60


def socket_of(run: Path) -> Path:
    """The socket of an attempt, at a path of its own that is short enough for a socket."""
    named = hashlib.sha256(os.fsencode(run)).hexdigest()[:16]
    folders = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp")  # noqa: S108
    within = next(
        each for each in folders if each and len(each) <= _FOLDER_MAX and Path(each).is_dir()
    )
    return Path(within, f"fairlane-{os.getuid()}-{named}", "socket")


def make_own(folder: Path) -> bool:
    """Make the folder of a socket; whether it is a folder of ours that nobody else may enter.

    Others can put a link of its name into /tmp, and a sandbox would show where that leads.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    return is_own(folder)


def is_own(folder: Path) -> bool:
    """Whether this is a folder of ours, and no link."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    is_private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700
    return is_private and found.st_uid == os.getuid()
