"""Tricks with processes: whatever outlives its attempt, or keeps others from ending it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.attackers.tricks.scene import Scene


def sleeper(at: Scene) -> list[str]:
    """A program that stays for an hour, with a name by which the test finds it."""
    mark = f"{at.told['root']}/survivor/{at.name}"
    return [sys.executable, "-c", "import time; time.sleep(3600)", mark]


def forked(at: Scene, *, session: bool, empty: bool, deaf: bool, twice: bool, held: bool) -> None:
    """A child that leaves the group, the session, the environment and the parent behind."""
    ready, tell = os.pipe()
    if os.fork() == 0:
        os.close(ready)
        if session:
            os.setsid()
        if twice and os.fork():
            os._exit(0)
        if deaf:
            for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                signal.signal(each, signal.SIG_IGN)
        if not held:
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
        os.write(tell, b"x")
        os.close(tell)
        words = sleeper(at)
        environment = {} if empty else dict(os.environ)
        os.execve(words[0], words, environment)  # noqa: S606, no shell is the point
    os.close(tell)
    os.read(ready, 1)
    os.close(ready)


def left_behind(at: Scene, how: str) -> None:
    """Leave a process behind; `how` names what it does to stay."""
    names = ("session", "empty", "deaf", "twice", "held")
    forked(at, **{name: name in how.split("+") for name in names})


def crowd(at: Scene, count: int) -> None:
    """Many processes at once, each with a session and an empty environment of its own."""
    for _ in range(count):
        subprocess.Popen(
            sleeper(at), start_new_session=True, env={}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


def respawning(at: Scene) -> None:
    """A process whose child replaces it when it is killed."""
    script = (
        "import os, sys, time\n"
        "for _ in range(30):\n"
        "    if os.fork():\n"
        "        os.wait()\n"
        "    else:\n"
        "        os.setsid()\n"
        "        time.sleep(3600)\n"
    )
    mark = f"{at.told['root']}/survivor/{at.name}"
    subprocess.Popen(
        [sys.executable, "-c", script, mark], start_new_session=True, env={},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
