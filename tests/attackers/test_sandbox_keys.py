"""An agent in a sandbox reads no key of its user's keyrings; without one it does."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest

from fairlane.executors.runner.keys import CALLS
from tests.attackers.test_sandbox_walls import KINDS, settle_in
from tests.daemon.world import World

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.uname().machine not in CALLS, reason="an unknown machine"),
]

PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
USER = -4  # the keyring of the user
UNLINK = 9
#: Takes the user's keyring into its own session, looks for the key, and prints it.
THIEF = """
import ctypes, sys
libc, (number, name) = ctypes.CDLL(None), (int(sys.argv[1]), sys.argv[2].encode())
libc.syscall(number, 8, -4, -3, 0, 0)
key = libc.syscall(number, 10, -3, b"user", name, 0)
held = ctypes.create_string_buffer(100)
libc.syscall(number, 11, key, held, 99, 0)
print(held.value.decode())
"""


@pytest.mark.parametrize("kind", ["none", *KINDS])
def test_a_thief_of_keys(world: World, kind: str) -> None:
    libc, first = ctypes.CDLL(None), CALLS[os.uname().machine][0][1]
    name = f"fairlane-{world.home.parent.name}".encode()
    key = libc.syscall(first, b"user", name, b"sings", 5, USER)
    if key < 0:
        pytest.skip("this kernel has no keyrings for us")
    try:
        settle_in(world, kind)
        thief = [PYTHON, "-c", THIEF, str(first + 2), name.decode()]
        world.add({"id": "t", "command": thief})
        world.run()
        log = world.home / "runs" / "t" / "1" / "stdout.log"
        assert log.read_text() == ("sings\n" if kind == "none" else "\n")
    finally:
        libc.syscall(first + 2, UNLINK, key, USER, 0, 0)
