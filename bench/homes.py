"""Home folders on the disk, and the processes that work on them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fairlane.app import open_context
from fairlane.runtime.lock import holder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlane.engine.context import Context

#: A batch may run at once, and nothing is slowed down.
POLICY = (
    'preset = "balanced"\n[caps]\nall = 10000\n[lease]\nttl = "4h"\n'
    '[backpressure]\nsoft = "none"\nhard = "none"\n'
)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder on the disk, not in memory, gone afterwards."""
    here = Path(tempfile.mkdtemp(prefix=".bench-", dir=Path(__file__).parent))
    try:
        yield here
    finally:
        shutil.rmtree(here, ignore_errors=True)


def home(path: Path, policy: str = POLICY, settings: str = "") -> Context:
    """A new home folder."""
    path.mkdir()
    (path / "policy.toml").write_text(policy, encoding="utf-8")
    if settings:
        (path / "fairlane.toml").write_text(settings, encoding="utf-8")
    return open_context(path)


def fairlane(home: Path, *words: str) -> list[str]:
    """The command line that people type."""
    return [sys.executable, "-m", "fairlane", "--home", str(home), *words]


def run(*words: str) -> None:
    """A process; its words are shown only when it fails."""
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    done = subprocess.run(words, check=False, stdout=null, stderr=pipe, text=True)
    if done.returncode:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")


@contextmanager
def daemon(home: Path, *options: str) -> Iterator[int]:
    """A daemon on this home, with a server unless the options say otherwise."""
    words = fairlane(home, "up", "--port", "0", *options)
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while (lock := holder(home)) is None or lock["pid"] != process.pid:
            if process.poll() is not None:
                raise AssertionError(f"the daemon ended with {process.returncode}")
            sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def server(home: Path, *options: str) -> Iterator[tuple[str, str]]:
    """A server of its own on this home: where it listens, and its token."""
    words = fairlane(home, "serve", "--port", "0", *options)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().removeprefix("serving").strip()
            yield urlsplit(url).netloc, (home / "token").read_text().strip()
        finally:
            process.terminate()
