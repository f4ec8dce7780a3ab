"""A verb that is described once: click makes a command of it, `quick.py` reads it without click."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

#: Option -> its settings, as click takes them; `min` beside `type` is the least number.
Options: TypeAlias = "dict[str, dict[str, Any]]"
#: The settings of an argument that is a task; inside an attempt it is the attempt's own.
ID = {"metavar": "ID", "envvar": "FAIRLANE_TASK"}


class Verb:
    """What one types, and the function that gets it: the call, then each value by its name."""

    def __init__(
        self,
        name: str,
        function: Callable[..., int | None],
        options: Options,
        argument: str | None = None,
        settings: dict[str, Any] | None = None,  # of the argument, as click takes them
        rest: str | None = None,  # takes the words after `--`
        hint: str | None = None,  # for an argument too many
    ) -> None:
        self.name, self.function, self.options = name, function, options
        self.argument, self.settings = argument, settings or {}
        self.rest, self.hint = rest, hint


def verb(name: str, options: Options, **parts: Any) -> Callable[[Callable[..., int | None]], Verb]:
    """Describe the verb that a function performs; its docstring is the help."""
    return lambda function: Verb(name, function, options, **parts)
