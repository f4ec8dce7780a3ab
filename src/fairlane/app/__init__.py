"""Wiring: a home folder becomes a desk, and the verbs become methods of one object."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.clock import Clock, SystemClock
from fairlane.model.errors import Invalid
from fairlane.model.names import OLD_NAME
from fairlane.service.desk import STORE_FILE, Desk
from fairlane.settings import FILE, Settings

if TYPE_CHECKING:
    from fairlane.app.verbs import Fairlane
    from fairlane.client.remote import Remote
    from fairlane.store.base import Store

__all__ = [
    "STORE_FILE",
    "Fairlane",
    "default_home",
    "former_home",
    "is_url",
    "open_desk",
    "open_remote",
    "open_store",
]


def default_home() -> Path:
    """`FAIRLANE_HOME`, else a folder among the user's state."""
    named = os.environ.get("FAIRLANE_HOME")
    if named:
        return Path(named)
    return _state() / "fairlane"


def former_home(home: Path | None) -> Path | None:
    """Where the user's own home folder was under the product's old name; None: `home` is named."""
    return None if home or os.environ.get("FAIRLANE_HOME") else _state() / OLD_NAME


def _state() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return Path(state) if state else Path.home() / ".local" / "state"


def open_desk(home: Path | None = None, db: str | None = None, clock: Clock | None = None) -> Desk:
    """A desk on a home folder, which is made if it is missing, and on its store."""
    folder = (home or default_home()).absolute()
    if not (folder / STORE_FILE).exists() or not (folder / FILE).exists():
        from fairlane.service.house import old_home

        old_home.refuse(folder, former_home(home))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = "Give another folder with --home or FAIRLANE_HOME."
        raise Invalid(f"{folder}: no home folder: {error.strerror}", hint) from error
    settings = Settings.load(folder / FILE)
    store = open_store(db or settings.store.url or f"sqlite:{folder / STORE_FILE}")
    return Desk(folder, store, settings, clock or SystemClock(), actor_name(), db=_whole(db))


def _whole(db: str | None) -> str | None:
    """The URL of a store as it reads from every folder."""
    scheme, _, rest = (db or "").partition(":")
    if scheme != "sqlite":
        return db
    return f"sqlite:{Path(rest.removeprefix('//')).expanduser().absolute()}"


def open_store(url: str) -> Store:
    """The store that a URL names."""
    scheme, colon, rest = url.partition(":")
    if scheme == "sqlite" and rest:
        from fairlane.store.sqlite.store import SqliteStore

        return SqliteStore.open(Path(rest.removeprefix("//")).expanduser())
    hint = "Write it as sqlite:PATH."
    if colon and scheme in ("postgresql", "postgres"):
        raise Invalid(f"there is no store for {scheme}: URLs here", hint, code="invalid_store")
    raise Invalid(f"not the URL of a store: {url!r}", hint, code="invalid_store")


def is_url(home: object) -> bool:
    """Whether this is a server rather than a home folder."""
    return isinstance(home, str) and home.startswith(("http://", "https://"))


def open_remote(url: str, token: str | None = None, home: Path | None = None) -> Remote:
    """A server elsewhere. Without a token: `FAIRLANE_TOKEN`, on this machine the home folder's."""
    from fairlane.client.address import Address, is_loopback
    from fairlane.client.remote import Remote

    token = token or os.environ.get("FAIRLANE_TOKEN")
    if not token and is_loopback(Address.of(url).host):
        from fairlane.service.house.token import known_token

        token = known_token((home or default_home()).absolute())
    return Remote(url, token or None)


def actor_name() -> str:
    """Who acts: the task, when an attempt calls; else the user."""
    task = os.environ.get("FAIRLANE_TASK")
    if task:
        return f"task:{task}"
    named = os.environ.get("USER") or os.environ.get("LOGNAME")
    if named:
        return named
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without a name
        return f"uid:{os.getuid()}"


def __getattr__(name: str) -> object:
    if name != "Fairlane":
        raise AttributeError(f"module 'fairlane.app' has no attribute {name!r}")
    from fairlane.app.verbs import Fairlane

    return Fairlane
