"""One tmux session an attempt, so that a person can attach and watch; the same run folder."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from threading import Event as Signal

from fairlane.executors.base import Handle, Orders
from fairlane.executors.process import RUN, ProcessExecutor, exit_of, spoken
from fairlane.model.errors import FairlaneError, Shortage, told_in

_SECONDS_MAX = 10.0


class TmuxExecutor:
    """The runner of an attempt lives in a session `fairlane-<task>-<attempt>`."""

    def __init__(self, warm: bool = False) -> None:
        self._process = ProcessExecutor()

    def launch(self, orders: Orders) -> Handle:
        """Start a session; the runner gets its orders through a named pipe, which is then gone."""
        pipe = orders.folder / "orders"
        os.mkfifo(pipe, 0o600)
        name = f"fairlane-{orders.folder.parent.name}-{orders.folder.name}".replace(".", "_")
        words = ["tmux", "new-session", "-d", "-s", name, *RUN, str(pipe)]
        try:
            subprocess.run(words, check=True, capture_output=True, timeout=_SECONDS_MAX, cwd="/")
        except FileNotFoundError as error:
            raise FairlaneError("tmux is not installed", "Install it, or use `process`.") from error
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip()
            if told_in(said):
                raise Shortage(f"tmux: {told_in(said)}") from error
            raise FairlaneError(f"tmux: {said}", "Is a session of this name left over?") from error
        _give(pipe, spoken(orders, echo=True))
        return self._wait(orders.folder)

    def adopt(self, folder: Path) -> Handle | None:
        """The runner of this folder, if it lives."""
        return self._process.adopt(folder)

    def stop(self, handle: Handle) -> None:
        """Ask the runner."""
        self._process.stop(handle)

    def warm_up(self) -> None:
        """Sessions are made when they are needed."""

    def close(self) -> None:
        """Nothing waits."""

    def _wait(self, folder: Path) -> Handle:
        """The runner says who it is as soon as it has its orders."""
        pause = Signal()
        for _ in range(int(_SECONDS_MAX / 0.02)):
            handle = self.adopt(folder)
            if handle is not None or exit_of(folder) is not None:
                return handle or Handle(0, "")
            pause.wait(0.02)
        raise FairlaneError("the runner did not come up in its tmux session")


def _give(pipe: Path, data: bytes) -> None:
    """Write when the other side reads; not for ever."""
    pause = Signal()
    for _ in range(int(_SECONDS_MAX / 0.02)):
        try:
            held = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        except OSError:  # nobody reads yet
            pause.wait(0.02)
            continue
        os.set_blocking(held, True)
        with contextlib.suppress(BrokenPipeError), os.fdopen(held, "wb") as stream:
            stream.write(data)
        return
