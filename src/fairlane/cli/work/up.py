"""`fairlane up`: the daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Event
from typing import TYPE_CHECKING

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, safe, warn, write
from fairlane.model.errors import FairlaneError, TryLater

if TYPE_CHECKING:
    from pathlib import Path

    from fairlane.daemon.servant import Servant

#: How long a detached daemon has to come up.
UP_SECONDS = 20.0


@click.command("up")
@click.option("--detach", is_flag=True, help="Return when it runs; its words go to daemon.log.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Of API and page.")
@click.option("--no-page", is_flag=True, help="Only the API, MCP and metrics.")
@click.option("--no-server", is_flag=True, help="Neither API nor page.")
@click.option("--allow-plain-http", is_flag=True, help="Even where others can listen.")
@common
@pass_call
def command(
    call: Call,
    detach: bool,
    port: int | None,
    no_page: bool,
    no_server: bool,
    allow_plain_http: bool,
) -> None:
    """Start whatever is added, until `fairlane down`. Agents survive it, and are adopted again.

    The HTTP API and the page are served beside it, at 127.0.0.1 port 7117.

    \b
    Example:
      fairlane up --detach
      fairlane down
    """
    call.take_in_old_home()
    if not no_server:
        _refuse_plain(call, allow_plain_http)
    more = ["--port", str(port)] if port is not None else []
    more += ["--no-page"] if no_page else []
    more += ["--allow-plain-http"] if allow_plain_http else []
    if detach:
        pid = _detach(call, [*more, *(["--no-server"] if no_server else [])])
        _tell(call, pid, None if no_server else not no_page)
        return
    from fairlane.daemon.main import Daemon

    with call.desk() as desk:
        servant = None if no_server else _servant(call, more)
        try:  # the server is looked at after every turn, never before one
            Daemon(desk, "up", say=_say, tick=servant.look if servant else _nothing).run()
        finally:
            if servant:
                servant.close()


def _refuse_plain(call: Call, allowed: bool) -> None:
    """Before anything is started."""
    from fairlane.cli.work.serving import is_installed, refuse_plain
    from fairlane.settings import FILE, Settings

    if is_installed():
        refuse_plain(Settings.load(call.folder / FILE).server.host, allowed)


def _servant(call: Call, more: list[str]) -> Servant | None:
    from fairlane.cli.work.serving import has_screen, is_installed, words
    from fairlane.daemon.servant import Servant

    if not is_installed():
        _say(_not_served())
        return None
    opens = ["--open"] if has_screen() and "--no-page" not in more else []
    return Servant(words(call, *more, *opens), sys.stderr.buffer, _say)


def _not_served() -> str:
    from fairlane.cli.work.extras import install_hint

    return f"no API and no dashboard. {install_hint('server')}"


def _nothing(daemon: object) -> None:
    """There is no server."""


def _say(text: str) -> None:
    """A line on standard error, unbuffered: what a full disk refuses is not written later."""
    os.write(sys.stderr.fileno(), f"{safe(text)}\n".encode(errors="backslashreplace"))


def _tell(call: Call, pid: int, page: bool | None) -> None:
    """That it is up, and where; `page` None: nothing is served."""
    from fairlane.cli.work.serving import is_installed, new_link, wait_for_server

    serves = page is not None and is_installed()
    url = wait_for_server(call.folder) if serves else None
    link = new_link(call.folder) if url and page else None
    if call.json:
        print_json({"schema": "fairlane/1", "pid": pid, "url": url, "link": link})
        return
    write(f"up (pid {pid}); `fairlane down` ends it, agents go on\n")
    if url:
        write(f"open {link}\n" if link else f"serving {url}\n")
    elif serves:
        warn(f"nothing is served yet; see {call.folder / 'daemon.log'}")
    elif page is not None:
        warn(_not_served())


def _detach(call: Call, more: list[str]) -> int:
    from fairlane.daemon.lock import holder

    home = call.folder
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = [sys.executable, "-m", "fairlane", "--home", str(home)]
    words += ["--db", call.db] if call.db else []
    with (home / "daemon.log").open("ab") as log:
        process = subprocess.Popen(
            [*words, "up", *more], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    pause = Event()
    for _ in range(int(UP_SECONDS / 0.05)):
        found = holder(home) or {}
        if found.get("pid") == process.pid and found.get("begun"):
            return process.pid
        if process.poll() is not None:
            break
        pause.wait(0.05)
    else:
        if (holder(home) or {}).get("pid") == process.pid:
            return process.pid  # it takes long to come up
    error = TryLater if process.returncode == TryLater.exit_code else FairlaneError
    message, hint = _last_words(home)
    raise error(message, f"{hint}Its log is {home / 'daemon.log'}.", "not_up")


def _last_words(home: Path) -> tuple[str, str]:
    """What a daemon said before it ended, and what it advised."""
    text = (home / "daemon.log").read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line] or ["it said nothing"]
    hint = f"{lines[-1].removeprefix('hint: ')} " if lines[-1].startswith("hint: ") else ""
    said = next(line for line in reversed(lines) if not line.startswith("hint: "))
    return f"the daemon did not come up: {said.removeprefix('error: ')}", hint
