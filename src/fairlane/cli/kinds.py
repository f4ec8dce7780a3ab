"""Kinds of options: texts that one function reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlane.cli.values import dollars, seconds, tokens
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import parse_duration, parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable

    _Kind = click.ParamType[object]
else:
    _Kind = click.ParamType


class _Typed(_Kind):
    """An option whose text one function reads."""

    def __init__(self, name: str, read: Callable[[str], object]) -> None:
        self.name, self._read = name, read

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """The value, or an error that says how it is written."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except FairlaneError as error:
            self.fail(f"{error.message}. {error.hint}".rstrip(), param, ctx)


TOKENS = _Typed("COUNTS", tokens)
DOLLARS = _Typed("USD", dollars)
SECONDS = _Typed("LENGTH", seconds)
DURATION = _Typed("LENGTH", parse_duration)
TIME = _Typed("TIME", parse_instant)
