"""One command: the five options that every verb takes, and how it asks for its answer."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane.cli.output import print_error, print_json, safe, warn, write
from fairlane.clock import Clock, FixedClock, SystemClock
from fairlane.model.errors import Forbidden, Invalid, TryLater
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fairlane.cli.verb import Options
    from fairlane.client.attempt_socket import AttemptSocket
    from fairlane.client.remote import Remote
    from fairlane.engine.context import Context
    from fairlane.model.documents.tasks import AddedAnswer
    from fairlane.model.instant import Instant

#: The five options, as click takes them.
COMMON: Options = {
    "--home": {"metavar": "DIR", "help": "Folder of the store and the policy."},
    "--db": {"metavar": "URL", "help": "Another store than the one in the home folder."},
    "--url": {"metavar": "URL", "help": "A server instead of a home folder."},
    "--json": {"is_flag": True, "default": None, "help": "One JSON document on stdout."},
    "--now": {"metavar": "TIME", "help": "Act as if it were this time (RFC 3339)."},
}


class Call:
    """The common options of one command, and how it asks."""

    def __init__(self) -> None:
        self.home: Path | None = None
        self.db: str | None = None
        self.url: str | None = None
        self.json = False
        self.clock: Clock = SystemClock()
        self.words = "fairlane"  # the command, as people type it
        self._remote: Remote | None = None

    def keep(self, name: str, value: Any) -> None:
        """One of the five options, by its name; the one that comes last counts."""
        if name == "home":
            self.home = Path(value)
        elif name == "now":
            self.clock = FixedClock(parse_instant(value))
        else:
            setattr(self, name, value)

    @property
    def fixed_now(self) -> Instant | None:
        """The time that `--now` gave, if it did."""
        return self.clock.at if isinstance(self.clock, FixedClock) else None

    @property
    def policy_file(self) -> Path:
        """The policy file of the home folder; not beside one that is still to be taken in."""
        from fairlane.app import former_home
        from fairlane.service.home import old_home

        old_home.refuse(self.folder, former_home(self.home))
        return self.folder / "policy.toml"

    @property
    def server(self) -> str | None:
        """The URL of the server to ask instead of a home; the option beats the environment."""
        url = self.url
        if url is None and self.home is None and self.db is None:
            url = os.environ.get("FAIRLANE_URL") or None
        if url is None:
            return None
        if self.home is not None or self.db is not None:
            message = "--url is a server, --home and --db are folders here"
            raise Invalid(message, "Keep one of them.", code="usage")
        if self.fixed_now is not None:
            raise Invalid("--now: not over a URL", "The server has its own clock.", code="usage")
        return url

    def remote(self) -> Remote:
        """The server, kept until this command ends."""
        if self._remote is None:
            from fairlane.app import open_remote

            self._remote = open_remote(str(self.server))
        return self._remote

    def close(self) -> None:
        """The command is over."""
        if self._remote is not None:
            self._remote.close()

    def elsewhere(self) -> Remote | AttemptSocket | None:
        """Who is asked instead of the home folder: the server, or the socket of this attempt."""
        if self.server is not None:
            return self.remote()
        from fairlane.app import own_socket

        return own_socket(self.home, self.db)

    def ask(self, operation: str, /, **arguments: object) -> Any:
        """An operation's answer: the server's, the attempt's socket's, or the home folder's."""
        there = self.elsewhere()
        if there is not None:
            return there.ask(operation, **arguments)
        from fairlane.app import answer_here

        with self.context() as context:
            return answer_here(context, operation, **arguments)

    def show(self, document: Mapping[str, object], text: Callable[[], str]) -> None:
        """The document with `--json`, else its text."""
        if self.json:
            print_json(document)
        else:
            write(text() + "\n")

    def show_added(self, document: AddedAnswer, text: Callable[[], str]) -> int:
        """What was added, and the exit code; a full queue is an error to try later."""
        if not document.get("deferred"):
            self.show(document, text)
            return 0
        error = TryLater(document.get("message", ""), document.get("hint", ""), "deferred")
        if self.json:
            print_json(document)
        else:
            print_error(error, False)
        return error.exit_code

    def here(self) -> None:
        """What follows works on files of this machine; with a URL it is refused."""
        if self.elsewhere() is None:
            return
        if self.server is None:
            hint = (
                "It reports, adds children, completes and releases its lease, and reads its task."
            )
            raise Forbidden(f"{self.words}: not inside an attempt", hint, code="inside_attempt")
        hint = "Call it where the home folder is, without --url and FAIRLANE_URL, or with --home."
        raise Invalid(f"{self.words}: not over a URL", hint, code="usage")

    @property
    def folder(self) -> Path:
        """The home folder, which may not be there yet."""
        self.here()
        from fairlane.app import default_home

        return (self.home or default_home()).absolute()

    def take_in_old_home(self) -> None:
        """Rename what the older version wrote, and tell people so."""
        from fairlane.app import former_home
        from fairlane.runtime.lock import holder
        from fairlane.service.home import old_home

        def say(message: str) -> None:
            print(safe(message), file=sys.stderr)

        old_home.take_in(self.folder, former_home(self.home), holder, say)

    @contextmanager
    def context(self) -> Iterator[Context]:
        """The context on the home folder; prints its warnings to standard error."""
        self.here()
        from fairlane.app import open_context

        context = open_context(self.home, self.db, self.clock)
        try:
            yield context
        finally:
            context.store.close()
            for warning in context.warnings:
                warn(warning)
