"""One tmux session an attempt, so that a person can attach and watch; the same run folder."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

from fairlane.clock import poll
from fairlane.executors.base import Gone, Handle, Orders
from fairlane.executors.process import ProcessExecutor, orders_text
from fairlane.executors.starting import RUN
from fairlane.model.errors import FairlaneError, Shortage, shortage_in

_SECONDS_MAX = 10.0
_STEP_SECONDS = 0.02


class TmuxExecutor(ProcessExecutor):
    """The runner of an attempt lives in a session `fairlane-<task>-<attempt>`."""

    def launch(self, orders: Orders) -> Handle:
        """Start a session; the runner gets its orders through a named pipe, which is then gone."""
        if orders.sandbox is not None and orders.sandbox.kind == "landlock":
            message = "an agent under Landlock could have tmux run commands outside"
            hint = 'Use sandbox.kind = "bwrap" or worker.executor = "process".'
            raise Shortage(f"the sandbox cannot be made: {message}", hint)
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
            if shortage_in(said):
                raise Shortage(f"tmux: {shortage_in(said)}") from error
            raise FairlaneError(f"tmux: {said}", "Is a session of this name left over?") from error
        data = orders_text(orders, echo=True)
        poll(lambda: _write(pipe, data), _SECONDS_MAX, _STEP_SECONDS)
        if not poll(lambda: self._has_started(orders.folder), _SECONDS_MAX, _STEP_SECONDS):
            raise FairlaneError("the runner did not come up in its tmux session")
        return self.adopt(orders.folder) or Handle(orders.folder)

    def _has_started(self, run: Path) -> bool:
        """Whether the runner has its orders, or has ended."""
        return (run / "runner.json").exists() or self.poll(Handle(run)) != Gone()

    def warm_up(self) -> None:
        """Sessions are made when they are needed."""


def _write(pipe: Path, data: bytes) -> bool:
    """Write when the other side reads."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return True
    except OSError:  # nobody reads yet
        return False
    os.set_blocking(descriptor, True)
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
    return True
