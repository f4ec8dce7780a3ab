"""Call: perform an operation by its name; check and convert arguments from outside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from fairlane.model.errors import Invalid
from fairlane.model.values import none_of, out_of_range, unknown, wrong
from fairlane.service.operations.table import OPERATIONS, Operation, Schema

if TYPE_CHECKING:
    from fairlane.engine.context import Context
    from fairlane.model.instant import Micros

#: An answer whose type does not matter: `fairlane.model.documents` has them all.
Document: TypeAlias = dict[str, object]


def answer(context: Context, name: str, /, **arguments: object) -> Document:
    """The answer of an operation, by its name, to arguments that fit."""
    for argument, kind in OPERATIONS[name].converts.items():
        if arguments.get(argument) is not None:
            arguments[argument] = _CONVERTERS[kind](context, arguments[argument])
    return function_of(name)(context, **arguments)


@cache
def function_of(name: str) -> Callable[..., Document]:
    """The function of an operation; its first argument is the context."""
    module, _, function = OPERATIONS[name].call.partition(":")
    resolved: Callable[..., Document] = getattr(import_module(f"fairlane.{module}"), function)
    return resolved


def _past(context: Context, since: object) -> object:
    """A time, or a length before now."""
    if not isinstance(since, str):
        return since
    from fairlane.model.instant import parse_duration, parse_instant

    try:
        return context.now() - parse_duration(since)
    except Invalid:
        pass
    try:
        return parse_instant(since)
    except Invalid as error:
        hint = "Write a length as 12h or 7d, a time as 2026-01-30T12:00:00Z."
        raise Invalid(f"since: {error.message}", hint) from None


def _instant(_: Context, when: object) -> object:
    from fairlane.model.instant import parse_instant

    return parse_instant(when) if isinstance(when, str) else when


def duration(value: object) -> Micros:
    """`30s`; a bare number is seconds."""
    from fairlane.model.instant import SECOND, parse_duration

    if isinstance(value, str):
        return parse_duration(value)
    if not isinstance(value, int | float) or not 0 <= value <= 10**9:
        raise Invalid(f"not a length: {value}", "Write it as 30s or 5m, or in seconds.")
    return round(value * SECOND)


#: What `Operation.converts` names.
_CONVERTERS: Mapping[str, Callable[[Context, object], object]] = {
    "past": _past,
    "instant": _instant,
    "duration": lambda _, given: duration(given),
}
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "array": ((list, tuple), "a list"),
    "object": ((dict,), "an object"),
}


def fitting(operation: Operation, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments, checked; null is the same as absent."""
    for name in arguments:
        if name not in operation.takes:
            raise unknown("argument", name, operation.takes)
    values = {name: value for name, value in arguments.items() if value is not None}
    for name, value in values.items():
        _check(name, operation.takes[name], value)
    for name in operation.needs:
        if name not in values:
            about = operation.takes[name].get("description", "")
            raise Invalid(f"{operation.name}: {name} is missing", about)
    return values


def from_text(operation: Operation, query: Mapping[str, list[str]]) -> dict[str, object]:
    """Arguments as a query or a path has them: text, with the types that the table says."""
    arguments: dict[str, object] = {}
    for name, values in query.items():
        schema = operation.takes.get(name)
        if schema is None:
            raise unknown("argument", name, operation.takes)
        if schema.get("type") == "array":
            arguments[name] = [word for value in values for word in value.split(",") if word]
        elif len(values) > 1:
            raise Invalid(f"{name} is given twice", "Give it once.")
        else:
            arguments[name] = _typed(name, schema, values[0])
    return arguments


def _typed(name: str, schema: Schema, text: str) -> object:
    kind = schema.get("type")
    if kind == "integer":
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 16):
            raise wrong("a whole number", text, "Write it as 20.").within(name)
        return int(text)
    if kind == "boolean":
        if text not in ("true", "false"):
            raise wrong("true or false", text, "Write true or false.").within(name)
        return text == "true"
    return text


def _check(name: str, schema: Schema, value: object) -> None:
    options = schema.get("anyOf", [schema])
    fits = [option for option in options if _is(option["type"], value)]
    if not fits:
        words = " or ".join(_KINDS[option["type"]][1] for option in options)
        raise wrong(words, value, schema.get("description", "")).within(name)
    schema = fits[0]
    if "enum" in schema and value not in schema["enum"]:
        raise none_of(value, schema["enum"]).within(name)
    if isinstance(value, list | tuple):
        _check_list(name, schema, value)
    elif isinstance(value, dict):
        _check_object(name, schema, value)
    elif isinstance(value, int | float):
        least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not least <= value <= most:
            raise out_of_range(value, least, most).within(name)


def _check_list(name: str, schema: Schema, value: Sequence[object]) -> None:
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not least <= len(value) <= most:
        raise Invalid(f"{name}: {len(value)} entries", f"Give {least} to {most} entries.")
    for at, entry in enumerate(value):
        _check(f"{name}[{at}]", schema["items"], entry)


def _check_object(name: str, schema: Schema, value: Mapping[str, object]) -> None:
    known = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            raise Invalid(f"{name}: {key} is missing", schema.get("description", ""))
    for key, entry in value.items():
        if key in known:
            _check(f"{name}.{key}", known[key], entry)
        elif schema.get("additionalProperties", True) is False:
            raise unknown("key", key, known).within(name)


def _is(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, _KINDS[kind][0])
