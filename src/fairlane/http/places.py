"""Places: the names by which this server may be asked, and who counts as the same site."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import Scope

from fairlane.http.answers import HttpError
from fairlane.http.bodies import header

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
#: Where a bind means every address.
EVERYWHERE = ("0.0.0.0", "::", "")
#: Callers show few hosts and origins that are good; so many are remembered.
KNOWN_MAX = 100
_LOOKED_AT = (b"host", b"origin")
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Places:
    """Names with the port that is bound; another name is an attack by DNS, or a mistake."""

    def __init__(self, host: str, port: int, more: Iterable[str] = ()) -> None:
        names = [*LOOPBACK, *more]
        if host not in EVERYWHERE:
            names.append(bracketed(host))
        self._port = port
        self._known: set[tuple[object, ...]] = set()  # what was looked at and is good
        self._names = {name.lower() for name in names}

    def check(self, scope: Scope) -> None:
        """Host and Origin of a request, or 403."""
        asked = tuple(each for each in scope["headers"] if each[0] in _LOOKED_AT)
        shown = (asked, scope["scheme"], scope.get("server"))
        if shown in self._known:
            return
        self._look(scope)
        if len(self._known) < KNOWN_MAX:
            self._known.add(shown)

    def _look(self, scope: Scope) -> None:
        host = header(scope, b"host").decode("latin-1").lower()
        if not self._is_ours(scope, host):
            hint = "Ask by the address it listens at, or serve with --name NAME."
            raise HttpError(403, "foreign_host", f"this is not {host[:100] or 'named'}", hint)
        for name in _LOOKED_AT:
            if sum(key == name for key, _ in scope["headers"]) > 1:
                said, code = name.decode().title(), f"foreign_{name.decode()}"
                raise HttpError(403, code, f"{said} is given twice", "Give it once.")
        origin = header(scope, b"origin").decode("latin-1").lower()
        if origin and not same_origin(origin, host):
            hint = "Pages of other sites may not ask here."
            raise HttpError(403, "foreign_origin", f"a page of {origin[:100]} asks", hint)

    def _is_ours(self, scope: Scope, host: str) -> bool:
        if host in self._names and ":" in host.rpartition("]")[2]:
            return True  # a name that the settings give with its port
        name, port = split_host(host)
        if port is None:
            port = _PORTS[scope["scheme"]]
        if port != self._port:
            return False
        server = scope.get("server")  # the very address at which the call came in
        return name in self._names or (server is not None and name == bracketed(server[0]))


def same_origin(origin: str, host: str) -> bool:
    """Whether a page's origin is this very host and port."""
    scheme, _, place = origin.partition("://")
    if scheme not in ("http", "https"):
        return False
    name, port = split_host(place)
    own_name, own_port = split_host(host)
    usual = _PORTS[scheme]
    return name == own_name and (port or usual) == (own_port or usual)


def split_host(host: str) -> tuple[str, int | None]:
    """A Host header's name and port; -1 is no port at all."""
    try:
        found = urlsplit(f"//{host}")
        port = found.port
    except ValueError:
        return "", -1
    if found.netloc != host or found.hostname is None or "@" in host:
        return "", -1
    return bracketed(found.hostname), port


def bracketed(host: str) -> str:
    """An address of IP 6 in brackets, as URLs have it."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
