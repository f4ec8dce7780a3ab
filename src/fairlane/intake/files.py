"""Files and programs of others: found, read or asked, parsed, or refused by name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from fairlane.careful_files import read_file
from fairlane.intake.sources.base import Where
from fairlane.model.errors import Invalid, TryLater
from fairlane.model.values import once

#: Beyond this size it is no list of work.
FILE_BYTES_MAX = 100_000_000
UNREADABLE = "unreadable"
#: How much of what a program complains about is kept.
ERR_BYTES_MAX = 20_000


def locate(where: Where, places: Sequence[str], what: str) -> Path:
    """The file that is meant: itself, or the first of the places in its folder."""
    path = path_of(where, what)
    if not path.is_dir():
        return path
    for place in places:
        if (path / place).is_file():
            return path / place
    looked = ", ".join(places)
    raise Invalid(f"{path}: none of {looked} in it", f"Give {what}.", code=UNREADABLE)


def path_of(where: Where, what: str) -> Path:
    """The file or folder that is given."""
    if where.path is None:
        raise Invalid("there is nothing to read", f"Give {what}.", code=UNREADABLE)
    return where.path


def read_text(path: Path, what: str) -> str:
    """The text of a file, without a byte order mark."""
    try:
        return read_file(path, FILE_BYTES_MAX).decode("utf-8-sig")
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise Invalid(message, f"Give {what}.", code=UNREADABLE) from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{path}: not UTF-8 text", f"Give {what}.", code=UNREADABLE) from error


def decoded(content: bytes) -> str:
    """The text of a file whose name the caller adds."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Invalid("it is not UTF-8 text") from error


def check_inside(path: Path, folder: Path) -> None:
    """Refuse a link that leads out of the folder, nowhere, or to itself."""
    try:
        target = Path(os.path.realpath(path, strict=True))
    except OSError as error:
        raise Invalid(f"it cannot be read: {error.strerror}") from error
    if not target.is_relative_to(os.path.realpath(folder)):
        raise Invalid("it is a link that leads out of the folder")


def parse_json(text: str, name: str, what: str) -> object:
    """The document that a text is."""
    try:
        return json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{name}: not JSON: {error}", f"Give {what}.", code=UNREADABLE) from error


class Printed(NamedTuple):
    """What a program left behind."""

    code: int
    out: str
    err: str


def ask(
    argv: Sequence[str], seconds: float, folder: Path | None, env: Mapping[str, str] | None = None
) -> Printed:
    """The output of a program; a missing or slow one is retried later."""
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
    out = _Reader(program.stdout, FILE_BYTES_MAX)
    err = _Reader(program.stderr, ERR_BYTES_MAX, skips=True)
    try:
        for reader in (out, err):
            reader.join(seconds)
            if reader.is_alive():
                raise subprocess.TimeoutExpired(name, seconds)
        program.wait(seconds)
    except subprocess.TimeoutExpired as error:
        _end(program)
        hint = "Ask again later, or give it more time."
        message = f"{name} did not answer within {seconds:.3g} s"
        raise TryLater(message, hint, "source_unavailable") from error
    except BaseException:
        _end(program)
        raise
    if out.is_over:
        message = f"{name} printed more than {FILE_BYTES_MAX:,} bytes"
        raise Invalid(message, "That is no list of work.", code=UNREADABLE)
    return Printed(program.returncode, out.text(), err.text().strip())


class _Reader(threading.Thread):
    """Keeps the first bytes that a program prints; then it skips the rest, or stops listening."""

    def __init__(self, pipe: IO[bytes] | None, most: int, *, skips: bool = False) -> None:
        super().__init__(daemon=True)
        assert pipe is not None
        self._pipe, self._most, self._skips, self._data = pipe, most, skips, b""
        self.start()

    def run(self) -> None:
        """To the end, or as far as it may."""
        with self._pipe:
            self._data = self._pipe.read(self._most + 1)
            while self._skips and self._pipe.read(1 << 16):
                pass

    @property
    def is_over(self) -> bool:
        """Whether there was more."""
        return len(self._data) > self._most

    def text(self) -> str:
        """What was kept of it."""
        return self._data[: self._most].decode("utf-8", "replace")


def _end(program: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(program.pid, signal.SIGKILL)
    except ProcessLookupError:
        program.kill()
    program.wait()
