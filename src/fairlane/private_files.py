"""Files and folders that only their owner can read, whatever the umask is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fairlane.model.errors import Invalid, Refused

_OTHERS = 0o077
#: A folder with one of these is a home folder; another one with files keeps its mode.
_MARKS = ("fairlane.toml", "policy.toml", "fairlane.db", "token")


def make_folder(folder: Path) -> Path:
    """This folder and the missing ones above it."""
    missing = [each for each in folder.parents if not each.exists()]
    for each in (*reversed(missing), folder):
        each.mkdir(mode=0o700, exist_ok=True)
    return folder


def opener(path: str, flags: int) -> int:
    """For `open`: a new file is readable by its owner alone."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def make_home(folder: Path) -> str:
    """A home folder that only its owner can read; what was changed about it, or ""."""
    try:
        status = make_folder(folder).stat()
    except OSError as error:
        hint = "Give another folder with --home or FAIRLANE_HOME."
        raise Invalid(f"{folder}: no home folder: {error.strerror}", hint) from error
    mode = stat.S_IMODE(status.st_mode)
    if not mode & _OTHERS:
        return ""
    if status.st_uid != os.geteuid() or mode & stat.S_ISVTX:
        hint = "Give a folder of its own with --home or FAIRLANE_HOME."
        message = f"{folder} is no home folder, and others can read it (mode {mode:03o})"
        raise Refused(message, hint, "not_private")
    if _is_another(folder):
        return f"others can read {folder} (mode {mode:03o}): chmod 700 {folder}"
    try:
        folder.chmod(mode & ~_OTHERS)
    except OSError as error:
        return f"others can read {folder} (mode {mode:03o}): {error.strerror}"
    return f"{folder} could be read by others (mode {mode:03o}); now only you can"


def _is_another(folder: Path) -> bool:
    """Whether it holds other things: making those private could lock somebody out."""
    return any(folder.iterdir()) and not any((folder / mark).exists() for mark in _MARKS)
