"""Ways to a file that are not its name: through descriptors, links, other roots and programs."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.attackers.tricks.scene import Scene, shown

UP = "../" * 30
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
#: Numbers of system calls that Python has no function for, by machine.
CALLS = {"x86_64": (303, 304, 316), "aarch64": (264, 265, 276)}
AT_FDCWD = -100


def content(path: str) -> bytes:
    """The first MiB of a file."""
    with Path(path).open("rb") as file:
        return file.read(1 << 20)


def by_descriptor(at: Scene, path: str) -> str:
    return f"/proc/self/fd/{os.open(path, os.O_PATH)}"


def by_short_descriptor(at: Scene, path: str) -> str:
    return f"/dev/fd/{os.open(path, os.O_PATH)}"


def by_its_folder(at: Scene, path: str) -> str:
    folder = os.open(Path(path).parent, os.O_PATH)
    return f"/proc/self/fd/{folder}/{Path(path).name}"


def by_the_top(at: Scene, path: str) -> str:
    return f"/proc/self/fd/{os.open('/', os.O_PATH)}{path}"


def by_link(at: Scene, path: str, folder: Path | None = None) -> str:
    link = (folder or at.work) / f"{at.name}-link"
    link.symlink_to(path)
    return str(link)


def by_link_in_artifacts(at: Scene, path: str) -> str:
    return by_link(at, path, at.artifacts)


def by_link_in_temporary(at: Scene, path: str) -> str:
    return by_link(at, path, Path(os.environ.get("TMPDIR", at.work)))


def by_link_to_link(at: Scene, path: str) -> str:
    second = at.work / f"{at.name}-second"
    second.symlink_to(by_link(at, path))
    return str(second)


def by_short_link(at: Scene, path: str) -> str:
    return by_link(at, os.path.relpath(path, at.work))


def by_folder_link(at: Scene, path: str) -> str:
    return f"{by_link(at, str(Path(path).parent))}/{Path(path).name}"


def by_top_link(at: Scene, path: str) -> str:
    return f"{by_link(at, '/')}{path}"


def by_hard_link(at: Scene, path: str) -> str:
    linked = at.work / f"{at.name}-hard"
    os.link(path, linked)
    return str(linked)


def by_hard_link_of_descriptor(at: Scene, path: str) -> str:
    linked = at.work / f"{at.name}-hard"
    link_of_descriptor(os.open(path, os.O_PATH), linked)
    return str(linked)


def link_of_descriptor(number: int, path: Path) -> None:
    """A name for an open file; Python asks to follow the link only where it gets a folder too."""
    os.link(f"/proc/self/fd/{number}", path, src_dir_fd=number, follow_symlinks=True)


def by_handle(at: Scene, path: str) -> str:
    """The number of the file in its file system; no folder on the way is asked."""
    names, opens, _ = CALLS[os.uname().machine]
    handle = ctypes.create_string_buffer((128).to_bytes(4, sys.byteorder), 136)
    number = ctypes.c_int()
    given = (AT_FDCWD, path.encode(), handle, ctypes.byref(number), 0)
    if LIBC.syscall(names, *given):
        raise OSError(ctypes.get_errno(), "name_to_handle_at", path)
    found = LIBC.syscall(opens, os.open(at.work, os.O_RDONLY), handle, os.O_RDWR)
    if found < 0:
        raise OSError(ctypes.get_errno(), "open_by_handle_at", path)
    return f"/proc/self/fd/{found}"


#: Other names of the same file.
NAMES: dict[str, Callable[[Scene, str], str]] = {
    "descriptor": by_descriptor,
    "short-descriptor": by_short_descriptor,
    "its-folder": by_its_folder,
    "the-top": by_the_top,
    "dots": lambda at, path: f"{UP}..{path}",
    "own-root": lambda at, path: f"/proc/self/root{path}",
    "own-folder": lambda at, path: f"/proc/self/cwd/{UP}{path}",
    "thread-root": lambda at, path: f"/proc/thread-self/root{path}",
    "task-root": lambda at, path: f"/proc/{os.getpid()}/task/{os.getpid()}/root{path}",
    "parent-root": lambda at, path: f"/proc/{os.getppid()}/root{path}",
    "parent-folder": lambda at, path: f"/proc/{os.getppid()}/cwd/{UP}{path}",
    "daemon-root": lambda at, path: f"/proc/{at.told['daemon']}/root{path}",
    "daemon-folder": lambda at, path: f"/proc/{at.told['daemon']}/cwd/{UP}{path}",
    "tester-root": lambda at, path: f"/proc/{at.told['tester']}/root{path}",
    "link": by_link,
    "short-link": by_short_link,
    "link-in-artifacts": by_link_in_artifacts,
    "link-in-temporary": by_link_in_temporary,
    "link-to-link": by_link_to_link,
    "folder-link": by_folder_link,
    "top-link": by_top_link,
    "hard-link": by_hard_link,
    "hard-link-of-descriptor": by_hard_link_of_descriptor,
    "handle": by_handle,
}


def in_thread(path: str) -> bytes:
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(content(path)))
    thread.start()
    thread.join()
    return b"".join(found)


def mapped(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as view:
        return view[: 1 << 20]


def sent(path: str) -> bytes:
    into = os.memfd_create("copy")
    os.sendfile(into, os.open(path, os.O_RDONLY), 0, 1 << 20)
    return os.pread(into, 1 << 20, 0)


def from_its_folder(path: str) -> bytes:
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(Path(path).parent)
        return content(Path(path).name)
    finally:
        os.fchdir(here)
        os.close(here)


def said(words: list[str], path: str, env: dict[str, str] | None = None, **more: Any) -> bytes:
    """What a program says of a file, on either output; git needs no settings of its own for it."""
    given = dict(os.environ) | {"GIT_CONFIG_GLOBAL": os.devnull} if env is None else env
    line = [*words, path]
    done = subprocess.run(line, capture_output=True, check=False, timeout=60, env=given, **more)
    return bytes(done.stdout or done.stderr)


def copied_program(path: str) -> bytes:
    shutil.copy("/bin/cat", "own-cat")
    return said(["./own-cat"], path)


def nameless_program(path: str) -> bytes:
    number = os.memfd_create("cat", 0)
    os.write(number, Path("/bin/cat").read_bytes())
    return said([f"/proc/self/fd/{number}"], path, pass_fds=[number])


#: How a file is read, by a name that the kernel or a program gets.
READERS: dict[str, Callable[[str], bytes]] = {
    "thread": in_thread,
    "mapping": mapped,
    "sendfile": sent,
    "its-folder-first": from_its_folder,
    "cat": lambda path: said(["cat"], path),
    "a-session": lambda path: said(["cat"], path, start_new_session=True, env={}),
    "a-copied-program": copied_program,
    "a-nameless-program": nameless_program,
    "the-loader": lambda path: said(["/lib64/ld-linux-x86-64.so.2", "/bin/cat"], path),
    "shell": lambda path: said(["sh", "-c", 'read -r line < "$0"; echo "$line"'], path),
    "tar": lambda path: said(["tar", "-cPf", "-"], path),
    "dd": lambda path: said(["sh", "-c", 'dd if="$0" status=none'], path),
    "find": lambda path: said(["sh", "-c", 'find "$0" -exec cat {} +'], path),
    "git-diff": lambda path: said(["git", "diff", "--no-index", "--text", "/dev/null"], path),
    "sort": lambda path: said(["sort"], path),
}


def reads_by_name(at: Scene, way: str, path: str) -> None:
    """Print a secret under another name."""
    text = content(NAMES[way](at, path.format(**at.told)))
    if not text:
        raise FileNotFoundError(path)
    shown(text)


def reads_by_reader(at: Scene, way: str, path: str) -> None:
    """Print what another way of reading gives; an error message is no secret."""
    text = READERS[way](path.format(**at.told))
    if b"canary-" not in text:
        raise PermissionError(text.decode(errors="replace")[-200:])
    shown(text)


def reads_inherited(at: Scene) -> None:
    """Read whatever this process was given beside its three streams, and where that leads."""
    found = 0
    for place in list(Path("/proc/self/fd").iterdir()):
        if int(place.name) < 3 or not place.exists() or at.artifacts.samefile(place):
            continue
        given = place / f"{UP}{at.user}/.ssh/id_ed25519" if place.is_dir() else place
        if given.is_file():
            shown(given.read_bytes())
            found += 1
    if not found:
        raise FileNotFoundError("nothing was inherited")


def reads_descriptors(at: Scene, whose: str) -> None:
    """Read the files that another process has open."""
    number = {"parent": os.getppid(), "daemon": at.told["daemon"], "tester": at.told["tester"]}
    found = 0
    for place in Path(f"/proc/{number[whose]}/fd").iterdir():
        if place.is_file():
            shown(place.read_bytes())
            found += 1
    if not found:
        raise FileNotFoundError("no open file")
