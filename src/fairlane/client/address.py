"""Addresses: where a server is, and whether a token may be sent there."""

from __future__ import annotations

import ipaddress
import os
from typing import NamedTuple
from urllib.parse import urlsplit

from fairlane.model.errors import Invalid, Refused

#: Set to 1, it lets a token go over plain HTTP to another machine.
ALLOW = "FAIRLANE_ALLOW_PLAIN_HTTP"
_PORTS = {"http": 80, "https": 443}
#: Where the operations are, below the URL.
API = "/api/v1"


class Address(NamedTuple):
    """A server's URL in its parts."""

    url: str
    secure: bool
    host: str
    port: int
    prefix: str  # of every path

    @classmethod
    def of(cls, url: str) -> Address:
        """The address that a URL names; anything but a plain one is refused."""
        hint = "Write it as http://127.0.0.1:7117."
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise Invalid(f"not the URL of a server: {url!r}", hint, code="invalid_url") from None
        if parts.scheme not in _PORTS or not host or not url.isascii() or not url.isprintable():
            raise Invalid(f"not the URL of a server: {url!r}", hint, code="invalid_url")
        if parts.username is not None or parts.query or parts.fragment:
            more = f"{hint} The token goes into FAIRLANE_TOKEN."
            said = f"{parts.scheme}://{host}"
            raise Invalid(f"a URL with more than a host and a path: {said}", more, "invalid_url")
        prefix = parts.path.rstrip("/").removesuffix(API)
        secure = parts.scheme == "https"
        return cls(url.rstrip("/"), secure, host, port or _PORTS[parts.scheme], prefix + API)

    def check_token(self, token: str | None) -> None:
        """A token goes over plain HTTP only where nobody can listen, or where that was allowed."""
        if token is None:
            return
        if not token.isascii() or not token.isprintable() or " " in token:
            raise Invalid("this is no token", "It is one word, in the server's home folder.")
        if self.secure or is_loopback(self.host) or os.environ.get(ALLOW) == "1":
            return
        hint = f"Use https, or a tunnel to its loopback; {ALLOW}=1 sends it all the same."
        message = f"the token is not sent over plain HTTP to {self.host}"
        raise Refused(message, hint, code="plain_http")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
