"""`fairlane up`, `down` and `drain`: start the daemon, end it, wait until nothing runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from fairlane.careful_files import make_home, opener
from fairlane.cli.call import Call
from fairlane.cli.kinds import DURATION
from fairlane.cli.options import takes_call
from fairlane.cli.output import count, print_json, safe, warn, write
from fairlane.cli.work import serve
from fairlane.clock import poll
from fairlane.model.errors import FairlaneError, TryLater
from fairlane.model.instant import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fairlane.daemon.server_process import ServerProcess
    from fairlane.engine.context import Context


#: What becomes of a server that is down.
_RETRIED = "It is retried within 10 minutes; at once: `fairlane down`, then `fairlane up --detach`."
#: How long a detached daemon has to come up.
UP_SECONDS = 60.0


@click.command("up")
@click.option("--detach", is_flag=True, help="Return when it runs; its words go to daemon.log.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Of API and page.")
@click.option("--no-page", is_flag=True, help="Only the API, MCP and metrics.")
@click.option("--no-server", is_flag=True, help="Neither API nor page.")
@click.option("--allow-plain-http", is_flag=True, help="Even where others can listen.")
@takes_call
def up(
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
    from fairlane.settings import FILE, Settings

    call.take_in_old_home()
    if not no_server and serve.is_installed():
        serve.refuse_plain(Settings.load(call.folder / FILE).server.host, allow_plain_http)
    more = ["--port", str(port)] if port is not None else []
    more += ["--no-page"] if no_page else []
    more += ["--allow-plain-http"] if allow_plain_http else []
    if detach:
        pid = _detach(call, [*more, *(["--no-server"] if no_server else [])])
        _tell(call, pid, None if no_server else not no_page)
        return
    from fairlane.daemon.main import Daemon

    with call.context() as context:
        servant = None if no_server else _servant(call, more, context)
        try:  # the server is looked at after every turn, never before one
            say = _at_level(context.settings.log.level)
            tick = servant.look if servant else lambda _: None
            Daemon(context, "up", say=say, tick=tick).run()
        finally:
            if servant:
                servant.close()


def _servant(call: Call, more: list[str], context: Context) -> ServerProcess | None:
    from fairlane.daemon.server_process import Down, ServerProcess
    from fairlane.service.home import troubles

    def note(down: Down | None) -> None:
        if down is None:
            troubles.end(context, "server_down")
        else:
            message = f"the server (API, dashboard, MCP) is down: {down.reason}"
            troubles.report(context, "server_down", message, f"{down.hint} {_RETRIED}".strip())

    if not serve.is_installed():
        _say(_not_served())
        return None
    opens = ["--open"] if serve.has_screen() and "--no-page" not in more else []
    return ServerProcess(
        serve.words(call, "serve", "--until-eof", *more, *opens),
        sys.stderr.buffer,
        _say,
        note=note,
    )


def _not_served() -> str:
    return f"no API and no dashboard. {serve.install_hint('server')}"


def _say(text: str) -> None:
    """A line on standard error, unbuffered: what a full disk refuses is not written later."""
    os.write(sys.stderr.fileno(), f"{safe(text)}\n".encode(errors="backslashreplace"))


def _at_level(level: str) -> Callable[[str], None]:
    """Writes the messages of this level and above; a warning begins with its word."""
    from fairlane.settings import LEVELS

    least = LEVELS.index(level)

    def say(text: str) -> None:
        if LEVELS.index("warning" if text.startswith("warning:") else "info") >= least:
            _say(text)

    return say


def _tell(call: Call, pid: int, page: bool | None) -> None:
    """That it is up, and where; `page` None: nothing is served."""
    serves = page is not None and serve.is_installed()
    url = serve.wait_for_server(call.folder) if serves else None
    link = serve.new_link(call.folder) if url and page else None
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
    from fairlane.runtime.lock import holder

    home = call.folder
    make_home(home)
    with open(home / "daemon.log", "ab", opener=opener) as log:
        process = subprocess.Popen(
            serve.words(call, "up", *more), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip

    def is_up() -> bool:
        daemon = holder(home)
        return daemon is not None and daemon["pid"] == process.pid and daemon["begun"]

    poll(lambda: is_up() or process.poll() is not None, UP_SECONDS, 0.05)
    if is_up():
        return process.pid
    if process.poll() is None:  # it cannot finish its first turn
        process.terminate()
        process.wait()
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


#: How long it may take; agents that are stopped climb a ladder.
DOWN_SECONDS, STOP_SECONDS = 45.0, 120.0


@click.command("down")
@click.option("--stop-agents", is_flag=True, help="Stop what runs; its tasks go back to the queue.")
@takes_call
def down(call: Call, stop_agents: bool) -> None:
    """End the daemon. Agents go on under their runners, and the next `up` takes them in.

    \b
    Example:
      fairlane down
      fairlane down --stop-agents
    """
    pid = _end_daemon(call.folder, stop_agents)
    if stop_agents:
        _stop_the_rest(call)
    text = "down; the agents are stopped" if stop_agents else "down; agents go on"
    document = {"schema": "fairlane/1", "pid": pid, "stopped_agents": stop_agents}
    call.show(document, lambda: "no daemon runs here" if pid is None else text)


def _end_daemon(home: Path, stop_agents: bool) -> int | None:
    from fairlane.runtime.lock import holder

    daemon = holder(home)
    if daemon is None or not daemon["pid"]:
        return None
    pid = daemon["pid"]
    served = serve.known(home)
    server = served["pid"] if served and served.get("daemon") == pid else None  # ends with it
    os.kill(pid, signal.SIGUSR1 if stop_agents else signal.SIGTERM)
    os.kill(pid, signal.SIGCONT)  # a stopped process takes no other signal
    seconds = STOP_SECONDS if stop_agents else DOWN_SECONDS
    if poll(
        lambda: holder(home) is None and not (server and serve.is_alive(server)), seconds, 0.05
    ):
        return pid
    raise _not_down(home, pid)


def _not_down(home: Path, pid: int) -> TryLater:
    """Why the daemon still runs, as far as the kernel tells."""
    from fairlane.engine.context import STORE_FILE
    from fairlane.store.sqlite.lock import holder_of, is_stopped, way_out

    message = f"the daemon (pid {pid}) has not ended yet"
    end = f"kill -KILL {pid} ends it; agents go on, and the next `fairlane up` adopts them."
    writer = holder_of(home / STORE_FILE)
    if is_stopped(pid):
        return TryLater(f"{message}: something keeps it stopped", end, "busy")
    if writer is not None and writer.pid != pid:
        stopped = " and is stopped" if writer.stopped else ""
        message += f": {writer.text} holds the write lock{stopped}"
        return TryLater(message, way_out(writer) if writer.stopped else "Try again.", "busy")
    return TryLater(message, f"Its log is {home / 'daemon.log'}. {end}", "busy")


def _stop_the_rest(call: Call) -> None:
    """Agents that a daemon left behind are stopped too, and their ends taken in."""
    from fairlane.daemon.main import Daemon

    with call.context() as context:
        daemon = Daemon(context, "down")
        daemon.stop("stop")
        daemon.run()


@click.command("drain")
@click.option("--max-wait", type=DURATION, metavar="TIME", help="Wait at most this long.")
@takes_call
def drain(call: Call, max_wait: int | None) -> None:
    """Pause everything and wait until nothing is in flight. `fairlane resume` goes on.

    \b
    Example:
      fairlane drain --max-wait 30m
    """
    from fairlane.service import queue

    with call.context() as context:
        queue.pause(context, "all", "drain")
        end = None if max_wait is None else context.clock.monotonic() + max_wait / SECOND
        while True:
            stamp = context.store.stamp()
            with context.store.read() as reading:
                flying = len(reading.in_flight())
            if not flying:
                break
            left = None if end is None else end - context.clock.monotonic()
            if left is not None and left <= 0:
                hint = "Everything stays paused; ask again, or `fairlane resume`."
                raise TryLater(f"{count(flying, 'task')} still in flight", hint, "draining")
            context.store.wait_for_change(stamp, left, clock=context.clock)
    document = {"schema": "fairlane/1", "in_flight": 0, "paused": ["all"]}
    call.show(document, lambda: "drained: nothing is in flight, everything is paused")
