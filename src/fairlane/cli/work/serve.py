"""`fairlane serve` and `link`: the HTTP API, and what of dashboard and MCP is installed."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict

import click

from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import print_json, write
from fairlane.clock import poll
from fairlane.model.errors import Invalid, TryLater
from fairlane.model.record import dataclass

if TYPE_CHECKING:
    from fairlane.cli.call import Call
    from fairlane.http.app import Served


@click.command("serve")
@click.option("--host", metavar="ADDRESS", help="Where to listen (server.host, 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="0: any that is free.")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Also asked by this name.")
@click.option("--no-page", is_flag=True, help="Only the API, MCP and metrics.")
@click.option("--tls-cert", type=click.Path(exists=True), metavar="FILE", help="For HTTPS.")
@click.option("--tls-key", type=click.Path(exists=True), metavar="FILE", help="Its key.")
@click.option("--allow-plain-http", is_flag=True, help="Even where others can listen.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@click.option("--until-eof", is_flag=True, hidden=True, help="End with standard input.")
@takes_call
def serve_command(
    call: Call,
    host: str | None,
    port: int | None,
    names: tuple[str, ...],
    no_page: bool,
    tls_cert: str | None,
    tls_key: str | None,
    allow_plain_http: bool,
    opens: bool,
    until_eof: bool,
) -> None:
    """Serve the queue over HTTP: API, page, MCP, metrics. It starts no agent; `up` does both.

    \b
    Example:
      fairlane serve --port 8000
      fairlane serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    from fairlane.settings import FILE, Settings

    if (tls_cert is None) != (tls_key is None):
        raise Invalid("--tls-cert and --tls-key go together", "Give both.", code="usage")
    settings = Settings.load(call.folder / FILE).server
    wanted = Wanted(
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
        page=settings.page and not no_page,
        tls=(tls_cert, tls_key) if tls_cert and tls_key else None,
        plain=allow_plain_http,
        names=names,
        daemon=os.getppid() if until_eof else None,
    )

    tells_link = wanted.page and (not until_eof or sys.stdout.isatty())  # not into a log

    def started(url: str, link: str) -> None:
        if call.json:
            print_json({"schema": "fairlane/1", "url": url, "link": link})
        else:
            write(f"serving {url}\n" + (f"open {link}\n" if tells_link else ""))
        sys.stdout.flush()
        if opens:
            open_browser(call.folder, link)

    if until_eof:
        threading.Thread(target=_end_with_input, daemon=True).start()
    serve(call, wanted, started)


def _end_with_input() -> None:
    """End this server when its input closes: the parent process has ended."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


@click.command("link")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@takes_call
def link(call: Call, opens: bool) -> None:
    """Print a link to the page of a running server. It works once, within ten minutes.

    \b
    Example:
      fairlane link --open
    """
    link = new_link(call.folder)
    call.show({"schema": "fairlane/1", "link": link}, lambda: f"{link}")
    if opens:
        open_browser(call.folder, link)


FILE = "server.json"


class ServerRecord(TypedDict):
    """The server of a home, as its file says; `daemon`: the pid of the daemon it belongs to."""

    url: str
    pid: int
    daemon: NotRequired[int | None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a home is to be served."""

    host: str
    port: int
    page: bool = True
    tls: tuple[str, str] | None = None
    plain: bool = False  # plain HTTP off loopback was asked for
    names: tuple[str, ...] = ()  # other names by which it may be asked
    daemon: int | None = None  # the pid of the daemon that it belongs to


def is_installed() -> bool:
    """Whether the extra `server` is there."""
    return all(find_spec(name) is not None for name in ("starlette", "uvicorn", "httptools"))


def refuse_missing() -> None:
    """Without the extra there is nothing to serve with."""
    if not is_installed():
        hint = install_hint("server")
        raise Invalid("the server is not installed", hint, code="not_installed")


def serve(call: Call, wanted: Wanted, started: Callable[[str, str], None]) -> None:
    """Serve until a signal; calls `started` with the URL and a link that opens the dashboard."""
    refuse_missing()
    refuse_plain(wanted.host, wanted.plain or wanted.tls is not None)
    from fairlane.app import open_context
    from fairlane.app.shared_queue import SharedQueue
    from fairlane.http import server
    from fairlane.http.app import Bound, Served
    from fairlane.http.identity import Secrets
    from fairlane.http.sessions import OPENING_FILE, write_private

    context = open_context(call.home, call.db, call.clock)
    try:
        context.store.verify(fully=wanted.daemon is None)  # a daemon has just done it
    finally:
        context.store.close()  # settings are read, the store is whole
    known = Secrets.of(context.home)
    socket = server.bind(wanted.host, wanted.port)
    port = socket.getsockname()[1]
    bound = Bound(wanted.host, port, wanted.tls is not None, wanted.names)
    queue = SharedQueue(lambda: open_context(call.home, call.db, call.clock))
    served = Served(queue, context.home, known, context.now, bound)
    _mount(served, wanted.page)
    url = f"{'https' if bound.secure else 'http'}://{_shown(wanted.host)}:{port}"

    def tell() -> None:
        record: ServerRecord = {"url": url, "pid": os.getpid(), "daemon": wanted.daemon}
        write_private(context.home / FILE, json.dumps(record))
        started(url, f"{url}/open?key={served.sessions.new_link()}")

    served.when_ready(tell)
    try:
        server.run(served.app, socket, served.streams, wanted.tls)
    finally:
        _forget(context.home)
        (context.home / OPENING_FILE).unlink(missing_ok=True)


def known(home: Path) -> ServerRecord | None:
    """The server of this home; None: there is none."""
    try:
        record: ServerRecord = json.loads((home / FILE).read_text(encoding="utf-8"))
        return record if is_alive(int(record["pid"])) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        pass
    return True


def new_link(home: Path) -> str:
    """A one-time link to the dashboard of this home's server."""
    from fairlane.client.requests import Request, document_of
    from fairlane.client.wire import Address, Wire
    from fairlane.service.home.setup import home_token

    record = known(home)
    if record is None:
        hint = "Start it: fairlane up, or fairlane serve."
        raise TryLater("nobody serves this home folder", hint, code="not_served")
    wire = Wire(Address.of(record["url"]), home_token(home))
    try:
        answer = wire.exchange(Request("POST", "/links", b"{}", repeatable=True))
    finally:
        wire.close()
    return f"{record['url']}{document_of(record['url'], *answer)['path']}"


def open_browser(home: Path, link: str) -> None:
    """Open a link without showing it: other users can read command lines, so it is in a file."""
    from html import escape

    from fairlane.http.sessions import OPENING_FILE, write_private

    file = home / OPENING_FILE  # the server removes it when the link is used
    target = escape(link)
    head = '<meta name="referrer" content="no-referrer"><title>Fairlane</title>'
    move = f'<meta http-equiv="refresh" content="0; url={target}">'
    write_private(file, f'<!doctype html>{head}{move}<a href="{target}">Open the dashboard</a>\n')
    if click.launch(str(file)) != 0:
        import webbrowser

        webbrowser.open(file.as_uri())


def wait_for_server(home: Path, seconds: float = 15.0) -> str | None:
    """The URL as soon as this home is served; None: not in time."""
    served = poll(lambda: known(home), seconds, 0.05)
    return None if served is None else served["url"]


def words(call: Call, *verb: str) -> list[str]:
    """The command line of a verb for this home."""
    command = [sys.executable, "-m", "fairlane", "--home", str(call.folder)]
    return [*command, *(["--db", call.db] if call.db else []), *verb]


def has_screen() -> bool:
    """Whether a browser can open here."""
    if not sys.stdout.isatty() or os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform == "darwin" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def _mount(served: Served, page: bool) -> None:
    """MCP and the page, where what they need is installed."""
    from fairlane.cli.work.later import Later

    if find_spec("mcp") is not None:
        later = Later(lambda: import_module("fairlane.mcp.server").mcp_app(served.ask))
        served.mount("/mcp", later, later.running)
    if page:
        from starlette.applications import Starlette

        from fairlane.page import mount

        pages = Starlette()
        mount(pages, served.queue)
        served.mount("/", pages)


def refuse_plain(host: str, allowed: bool) -> None:
    """Refuse plain HTTP beyond loopback: it shows the token to the network."""
    from fairlane.client.wire import is_loopback

    if allowed or is_loopback(host):
        return
    hint = "Give --tls-cert and --tls-key, or say --allow-plain-http; loopback needs neither."
    message = f"{host} is not loopback, and plain HTTP shows the token to the network"
    raise Invalid(message, hint, code="plain_http")


def _shown(host: str) -> str:
    names = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}
    return names.get(host) or (f"[{host}]" if ":" in host else host)


def _forget(home: Path) -> None:
    """Remove the record, unless another server has replaced it."""
    record = known(home)
    if record is not None and record["pid"] == os.getpid():
        (home / FILE).unlink(missing_ok=True)


def install_hint(extra: str) -> str:
    """The command that adds an extra, by the names of the packages that it needs.

    It does not name Fairlane itself: a registry may know another package by that name.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        needs = requires("fairlane") or []
    except PackageNotFoundError:  # run from a tree that was never installed
        needs = []
    marked = re.compile(rf"(.+?)\s*;.*extra == ['\"]{extra}['\"]")
    names = [match[1] for need in needs if (match := marked.match(need))]
    if not names:
        return f"Install Fairlane with its extra `{extra}`."
    return f"Install what it needs: {shlex.join([sys.executable, '-m', 'pip', 'install', *names])}"
