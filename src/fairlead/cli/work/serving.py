"""Serving: a home folder's office, its HTTP API, and whatever of page and MCP is installed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.model.errors import Invalid

if TYPE_CHECKING:
    from fairlead.cli.options import Call
    from fairlead.http.app import Served

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


def is_installed() -> bool:
    """Whether the extra `server` is there."""
    return all(find_spec(name) is not None for name in ("starlette", "uvicorn", "httptools"))


def refuse_missing() -> None:
    """Without the extra there is nothing to serve with."""
    if not is_installed():
        hint = "Install it: pip install 'fairlead[server]'."
        raise Invalid("the server is not installed", hint, code="not_installed")


def serve(call: Call, wanted: Wanted, started: Callable[[str, str], None]) -> None:
    """Serve until a signal; `started` is told the URL and a link that opens the page."""
    refuse_missing()
    _refuse_plain(wanted)
    from fairlead.app import open_desk
    from fairlead.app.office import Office
    from fairlead.http import server
    from fairlead.http.app import Bound, Served
    from fairlead.service.house.token import home_token

    desk = open_desk(call.home, call.db, call.clock)
    desk.store.close()  # the settings are read and the store is there; each thread opens its own
    token = home_token(desk.home)
    socket = server.bind(wanted.host, wanted.port)
    port = socket.getsockname()[1]
    bound = Bound(wanted.host, port, wanted.tls is not None, wanted.names)
    office = Office(lambda: open_desk(call.home, call.db, call.clock))
    served = Served(office, desk.home, token, desk.now, bound)
    _mount(served, wanted.page)
    url = f"{'https' if bound.secure else 'http'}://{_shown(wanted.host)}:{port}"

    def tell() -> None:
        _write(desk.home, url)
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
        os.kill(int(found["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found


def _mount(served: Served, page: bool) -> None:
    """MCP and the page, where what they need is installed."""
    if find_spec("mcp") is not None and find_spec("fairlead.mcp") is not None:
        from fairlead.mcp.server import mcp_app

        served.mount("/mcp", *mcp_app(served.ask))
    if page:
        from starlette.applications import Starlette

        from fairlead.page import mount

        pages = Starlette()
        mount(pages, served.office)
        served.mount("/", pages)


def _refuse_plain(wanted: Wanted) -> None:
    if wanted.tls or wanted.plain or is_loopback(wanted.host):
        return
    hint = "Give --tls-cert and --tls-key, or say --allow-plain-http; loopback needs neither."
    message = f"{wanted.host} is not loopback, and plain HTTP shows the token to the network"
    raise Invalid(message, hint, code="plain_http")


def is_loopback(host: str) -> bool:
    """Whether only this machine gets there."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _shown(host: str) -> str:
    names = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}
    return names.get(host) or (f"[{host}]" if ":" in host else host)


def _write(home: Path, url: str) -> None:
    from fairlead.http.sessions import write_private

    write_private(home / FILE, json.dumps({"url": url, "pid": os.getpid()}))


def _forget(home: Path) -> None:
    """Unless somebody else serves it by now."""
    found = known(home)
    if found is not None and found["pid"] == os.getpid():
        (home / FILE).unlink(missing_ok=True)
