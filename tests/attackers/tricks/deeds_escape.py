"""Ways out of a sandbox: namespaces, mounts, roots, other processes, devices, the kernel.

Whatever works must do no harm: a mount is made in a namespace that ends with its process, and where
there is none, the call is one that says whether it is allowed, and does nothing.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.attackers.tricks.deeds_ways import LIBC, UP
    from tests.attackers.tricks.scene import Scene, shown

NEW_MOUNTS, NEW_USER, NEW_NETWORK = 0x20000, 0x10000000, 0x40000000
BIND, RECURSIVE, PRIVATE, EXPIRE = 0x1000, 0x4000, 0x40000, 4
#: How the kernel says no; any other error means that the caller may.
NO = (errno.EPERM, errno.EACCES, errno.ENOENT)
SEIZE = 0x4206
TIOCSTI = 0x5412


def told_no(what: str, answer: int) -> int:
    """A call of the C library; -1 is a refusal."""
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return answer


def own_namespaces(flags: int) -> None:
    """New namespaces; where it is a user's, this process is root in it."""
    user, group = os.getuid(), os.getgid()
    told_no("unshare", LIBC.unshare(flags))
    if flags & NEW_USER:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    if flags & NEW_MOUNTS:
        told_no("private", LIBC.mount(None, b"/", None, RECURSIVE | PRIVATE, None))


def mounted(at: Scene, source: str, kind: str | None, flags: int, data: str = "") -> str:
    place = at.work / f"{at.name}-place"
    place.mkdir()
    words = [os.fsencode(each) if each else None for each in (source, str(place), kind)]
    told_no("mount", LIBC.mount(*words, flags, os.fsencode(data) if data else None))
    return str(place)


def below(at: Scene, flags: int, source: str = "/") -> str:
    """Everything once more, by a mount in new namespaces."""
    own_namespaces(flags)
    return mounted(at, source, None, BIND | RECURSIVE)


def layered(at: Scene) -> str:
    """The user's folder as the lower one of two layers, under the name that it has outside."""
    own_namespaces(NEW_USER | NEW_MOUNTS)
    (at.work / "layer").mkdir()
    data = f"lowerdir={at.work / 'layer'}:{at.user}"
    again = Path(f"{at.work}/again{at.user}")
    again.parent.mkdir(parents=True)
    again.symlink_to(mounted(at, "overlay", "overlay", 0, data))
    return str(at.work / "again")


def may_mount(at: Scene) -> None:
    """Whether this process may mount, by a kind of file system that there is not."""
    LIBC.mount(b"none", os.fsencode(at.work), b"no-such-kind", 0, None)
    if ctypes.get_errno() in NO:
        raise PermissionError(ctypes.get_errno(), "mount")


def may_uncover(at: Scene, path: str) -> None:
    """Whether this process may take a mount away; asked once, the kernel only marks it."""
    LIBC.umount2(os.fsencode(path), EXPIRE)
    if ctypes.get_errno() in NO:
        raise PermissionError(ctypes.get_errno(), "umount")


def joined(at: Scene, whose: str, kind: str) -> str:
    number = {"first": 1, "parent": os.getppid(), "daemon": int(at.told["daemon"])}[whose]
    place = os.open(f"/proc/{number}/ns/{kind}", os.O_RDONLY)
    here = Path(f"/proc/self/ns/{kind}").stat()
    if os.path.samestat(os.fstat(place), here):
        raise PermissionError("it is the own one")
    told_no("setns", LIBC.setns(place, 0))
    return ""


def rooted(at: Scene, where: str) -> str:
    """Another root, and back up by a folder that was open before."""
    outside = os.open("/", os.O_RDONLY)
    os.chroot(where)
    os.fchdir(outside)
    return UP


def turned(at: Scene) -> str:
    """The root and another folder change places."""
    own_namespaces(NEW_USER | NEW_MOUNTS)
    place = mounted(at, "/", None, BIND | RECURSIVE)
    number = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
    told_no("pivot_root", LIBC.syscall(number, os.fsencode(place), os.fsencode(place)))
    return "/"


def opened_tree(at: Scene) -> str:
    """A copy of all mounts that nobody sees (open_tree)."""
    found = told_no("open_tree", LIBC.syscall(428, -100, b"/", 1 | RECURSIVE << 1))
    return f"/proc/self/fd/{found}"


def made_disk(at: Scene) -> str:
    """The disk on which the secret lies, as a device of the agent's own."""
    number = at.work.stat().st_dev
    os.mknod(at.work / at.name, 0o600 | stat.S_IFBLK, number)
    os.close(os.open(at.work / at.name, os.O_RDONLY))
    return ""


#: What gives another view of the machine; the path at which it begins.
ESCAPES: dict[str, Callable[[Scene], str]] = {
    "bind-in-mounts": lambda at: below(at, NEW_MOUNTS),
    "bind-in-user": lambda at: below(at, NEW_USER | NEW_MOUNTS),
    "bind-in-all": lambda at: below(at, NEW_USER | NEW_MOUNTS | NEW_NETWORK),
    "bind-other-root": lambda at: below(at, NEW_USER | NEW_MOUNTS, f"/proc/{os.getppid()}/root"),
    "bind-first-root": lambda at: below(at, NEW_USER | NEW_MOUNTS, "/proc/1/root"),
    "overlay": layered,
    "pivot": turned,
    "open-tree": opened_tree,
    "chroot-here": lambda at: rooted(at, "."),
    "chroot-first": lambda at: rooted(at, "/proc/1/root"),
    "chroot-parent": lambda at: rooted(at, f"/proc/{os.getppid()}/root"),
    **{
        f"join-{kind}-{whose}": lambda at, kind=kind, whose=whose: joined(at, whose, kind)  # type: ignore[misc]
        for whose in ("first", "parent", "daemon")
        for kind in ("mnt", "user", "pid")
    },
}


def escapes(at: Scene, way: str) -> None:
    """Get to a view of the machine in which a secret is to be read; in a process of its own."""
    reading, telling = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            top = ESCAPES[way](at)
            shown(Path(f"{top}{at.user}/.ssh/id_ed25519").read_bytes())
            os._exit(0)
        except BaseException as error:
            os.write(telling, repr(error).encode()[:300])
            os._exit(1)
    os.close(telling)
    said = os.read(reading, 1000)
    os.close(reading)
    if os.waitpid(child, 0)[1]:
        raise PermissionError(said.decode(errors="replace"))


def another(at: Scene, whose: str) -> int:
    """The number of a process outside; inside bubblewrap it is nobody's."""
    if whose == "parent":
        return os.getppid()
    return int(at.told[whose])


def attached(number: int) -> None:
    """In a process that ends at once: with it the other one is free again."""
    child = os.fork()
    if child == 0:
        os._exit(LIBC.ptrace(SEIZE, number, None, None) < 0)
    if os.waitpid(child, 0)[1]:
        raise PermissionError("ptrace")


def memory_of(number: int) -> None:
    lines = Path(f"/proc/{number}/maps").read_text().splitlines()
    first = int(lines[0].partition("-")[0], 16)
    os.pread(os.open(f"/proc/{number}/mem", os.O_RDONLY), 16, first)


def descriptor_of(number: int) -> None:
    place = told_no("pidfd_open", LIBC.syscall(434, number, 0))
    told_no("pidfd_getfd", LIBC.syscall(438, place, 0, 0))


def limited(number: int) -> None:
    """The limits of another process; they stay as they are."""
    old = ctypes.create_string_buffer(16)
    told_no("prlimit", LIBC.prlimit(number, 7, None, old))


#: What is done to another process; none of it changes anything.
TOUCHES: dict[str, Callable[[int], object]] = {
    "ptrace": attached,
    "memory": memory_of,
    "descriptor": descriptor_of,
    "environment": lambda number: Path(f"/proc/{number}/environ").read_bytes(),
    "maps": lambda number: Path(f"/proc/{number}/maps").read_bytes()[0],
    "stack": lambda number: Path(f"/proc/{number}/auxv").read_bytes()[0],
    "folder": lambda number: Path(f"/proc/{number}/cwd").readlink(),
    "program": lambda number: Path(f"/proc/{number}/exe").readlink(),
    "descriptors": lambda number: list(Path(f"/proc/{number}/fd").iterdir()),
    "files": lambda number: list(Path(f"/proc/{number}/map_files").iterdir()),
    "oom": lambda number: os.open(f"/proc/{number}/oom_score_adj", os.O_WRONLY),
    "references": lambda number: os.open(f"/proc/{number}/clear_refs", os.O_WRONLY),
    "limits": limited,
}


def touches(at: Scene, what: str, whose: str) -> None:
    """Look into another process, or get hold of it."""
    TOUCHES[what](another(at, whose))


def opens(at: Scene, path: str, how: str) -> None:
    """Open what would change or show the machine; nothing is written, even where it works."""
    flags = {"r": os.O_RDONLY, "w": os.O_WRONLY, "new": os.O_WRONLY | os.O_TMPFILE}[how]
    os.close(os.open(path.format(**at.told), flags | os.O_NONBLOCK | os.O_NOCTTY))


def types(at: Scene) -> None:
    """Type into the terminal from which Fairlane was started."""
    with Path("/dev/tty").open("rb") as terminal:
        fcntl.ioctl(terminal, TIOCSTI, b" ")


def makes_disk(at: Scene) -> None:
    """Read the disk itself."""
    made_disk(at)
