"""Where the socket of an attempt is."""

from __future__ import annotations

import hashlib
import os
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
