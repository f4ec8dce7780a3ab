"""Wiring: a home folder becomes a context, and the verbs become methods of one object."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane.careful_files import make_home
from fairlane.clock import Clock, SystemClock
from fairlane.engine.context import STORE_FILE, Context
from fairlane.model.errors import Invalid
from fairlane.model.names import OLD_NAME
from fairlane.settings import FILE, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairlane.app.verbs import Fairlane
    from fairlane.client.attempt_socket import AttemptSocket
    from fairlane.client.remote import Remote
    from fairlane.service.operations.call import Document
    from fairlane.store.base import Store

__all__ = ["STORE_FILE", "Fairlane"]


def default_home() -> Path:
    """`FAIRLANE_HOME`, else a folder among the user's state."""
    named = os.environ.get("FAIRLANE_HOME")
    return Path(named) if named else _state() / "fairlane"


def former_home(home: Path | None) -> Path | None:
    """Where the user's own home folder was under the product's old name; None: `home` is named."""
    return None if home or os.environ.get("FAIRLANE_HOME") else _state() / OLD_NAME


def _state() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    if state:
        return Path(state)
    try:
        return Path.home() / ".local" / "state"
    except RuntimeError:  # no HOME, and no entry among the system's users
        hint = "Set HOME or FAIRLANE_HOME, or give a folder with --home."
        raise Invalid(f"user {os.getuid()} has no home directory", hint, "no_home") from None


def open_context(
    home: Path | None = None, db: str | None = None, clock: Clock | None = None
) -> Context:
    """A context on a home folder, which is made if it is missing, and on its store."""
    folder = (home or default_home()).absolute()
    if not (folder / STORE_FILE).exists() or not (folder / FILE).exists():
        from fairlane.service.home import old_home

        old_home.refuse(folder, former_home(home))
    warning = make_home(folder)
    settings = Settings.load(folder / FILE)
    url = db or settings.store.url or f"sqlite:{folder / STORE_FILE}"
    store = open_store(url, lambda path: _refuse_old_daemon(folder, path.parent))
    context = Context(
        folder, store, settings, clock or SystemClock(), actor_name(), db=_whole(db),
        lease=own_lease(),
    )  # fmt: skip
    context.warnings += [warning] if warning else []
    return context


def _whole(db: str | None) -> str | None:
    """The URL of a store as it reads from every folder."""
    scheme, _, rest = (db or "").partition(":")
    if scheme != "sqlite":
        return db
    return f"sqlite:{Path(rest.removeprefix('//')).expanduser().absolute()}"


def _refuse_old_daemon(*folders: Path) -> None:
    """A daemon or server that runs on an older schema can do nothing more after a migration."""
    from fairlane.runtime.lock import holder
    from fairlane.service.home.old_home import old_daemon, refuse_old_server

    for daemon in filter(None, map(holder, folders)):
        raise old_daemon(daemon)
    for folder in folders:
        refuse_old_server(folder)


def open_store(url: str, permit: Callable[[Path], None] = lambda path: None) -> Store:
    """The store that a URL names; `permit` raises where it must not be migrated."""
    scheme, colon, rest = url.partition(":")
    if scheme == "sqlite" and rest:
        from fairlane.store.sqlite.store import SqliteStore

        return SqliteStore.open(Path(rest.removeprefix("//")).expanduser(), permit=permit)
    hint = "Write it as sqlite:PATH."
    if colon and scheme in ("postgresql", "postgres"):
        raise Invalid(f"there is no store for {scheme}: URLs here", hint, code="invalid_store")
    raise Invalid(f"not the URL of a store: {url!r}", hint, code="invalid_store")


def is_url(home: object) -> bool:
    """Whether this is a server rather than a home folder."""
    return isinstance(home, str) and home.startswith(("http://", "https://"))


def open_remote(url: str, token: str | None = None, home: Path | None = None) -> Remote:
    """A server elsewhere. Without a token: `FAIRLANE_TOKEN`, on this machine the home folder's.

    Inside an attempt the home folder gives the token of that attempt, not the owner's.
    """
    from fairlane.client.remote import Remote
    from fairlane.client.wire import Address, is_loopback

    token = token or os.environ.get("FAIRLANE_TOKEN")
    if not token and is_loopback(Address.of(url).host):
        from fairlane.service.home.setup import attempt_key, known_token, lease_token

        folder, lease = (home or default_home()).absolute(), own_lease()
        token = known_token(folder)
        if token and lease:
            token = lease_token(attempt_key(folder), lease)
    return Remote(url, token or None)


def own_socket(home: Path | None, db: str | None) -> AttemptSocket | None:
    """The socket of the attempt inside which this program runs, where the home is hidden from it.

    Where an attempt can open the home, commands work on it: they see more than the attempt's own.
    """
    path = os.environ.get("FAIRLANE_SOCKET")
    if not path or home is not None or db is not None or _is_open(default_home()):
        return None
    from fairlane.client.attempt_socket import AttemptSocket

    return AttemptSocket(path)


def _is_open(home: Path) -> bool:
    """Whether this process can write the store of a home folder, or read its settings."""
    for file, mode in ((STORE_FILE, os.O_RDWR), (FILE, os.O_RDONLY)):
        try:
            os.close(os.open(home / file, mode | os.O_CLOEXEC))
        except OSError:
            continue
        return True
    return False


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


def own_lease() -> str | None:
    """The lease of the attempt inside which this program runs; None: a person started it."""
    return os.environ.get("FAIRLANE_LEASE") or None


#: Operations that add tasks: in direct mode they start at once.
ADDING = ("add", "group_add")
#: Operations before which the ended attempts of this machine are collected.
COLLECTING = ("lease", "reclaim")
#: Operations that request stops: where no daemon runs, the attempts of this machine are stopped.
STOPPING = ("cancel",)
#: Operations after which sources learn what became of their items, where no daemon tells them.
TELLING = ("lease", "report", "complete", "release", "reclaim", "cancel", "retry")


def answer_here(context: Context, name: str, /, **arguments: object) -> Any:
    """The answer of an operation on a home folder, with what a daemon would do beside it.

    Without a daemon, ended attempts are collected first; in direct mode new tasks start at once;
    sources with `write_back` learn what became of their items.
    """
    if context.lease is not None:
        from fairlane.service.attempt_rights import permit

        permit(context, name, arguments, context.lease, token=False)
    document = _answered(context, name, arguments)
    if (
        name in TELLING
        and context.lease is None
        and any(rule.write_back for rule in context.settings.source)
    ):
        tell_sources(context)
    return document


def tell_sources(context: Context) -> None:
    """Write back what has changed, unless a daemon does; what fails is made up for later."""
    from fairlane.runtime.lock import holder
    from fairlane.service.sync import syncing

    if holder(context.home) is not None:
        return
    for source in syncing.configured(context):
        if source.rule.write_back:
            with suppress(OSError):
                syncing.write_results(context, source)


def _answered(context: Context, name: str, arguments: Mapping[str, object]) -> Any:
    from fairlane.service.operations.call import answer

    dry_run = bool(arguments.get("dry_run"))
    adds = name in ADDING and not dry_run and context.policy().capacity.mode == "direct"
    if not adds and name not in COLLECTING:
        document = answer(context, name, **arguments)
        if name in STOPPING:
            from fairlane.runtime.direct import stop_requested

            stop_requested(context)
        return document
    collected = collect_before(context, name)
    if adds:
        from fairlane.runtime.direct import add_and_start

        document = add_and_start(context, lambda: answer(context, name, **arguments))
    else:
        document = answer(context, name, **arguments)
    start_after(context, name, collected, document)
    return document


def collect_before(context: Context, name: str) -> tuple[str, ...]:
    """The tasks whose attempts have ended here and were collected, as no daemon does it."""
    from fairlane.engine.liveness import ended_here

    if not ended_here(context):
        return ()
    from fairlane.runtime.direct import take_in

    return take_in(context, wait=name == "reclaim")


def start_after(
    context: Context, name: str, collected: tuple[str, ...], document: Document
) -> None:
    """Start what is ready by now in direct mode; the answer of `reclaim` names all of it."""
    started: tuple[str, ...] = ()
    if (collected or name == "reclaim") and context.policy().capacity.mode == "direct":
        from fairlane.runtime.direct import start_ready

        started = start_ready(context)
    if name == "reclaim":
        rows = {"taken_in": collected, "started": started}
        document |= {key: list(tasks) for key, tasks in rows.items() if tasks}


def __getattr__(name: str) -> object:
    if name != "Fairlane":
        raise AttributeError(f"module 'fairlane.app' has no attribute {name!r}")
    from fairlane.app.verbs import Fairlane

    return Fairlane
