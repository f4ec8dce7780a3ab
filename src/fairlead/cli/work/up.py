"""`fairlead up`: the daemon."""

from __future__ import annotations

import subprocess
import sys
from threading import Event
from typing import TYPE_CHECKING

import click

from fairlead.cli.options import Call, common, pass_call
from fairlead.cli.output import print_json, safe, write
from fairlead.model.errors import FairleadError

if TYPE_CHECKING:
    from pathlib import Path

#: How long a detached daemon has to come up.
UP_SECONDS = 20.0


@click.command("up")
@click.option("--detach", is_flag=True, help="Return when it runs; its words go to daemon.log.")
@common
@pass_call
def command(call: Call, detach: bool) -> None:
    """Start whatever is added, until `fairlead down`. Agents survive it, and are adopted again.

    \b
    Example:
      fairlead up --detach
      fairlead down
    """
    if detach:
        pid = _detach(call)
        if call.json:
            print_json({"schema": "fairlead/1", "pid": pid})
        else:
            write(f"up (pid {pid}); `fairlead down` ends it, agents go on\n")
        return
    from fairlead.daemon.main import Daemon

    with call.desk() as desk:
        Daemon(desk, "up", say=lambda text: print(safe(text), file=sys.stderr, flush=True)).run()


def _detach(call: Call) -> int:
    from fairlead.daemon.lock import holder

    home = call.folder
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = [sys.executable, "-m", "fairlead", "--home", str(home)]
    words += ["--db", call.db] if call.db else []
    with (home / "daemon.log").open("ab") as log:
        process = subprocess.Popen(
            [*words, "up"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    pause = Event()
    for _ in range(int(UP_SECONDS / 0.05)):
        found = holder(home)
        if found is not None and found.get("pid") == process.pid:
            return process.pid
        if process.poll() is not None:
            break
        pause.wait(0.05)
    raise FairleadError(_last_words(home), f"Its log is {home / 'daemon.log'}.", "not_up")


def _last_words(home: Path) -> str:
    lines = (home / "daemon.log").read_text(encoding="utf-8", errors="replace").splitlines()
    return f"the daemon did not come up: {lines[-1] if lines else 'it said nothing'}"
