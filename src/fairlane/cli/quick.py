"""A plain command line, read without click, whose import takes longer than most commands.

Only what is certainly right is read here. All else is left to click: help, completion, commands
that are not described by a `Verb`, and every mistake, so that each message has one place.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from fairlane.cli.call import COMMON, Call
from fairlane.cli.verb import Verb
from fairlane.model.errors import FairlaneError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlane.cli.verb import Options

#: Who sets one of these asks for more than a plain command: completion, or a right to call.
_LEFT_TO_CLICK = ("_FAIRLANE_COMPLETE", "FAIRLANE_LEASE")
#: How an option is written: the parameter's name, its value (None: the next word), the settings.
_Way: TypeAlias = "tuple[str, bool | None, Mapping[str, Any]]"


class Plain:
    """A command line that was read: the verb, and the values by the name of the parameter."""

    def __init__(self, verb: Verb, call: Call, values: dict[str, Any]) -> None:
        self.verb, self.call, self.values = verb, call, values

    def perform(self) -> int:
        """Do it; the exit code."""
        try:
            return self.verb.function(self.call, **self.values) or 0
        finally:
            self.call.close()


def read(arguments: Sequence[str], modules: Mapping[str, tuple[str, str]]) -> Plain | None:
    """The command, if it is a plain one; `modules` has the module of each verb."""
    if any(name in os.environ for name in _LEFT_TO_CLICK):
        return None
    try:
        before, words = _options(arguments, COMMON, interspersed=False)
        if not words or words[0] not in modules:
            return None
        verb = _verb(modules[words[0]][0], words[0])
        if verb is None:
            return None
        call = Call()
        call.words += f" {verb.name}"
        for name, value in before.items():
            call.keep(name, value)
        return Plain(verb, call, _values(verb, words[1:], call))
    except (LookupError, ValueError, FairlaneError):  # not plain, or wrong: click says so
        return None


def _verb(module: str, name: str) -> Verb | None:
    members = vars(import_module(f"fairlane.cli.{module}")).values()
    return next((each for each in members if isinstance(each, Verb) and each.name == name), None)


def _values(verb: Verb, words: Sequence[str], call: Call) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for option, settings in verb.options.items():
        empty = () if settings.get("multiple") else False if settings.get("is_flag") else None
        values[_name(option, settings)] = settings.get("default", empty)
    if verb.rest is not None:
        at = words.index("--") if "--" in words else len(words)
        words, values[verb.rest] = words[:at], tuple(words[at + 1 :])
    given, free = _options(words, verb.options | COMMON, interspersed=True)
    for name in [name for name in given if f"--{name}" in COMMON]:
        call.keep(name, given.pop(name))
    if verb.argument is not None:
        if not free and verb.settings.get("required", True):
            raise ValueError("click looks for it elsewhere, or says that it is missing")
        values[verb.argument] = free.pop(0) if free else None
    if free:
        raise ValueError("an argument too many")
    return values | given


def _options(
    words: Sequence[str], options: Options, interspersed: bool
) -> tuple[dict[str, Any], list[str]]:
    """The options that are given, by name, and the words between them, or from the first on."""
    known = {flag: how for option in options.items() for flag, how in _flags(*option)}
    given: dict[str, Any] = {}
    free: list[str] = []
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if not word.startswith("-") or word == "-":
            if not interspersed:
                return given, list(words[at - 1 :])
            free.append(word)
            continue
        written, sign, text = word.partition("=")
        name, value, settings = known[written]
        if value is None and not sign:
            if at == len(words):
                raise ValueError("a value is missing")
            text, at = words[at], at + 1
        elif value is not None and sign:
            raise ValueError("a flag takes no value")
        kept = _read(text, settings) if value is None else value
        given[name] = (*given.get(name, ()), kept) if settings.get("multiple") else kept
    return given, free


def _flags(option: str, settings: Mapping[str, Any]) -> list[tuple[str, _Way]]:
    name, (yes, slash, no) = _name(option, settings), option.partition("/")
    if slash:
        return [(yes, (name, True, settings)), (no, (name, False, settings))]
    return [(yes, (name, True if settings.get("is_flag") else None, settings))]


def _name(option: str, settings: Mapping[str, Any]) -> str:
    """The parameter's name: the setting, else the option's own."""
    named = settings.get("name") or option.partition("/")[0].removeprefix("--").replace("-", "_")
    return str(named)


def _read(text: str, settings: Mapping[str, Any]) -> object:
    value: Any = settings.get("type", str)(text)
    if "min" in settings and value < settings["min"]:
        raise ValueError("too small")
    return value
