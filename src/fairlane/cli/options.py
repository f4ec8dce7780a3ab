"""Options and commands of click, out of tables and of verbs that are described once."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from fairlane.cli.call import COMMON, Call
from fairlane.model.errors import FairlaneError, Invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.cli.verb import Options, Verb

_F = TypeVar("_F", bound="Callable[..., object]")
_P = ParamSpec("_P")
_R = TypeVar("_R")


def common(command: _F) -> _F:
    """Give a command the five options; those after the command win."""
    apart = {"expose_value": False, "callback": _keep}
    return takes_options({name: settings | apart for name, settings in COMMON.items()})(command)


def takes_options(options: Options) -> Callable[[_F], _F]:
    """Give a command the options of a table: their names, each with its settings."""

    def decorate(command: _F) -> _F:
        for name, settings in reversed(options.items()):
            command = _option(name, **settings)(command)
        return command

    return decorate


def _option(written: str, name: str | None = None, **settings: Any) -> Callable[[_F], _F]:
    if "min" in settings:
        settings["type"] = click.IntRange(min=settings.pop("min"))
    return click.option(written, *([name] if name else []), cls=None, **settings)


def _keep(ctx: click.Context, parameter: click.Parameter, value: str | bool | None) -> None:
    if value is None:
        return
    try:
        ctx.ensure_object(Call).keep(str(parameter.name), value)
    except FairlaneError as error:
        raise click.BadParameter(error.message, param_hint=f"--{parameter.name}") from error


def takes_call(command: Callable[Concatenate[Call, _P], _R]) -> Callable[_P, _R]:
    """Give a command the five options, and the call as its first argument."""

    @wraps(command)
    def checked(call: Call, /, *arguments: _P.args, **options: _P.kwargs) -> _R:
        ctx = click.get_current_context()
        if "FAIRLANE_LEASE" in os.environ:
            from fairlane.cli.inside import refuse_inside

            refuse_inside(ctx)
        call.words = ctx.command_path
        ctx.find_root().call_on_close(call.close)
        return command(call, *arguments, **options)

    return common(click.make_pass_decorator(Call, ensure=True)(checked))


def command_of(verb: Verb) -> click.Command:
    """The command of a verb that is described once."""
    command = takes_options(verb.options)(takes_call(verb.function))
    if verb.argument is not None:
        command = click.argument(verb.argument, **verb.settings)(command)
    return click.command(verb.name, cls=_Described, verb=verb)(command)


class _Described(click.Command):
    """A command whose verb may take what stands after `--`, and may know what is forgotten."""

    def __init__(self, *arguments: Any, verb: Verb, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._verb = verb

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Ours are the arguments before `--`, if the verb takes the others."""
        ours, rest = args, self._verb.rest
        if rest is not None:
            at = args.index("--") if "--" in args else len(args)
            ours, ctx.params[rest] = args[:at], tuple(args[at + 1 :])
        try:
            return super().parse_args(ctx, ours)
        except click.UsageError as error:
            if self._verb.hint is None or "extra argument" not in error.message:
                raise
            raise Invalid(error.message, self._verb.hint, code="usage") from None
