"""Programs that sources ask: an argument vector, a time limit, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fairlane.model.errors import TryLater


class Printed(NamedTuple):
    """What a program left behind."""

    code: int
    out: str
    err: str


def ask(
    argv: Sequence[str],
    seconds: float,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Printed:
    """What a program prints; one that is not there or takes too long is asked another time."""
    name = argv[0]
    try:
        program = subprocess.Popen(
            argv,
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that what it starts can be ended with it
        )
    except OSError as error:
        hint = f"Install {name}, or give a file instead."
        message = f"{name} cannot be started: {error.strerror}"
        raise TryLater(message, hint, "source_unavailable") from error
    try:
        out, err = program.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        _end(program)
        hint = "Ask again later, or give it more time."
        message = f"{name} did not answer within {seconds:.3g} s"
        raise TryLater(message, hint, "source_unavailable") from error
    except BaseException:
        _end(program)
        raise
    return Printed(program.returncode, out.decode("utf-8", "replace"), _short(err))


def _end(program: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(program.pid, signal.SIGKILL)
    except ProcessLookupError:
        program.kill()
    program.communicate()


def _short(err: bytes) -> str:
    """What it says on standard error, as far as people read it."""
    return err[:20_000].decode("utf-8", "replace").strip()
