"""Ways to change or to make a file outside: by every call that the kernel has for it."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.attackers.tricks.deeds_ways import AT_FDCWD, CALLS, LIBC, NAMES, link_of_descriptor
    from tests.attackers.tricks.scene import Scene

MINE = b"written by an agent\n"


def appended(path: str | Path) -> None:
    with Path(path).open("ab") as file:
        file.write(MINE)


def own_file(at: Scene) -> Path:
    path = at.work / f"{at.name}-own"
    path.write_bytes(MINE)
    return path


def mapped_over(at: Scene, path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[0:1] = b"X"


def swapped(at: Scene, path: Path) -> None:
    number = CALLS[os.uname().machine][2]
    names = os.fsencode(own_file(at)), os.fsencode(path)
    if LIBC.syscall(number, AT_FDCWD, names[0], AT_FDCWD, names[1], 2):
        raise OSError(ctypes.get_errno(), "renameat2", str(path))


def sent_into(at: Scene, path: Path) -> None:
    os.sendfile(os.open(path, os.O_WRONLY), os.open(own_file(at), os.O_RDONLY), 0, 100)


def copied_into(at: Scene, path: Path) -> None:
    os.copy_file_range(os.open(own_file(at), os.O_RDONLY), os.open(path, os.O_WRONLY), 100)


def grown(at: Scene, path: Path) -> None:
    os.posix_fallocate(os.open(path, os.O_WRONLY), 0, 4096)


def shell(line: str, path: Path) -> None:
    env = dict(os.environ) | {"GIT_CONFIG_GLOBAL": os.devnull}
    words = ["sh", "-c", line, str(path)]
    subprocess.run(words, check=True, capture_output=True, timeout=60, env=env)


#: What is done to a file that is there.
CHANGES: dict[str, Callable[[Scene, Path], object]] = {
    "cut": lambda at, path: os.truncate(path, 1),
    "emptied": lambda at, path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)),
    "mapped": mapped_over,
    "removed": lambda at, path: path.unlink(),
    "taken": lambda at, path: path.rename(at.work / f"{at.name}-taken"),
    "replaced": lambda at, path: own_file(at).replace(path),
    "swapped": swapped,
    "sent": sent_into,
    "copied": copied_into,
    "grown": grown,
    "by-shell": lambda at, path: shell('echo x >> "$0"', path),
    "by-tee": lambda at, path: shell('echo x | tee "$0"', path),
    "by-cp": lambda at, path: shell('cp /etc/hostname "$0"', path),
    "by-dd": lambda at, path: shell('echo x | dd of="$0"', path),
    "by-sed": lambda at, path: shell('sed -i s/m/n/ "$0"', path),
    "by-rm": lambda at, path: shell('rm -f "$0" && ! ls "$0"', path),
    "by-git-config": lambda at, path: shell('git config -f "$0" a.b c', path),
    "by-git-diff": lambda at, path: shell('git diff --no-index --output="$0" . .', path),
}


def as_socket(at: Scene, path: Path) -> None:
    """A socket has a short name: from inside its folder."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(path.parent)
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


def as_late_name(at: Scene, path: Path) -> None:
    """A file without a name that gets one later."""
    number = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY)
    os.write(number, MINE)
    link_of_descriptor(number, path)


def as_copied_tree(at: Scene, path: Path) -> None:
    (at.work / f"{at.name}-tree").mkdir()
    shutil.copytree(at.work / f"{at.name}-tree", path)


#: How something appears where nothing was.
MAKINGS: dict[str, Callable[[Scene, Path], object]] = {
    "file": lambda at, path: appended(path),
    "folder": lambda at, path: path.mkdir(),
    "link": lambda at, path: path.symlink_to("/"),
    "hard-link": lambda at, path: path.hardlink_to(own_file(at)),
    "fifo": lambda at, path: os.mkfifo(path),
    "node": lambda at, path: os.mknod(path),
    "socket": as_socket,
    "moved-file": lambda at, path: own_file(at).rename(path),
    "late-name": as_late_name,
    "tree": as_copied_tree,
    "by-git-init": lambda at, path: shell('git init -q "$0"', path),
    "by-tar": lambda at, path: shell('tar -cf "$0" /etc/hostname', path),
    "by-mktemp": lambda at, path: shell('mv "$(mktemp)" "$0"', path),
}


def changes(at: Scene, way: str) -> None:
    """Change a file of the user's."""
    CHANGES[way](at, at.victim)


def makes(at: Scene, way: str) -> None:
    """Make something in a folder of the user's."""
    MAKINGS[way](at, at.nowhere)


def writes_by_name(at: Scene, way: str) -> None:
    """Write into a file of the user's under another name."""
    appended(NAMES[way](at, str(at.victim)))
