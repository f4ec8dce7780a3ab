"""What of this process's environment an agent gets: a chosen few, and what its entries name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

#: What every program expects; locale variables hold no secrets.
_PLACE = ("PATH", "HOME", "USER", "SHELL", "LANG", "LC_*", "TERM", "TMPDIR", "TZ")
#: How to reach the network; many programs read the lower case alone.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
)  # fmt: skip
#: Passed to every agent; a name that ends in `*` stands for all that begin so.
ALWAYS = (*_PLACE, *_PROXIES, *(name.lower() for name in _PROXIES), *_CERTIFICATES, "TRACEPARENT")


def passed(variables: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
    """The variables that every agent gets, and those that are named."""
    names = {*ALWAYS, *named}
    starts = tuple(name[:-1] for name in names if name.endswith("*"))
    return {name: text for name, text in variables.items() if _fits(name, names, starts)}


def _fits(name: str, names: Collection[str], starts: tuple[str, ...]) -> bool:
    return name in names or name.startswith(starts)
