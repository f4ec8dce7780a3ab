"""The kernel's keyrings belong to a user and a session, whatever files a process sees.

A filter of system calls keeps an agent in a sandbox away from them: tickets, tokens and passwords
are kept there.
"""

from __future__ import annotations

import ctypes
import os
import struct

PR_SET_SECCOMP, MODE_FILTER = 22, 2
#: By machine, for each architecture that it runs: its number, and the first of the three system
#: calls `add_key`, `request_key` and `keyctl`.
CALLS = {
    "x86_64": ((0xC000003E, 248), (0x40000003, 286)),
    "aarch64": ((0xC00000B7, 217), (0x40000028, 309)),
}
#: Instructions of the filter.
LOAD, AND, IF_EQUAL, IF_AT_LEAST, IF_MORE, RETURN = 0x20, 0x54, 0x15, 0x35, 0x25, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050001  # with EPERM
#: All bits of a number but the one of the x32 calls.
NUMBER = 0xBFFFFFFF


def program() -> bytes:
    """The filter for this machine; empty: its numbers are not known here."""
    architectures = CALLS.get(os.uname().machine, ())
    words = [(LOAD, 0, 0, 4)]
    for architecture, first in architectures:
        words += [
            (IF_EQUAL, 0, 6, architecture),
            (LOAD, 0, 0, 0),
            (AND, 0, 0, NUMBER),
            (IF_AT_LEAST, 0, 2, first),
            (IF_MORE, 1, 0, first + 2),
            (RETURN, 0, 0, REFUSE),
            (RETURN, 0, 0, ALLOW),
        ]
    words.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *word) for word in words) if architectures else b""


def descriptor() -> int:
    """The filter in a file, for bubblewrap; -1: there is none."""
    text = program()
    if not text:
        return -1
    file = os.memfd_create("keys")
    os.write(file, text)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def refuse_keys() -> bool:
    """Put the filter upon this process, which takes no new privileges; whether that worked."""
    text = program()
    if not text:
        return True
    held = ctypes.create_string_buffer(text, len(text))
    filled = struct.pack("@HP", len(text) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    return not libc.prctl(PR_SET_SECCOMP, MODE_FILTER, filled, 0, 0)
