"""What a process puts upon itself before it becomes an agent: limits, Landlock, no keys."""

from __future__ import annotations

import ctypes
import os
import resource
import struct

from .confine import Unconfined
from .keys import refuse_keys

#: Numbers of system calls, the same on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
CAPABILITIES = 64
#: Rights of Landlock, by their bits.
READ_FILE, READ_DIR, EXECUTE, WRITE_FILE, TRUNCATE, IOCTL = 1 << 2, 1 << 3, 1, 2, 1 << 14, 1 << 15
READ = READ_FILE | READ_DIR | EXECUTE
DEVICES = 1 << 6 | 1 << 11  # to make them would be a way to the disk
FILE = READ_FILE | EXECUTE | WRITE_FILE | TRUNCATE | IOCTL
#: Abstract sockets and signals of processes outside.
SCOPES = 3
#: The first version that guards against cutting files.
ABI_MIN = 3
#: Seconds between the first and the last signal of a process that has used its CPU time.
CPU_GRACE = 5


def lower_limits(files: int | None, cpu: int | None) -> None:
    """So many files open at once, and so many seconds of CPU time; None: as before."""
    if files is not None:
        _lower(resource.RLIMIT_NOFILE, files, files)
    if cpu is not None:
        _lower(resource.RLIMIT_CPU, cpu, cpu + CPU_GRACE)


def _lower(what: int, soft: int, hard: int) -> None:
    most = resource.getrlimit(what)[1]
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(what, (soft, hard))


def abi() -> int:
    """The version of Landlock that this kernel has; 0: none."""
    return max(0, int(ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, 1)))


def ruleset(read: list[str], write: list[str]) -> int:
    """A descriptor of rules: these may be read, those changed, and nothing else."""
    libc, version = ctypes.CDLL(None, use_errno=True), abi()
    if version < ABI_MIN:
        raise Unconfined(0, f"Landlock {ABI_MIN} or later is not in this kernel", "sandbox")
    handled = (1 << 16 if version >= 5 else 1 << 15) - 1
    attributes = struct.pack("=QQQ", handled, 0, SCOPES)[: 24 if version >= 6 else 8]
    rules = int(libc.syscall(CREATE_RULESET, attributes, len(attributes), 0))
    if rules < 0:
        raise Unconfined(ctypes.get_errno(), "Landlock makes no rules", "sandbox")
    for paths, rights in ((read, READ), (write, handled & ~DEVICES)):
        for path in paths:
            _allow(libc, rules, path, rights & handled)
    return rules


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{place}"):
            rights &= FILE
        if libc.syscall(ADD_RULE, rules, 1, struct.pack("=Qi", rights, place), 0):
            raise Unconfined(ctypes.get_errno(), "Landlock takes no rule", path)
    finally:
        os.close(place)


def restrict(rules: int) -> None:
    """From now on this process has these rules, no capability, and no way to more."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.getuid() == 0:
        for capability in range(CAPABILITIES):
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(RESTRICT_SELF, rules, 0):
        raise Unconfined(ctypes.get_errno(), "Landlock was refused", "sandbox")
    if not refuse_keys():
        raise Unconfined(ctypes.get_errno(), "a filter of system calls was refused", "sandbox")
