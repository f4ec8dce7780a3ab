"""Files of the run folder: whole or not at all, never through a link."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time

TYPE_CHECKING = False  # `typing` itself would take longer to import than all the rest
if TYPE_CHECKING:
    from typing import Any

#: How every file of the run folder is opened: the agent could have put a link or a pipe there.
SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: How long a file is tried when the disk is full.
WRITE_SECONDS = 60.0
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write(folder: str, name: str, document: dict[str, Any], now: bool = False) -> None:
    """A whole file or none, kept on disk; where there is no room, tried for a while, or once."""
    path = os.path.join(folder, name)
    give_up = time.monotonic() + (0.0 if now else WRITE_SECONDS)
    while True:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + ".new")
            new = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE, 0o600)
            with os.fdopen(new, "w", encoding="utf-8") as held:
                json.dump(document, held)
                held.flush()
                os.fsync(held.fileno())
            os.replace(path + ".new", path)
            return
        except OSError as error:
            if error.errno not in NO_ROOM or time.monotonic() >= give_up:
                raise
            if make_room(folder):
                document["cut"] = True
            else:
                time.sleep(0.5)


def make_room(folder: str) -> bool:
    """How it ended matters more than what it said: half of the longer log goes."""
    sizes = {}
    for name in ("stdout.log", "stderr.log"):
        with contextlib.suppress(OSError):
            file = os.open(os.path.join(folder, name), os.O_WRONLY | SAFE)
            sizes[file] = os.fstat(file).st_size
    longest = max(sizes, key=lambda file: sizes[file], default=-1)
    made = bool(sizes.get(longest))
    if made:
        os.truncate(longest, sizes[longest] // 2)
    for file in sizes:
        os.close(file)
    return made
