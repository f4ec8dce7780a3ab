"""Serving: a home folder's office, its HTTP API, and whatever of page and MCP is installed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from fairlane.model.errors import Invalid, TryLater

if TYPE_CHECKING:
    from fairlane.cli.options import Call
    from fairlane.http.app import Served

#: Who serves this home: url and pid.
FILE = "server.json"


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
        from fairlane.cli.work.extras import install_hint

        hint = install_hint("server")
        raise Invalid("the server is not installed", hint, code="not_installed")


def serve(call: Call, wanted: Wanted, started: Callable[[str, str], None]) -> None:
    """Serve until a signal; `started` is told the URL and a link that opens the page."""
    refuse_missing()
    refuse_plain(wanted.host, wanted.plain or wanted.tls is not None)
    from fairlane.app import open_desk
    from fairlane.app.office import Office
    from fairlane.http import server
    from fairlane.http.app import Bound, Served
    from fairlane.service.house.token import home_token

    desk = open_desk(call.home, call.db, call.clock)
    try:
        desk.store.verify(fully=wanted.daemon is None)  # a daemon has just done it
    finally:
        desk.store.close()  # the settings are read, the store is whole; each thread opens its own
    token = home_token(desk.home)
    socket = server.bind(wanted.host, wanted.port)
    port = socket.getsockname()[1]
    bound = Bound(wanted.host, port, wanted.tls is not None, wanted.names)
    office = Office(lambda: open_desk(call.home, call.db, call.clock))
    served = Served(office, desk.home, token, desk.now, bound)
    _mount(served, wanted.page)
    url = f"{'https' if bound.secure else 'http'}://{_shown(wanted.host)}:{port}"

    def tell() -> None:
        _write(desk.home, {"url": url, "pid": os.getpid(), "daemon": wanted.daemon})
        started(url, f"{url}/open?key={served.sessions.new_link()}")

    served.when_ready(tell)
    try:
        server.run(served.app, socket, served.streams, wanted.tls)
    finally:
        _forget(desk.home)


def known(home: Path) -> dict[str, Any] | None:
    """Who serves this home; None: nobody."""
    try:
        found: dict[str, Any] = json.loads((home / FILE).read_text(encoding="utf-8"))
        return found if is_alive(int(found["pid"])) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def new_link(home: Path) -> str:
    """A link that opens the page of whoever serves this home."""
    from fairlane.client.address import Address
    from fairlane.client.answers import document_of
    from fairlane.client.requests import Request
    from fairlane.client.wire import Wire
    from fairlane.service.house.token import home_token

    found = known(home)
    if found is None:
        hint = "Start it: fairlane up, or fairlane serve."
        raise TryLater("nobody serves this home folder", hint, code="not_served")
    wire = Wire(Address.of(found["url"]), home_token(home))
    try:
        answer = wire.exchange(Request("POST", "/links", b"{}", repeatable=True))
    finally:
        wire.close()
    return f"{found['url']}{document_of(found['url'], *answer)['path']}"


def wait_for_server(home: Path, seconds: float = 15.0) -> str | None:
    """The URL, as soon as somebody serves this home; None: nobody does in time."""
    pause = Event()
    for _ in range(int(seconds / 0.05)):
        found = known(home)
        if found is not None:
            return str(found["url"])
        pause.wait(0.05)
    return None


def words(call: Call, *more: str) -> list[str]:
    """The command that serves this home beside a daemon."""
    command = [sys.executable, "-m", "fairlane", "--home", str(call.folder)]
    command += ["--db", call.db] if call.db else []
    return [*command, "serve", "--until-eof", *more]


def has_screen() -> bool:
    """Whether a person sits here who can be shown a page."""
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
        mount(pages, served.office)
        served.mount("/", pages)


def refuse_plain(host: str, allowed: bool) -> None:
    """Off loopback everybody on the way reads plain HTTP, and with it the token."""
    if allowed or is_loopback(host):
        return
    hint = "Give --tls-cert and --tls-key, or say --allow-plain-http; loopback needs neither."
    message = f"{host} is not loopback, and plain HTTP shows the token to the network"
    raise Invalid(message, hint, code="plain_http")


def is_loopback(host: str) -> bool:
    """Whether only this machine gets there."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _shown(host: str) -> str:
    names = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}
    return names.get(host) or (f"[{host}]" if ":" in host else host)


def _write(home: Path, told: dict[str, Any]) -> None:
    from fairlane.http.sessions import write_private

    write_private(home / FILE, json.dumps(told))


def _forget(home: Path) -> None:
    """Unless somebody else serves it by now."""
    found = known(home)
    if found is not None and found["pid"] == os.getpid():
        (home / FILE).unlink(missing_ok=True)
