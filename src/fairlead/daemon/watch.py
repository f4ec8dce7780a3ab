"""Watch: the kernel tells when a file is written, so that an idle daemon sleeps in peace."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_IN_MODIFY = 0x2


def watch_writes(file: Path) -> int | None:
    """A descriptor that can be read after every write to this file; None: not to be had here."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        found = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    except (OSError, AttributeError):
        return None
    if found >= 0 and libc.inotify_add_watch(found, os.fsencode(file), _IN_MODIFY) >= 0:
        return found
    if found >= 0:
        os.close(found)
    return None
