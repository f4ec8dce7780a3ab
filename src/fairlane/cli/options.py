"""The five options that every verb takes, before it and after it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairlane.cli.output import safe, warn
from fairlane.clock import Clock, FixedClock, SystemClock
from fairlane.model.errors import FairlaneError, Invalid
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlane.client.remote import Remote
    from fairlane.model.instant import Instant
    from fairlane.service.desk import Desk

_F = TypeVar("_F", bound="Callable[..., Any]")


@dataclass(slots=True)
class Call:
    """What one command was told, whichever verb it is."""

    home: Path | None = None
    db: str | None = None
    url: str | None = None
    json: bool = False
    clock: Clock = field(default_factory=SystemClock)
    _remote: Remote | None = field(default=None, init=False, repr=False)

    @property
    def fixed_now(self) -> Instant | None:
        """The time that `--now` gave, if it did."""
        return self.clock.at if isinstance(self.clock, FixedClock) else None

    @property
    def policy_file(self) -> Path:
        """The policy file of the home folder; not beside one that is still to be taken in."""
        from fairlane.app import former_home
        from fairlane.service.house import old_home

        old_home.refuse(self.folder, former_home(self.home))
        return self.folder / "policy.toml"

    @property
    def server(self) -> str | None:
        """The URL that is asked instead of a home folder; one that was named here goes first."""
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
            click.get_current_context().find_root().call_on_close(self._remote.close)
        return self._remote

    def ask(self, operation: str, /, **arguments: Any) -> dict[str, Any]:
        """An operation's answer: the server's, with a URL, else the home folder's."""
        if self.server is not None:
            return self.remote().ask(operation, **arguments)
        from fairlane.app.here import answer_here
        from fairlane.service.operations import answer

        with self.desk() as desk:
            dry_run = bool(arguments.get("dry_run"))
            return answer_here(
                desk, operation, lambda: answer(desk, operation, **arguments), dry_run
            )

    def here(self) -> None:
        """What follows works on files of this machine; with a URL it is refused."""
        if self.server is None:
            return
        hint = "Call it where the home folder is, without --url and FAIRLANE_URL, or with --home."
        verb = click.get_current_context().command_path
        raise Invalid(f"{verb}: not over a URL", hint, code="usage")

    @property
    def folder(self) -> Path:
        """The home folder, which may not be there yet."""
        self.here()
        from fairlane.app import default_home

        return (self.home or default_home()).absolute()

    def take_in_old_home(self) -> None:
        """Rename what the older version wrote, and tell people so."""
        from fairlane.app import former_home
        from fairlane.daemon.lock import holder
        from fairlane.service.house import old_home

        def say(message: str) -> None:
            click.echo(safe(message), err=True)

        old_home.take_in(self.folder, former_home(self.home), holder, say)

    @contextmanager
    def desk(self) -> Iterator[Desk]:
        """The desk on the home folder; what it wants people to know goes to standard error."""
        self.here()
        from fairlane.app import open_desk

        desk = open_desk(self.home, self.db, self.clock)
        try:
            yield desk
        finally:
            desk.store.close()
            for warning in desk.warnings:
                warn(warning)


def common(command: _F) -> _F:
    """Give a command the five options; what stands after the verb wins."""
    options = (
        ("--home", {"metavar": "DIR", "help": "Folder of the store and the policy."}),
        ("--db", {"metavar": "URL", "help": "Another store than the one in the home folder."}),
        ("--url", {"metavar": "URL", "help": "A server instead of a home folder."}),
        ("--json", {"is_flag": True, "default": None, "help": "One JSON document on stdout."}),
        ("--now", {"metavar": "TIME", "help": "Act as if it were this time (RFC 3339)."}),
    )
    for name, settings in reversed(options):
        option: Any = click.option(name, expose_value=False, callback=_keep, **settings)
        command = option(command)
    return command


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is None:
        return
    call = context.ensure_object(Call)
    if parameter.name == "home":
        call.home = Path(value)
    elif parameter.name == "db":
        call.db = value
    elif parameter.name == "url":
        call.url = value
    elif parameter.name == "json":
        call.json = value
    else:
        call.clock = FixedClock(_time(value))


def _time(text: str) -> Instant:
    try:
        return parse_instant(text)
    except FairlaneError as error:
        raise click.BadParameter(error.message, param_hint="--now") from error


pass_call = click.make_pass_decorator(Call, ensure=True)
