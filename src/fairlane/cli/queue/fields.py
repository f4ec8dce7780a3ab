"""The options that give a task its fields, for `add` and `edit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairlane.cli.values import count, moment, pairs, read_text
from fairlane.model.errors import Invalid
from fairlane.model.instant import show_instant

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.model.instant import Instant

_F = TypeVar("_F", bound="Callable[..., Any]")

#: Option -> its settings; the field has the option's name unless `FIELDS` says otherwise.
_OPTIONS: dict[str, dict[str, Any]] = {
    "--project": {"metavar": "P", "help": "Whose it is; default: default."},
    "--kind": {"metavar": "K", "help": "plan, spec, phase, code, review, …; default: code."},
    "--agent": {"metavar": "A", "help": "Who does it: claude, codex, …"},
    "--priority": {"type": int, "metavar": "N", "help": "Lower goes first; default: 100."},
    "--title": {"metavar": "TEXT", "help": "What people read."},
    "--prompt-file": {"metavar": "FILE", "help": "The prompt from a file; - is stdin."},
    "--group": {"metavar": "G", "help": "Followed together with others; made on first use."},
    "--artifact": {"metavar": "PATH", "help": "Waits until it exists; repeat."},
    "--lock": {"metavar": "NAME", "help": "At most one holds it; repeat."},
    "--workspace": {"metavar": "W", "help": "The workspace it prefers."},
    "--pool": {"metavar": "P", "help": "Whose limits it shares; default: the agent's."},
    "--label": {"metavar": "L", "help": "What its worker must have: gpu; repeat."},
    "--estimate": {"metavar": "TOKENS", "help": "What it may use; default: from history."},
    "--timeout": {"metavar": "LENGTH", "help": "Stopped after this long: 30m, 4h."},
    "--max-attempts": {"type": int, "metavar": "N", "help": "Parked after so many failures."},
    "--not-before": {"metavar": "TIME", "help": "Not earlier: a time, or 2h from now."},
    "--template": {"metavar": "NAME", "help": "The prompt's template; none = as it is."},
    "--base": {"metavar": "BRANCH", "help": "Where its worktree starts."},
    "--merge": {"metavar": "HOW", "help": "After success: keep, merge or pr."},
    "--var": {"metavar": "K=V", "help": "For the template; repeat."},
    "--env": {"metavar": "K=V", "help": "For its process; never shown; repeat."},
    "--meta": {"metavar": "K=V", "help": "Your own; repeat."},
}
#: Options that may be repeated; those with commas may also list.
_MANY = ("--artifact", "--lock", "--label", "--var", "--env", "--meta")
#: Option's name -> field.
_FIELDS = {
    "artifact": "artifacts",
    "lock": "locks",
    "label": "labels",
    "estimate": "estimate_tokens",
    "var": "vars",
}
_PAIRS = ("var", "env", "meta")
_COMMAS = ("needs", "label")


def takes_fields(command: _F) -> _F:
    """Give a command the options for a task's fields."""
    how = click.option("--parallel/--serial", default=None, help="Beside others of its group.")
    command = how(command)
    for name, settings in reversed(_OPTIONS.items()):
        option: Any = click.option(name, multiple=name in _MANY, **settings)
        command = option(command)
    return command


def record(given: dict[str, Any], now: Instant) -> dict[str, Any]:
    """The fields that were given; what was left out is left out."""
    held: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value == () or name in ("prompt", "prompt_file"):
            continue
        field = _FIELDS.get(name, name)
        if name in _PAIRS:
            held[field] = pairs(f"--{name}", value)
        elif isinstance(value, tuple):
            held[field] = [part for each in value for part in _parts(name, each)]
        else:
            held[field] = value
    prompt = _prompt(given.get("prompt"), given.get("prompt_file"))
    if prompt is not None:
        held["prompt"] = prompt
    if "estimate_tokens" in held and held["estimate_tokens"] != "none":
        held["estimate_tokens"] = _option("--estimate", lambda: count(held["estimate_tokens"]))
    if "not_before" in held and held["not_before"] != "none":
        when = _option("--not-before", lambda: moment(held["not_before"], now))
        held["not_before"] = show_instant(when)
    if given.get("command"):
        held["command"] = list(given["command"])
    return held


def _option(name: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Invalid as error:
        raise Invalid(f"{name}: {error.message}", error.hint) from None


def _parts(name: str, value: str) -> list[str]:
    return [part for part in value.split(",") if part] if name in _COMMAS else [value]


def _prompt(argument: str | None, file: str | None) -> str | None:
    if argument is not None and file is not None:
        raise Invalid("a prompt and --prompt-file were given", "Keep one of them.", code="usage")
    if file is not None:
        return read_text(file, "prompt")
    return read_text("-", "prompt") if argument == "-" else argument
