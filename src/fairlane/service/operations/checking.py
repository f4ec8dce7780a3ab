"""Checking: what came from outside is what the table says, or it is named and refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.service.desk import Desk
from fairlane.service.operations import answer
from fairlane.service.operations.table import Operation, Schema
from fairlane.service.operations.values import Document

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}
_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def perform(desk: Desk, operation: Operation, arguments: Mapping[str, Any]) -> Document:
    """The operation's answer to arguments that fit."""
    return answer(desk, operation.name, **fitting(operation, arguments))


def fitting(operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, checked; null is the same as absent."""
    for name in arguments:
        if name not in operation.takes:
            raise Invalid(f"unknown argument {name!r}", did_you_mean(name, operation.takes))
    held = {name: value for name, value in arguments.items() if value is not None}
    for name, value in held.items():
        _check(name, operation.takes[name], value)
    for name in operation.needs:
        if name not in held:
            about = operation.takes[name].get("description", "")
            raise Invalid(f"{operation.name}: {name} is missing", about)
    return held


def from_text(operation: Operation, given: Mapping[str, list[str]]) -> dict[str, Any]:
    """Arguments as a query or a path gives them: text, with the types that the table says."""
    held: dict[str, Any] = {}
    for name, values in given.items():
        schema = operation.takes.get(name)
        if schema is None:
            raise Invalid(f"unknown argument {name!r}", did_you_mean(name, operation.takes))
        if schema.get("type") == "array":
            held[name] = [each for value in values for each in value.split(",") if each]
        elif len(values) > 1:
            raise Invalid(f"{name} is given twice", "Give it once.")
        else:
            held[name] = _typed(name, schema, values[0])
    return held


def _typed(name: str, schema: Schema, text: str) -> Any:
    kind = schema.get("type")
    if kind == "integer":
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 16):
            raise Invalid(f"{name}: not a whole number: {text!r}", "Write it as 20.")
        return int(text)
    if kind == "boolean":
        if text not in ("true", "false"):
            raise Invalid(f"{name}: not true or false: {text!r}", "Write true or false.")
        return text == "true"
    return text


def _check(name: str, schema: Schema, value: Any) -> None:
    options = schema.get("anyOf")
    if options is not None:
        _check_any(name, options, value)
        return
    kind = schema["type"]
    if not _is(kind, value):
        raise Invalid(f"{name}: not {_WORDS[kind]}: {_shown(value)}", schema.get("description", ""))
    if "enum" in schema and value not in schema["enum"]:
        raise Invalid(
            f"{name}: {value!r} is none of {', '.join(schema['enum'])}",
            did_you_mean(value, schema["enum"]),
        )
    if kind in ("integer", "number"):
        _check_range(name, schema, value)
    elif kind == "array":
        _check_list(name, schema, value)
    elif kind == "object":
        _check_object(name, schema, value)


def _check_any(name: str, options: list[Schema], value: Any) -> None:
    fits = [option for option in options if _is(option["type"], value)]
    if not fits:
        words = " or ".join(_WORDS[option["type"]] for option in options)
        raise Invalid(f"{name}: not {words}: {_shown(value)}")
    _check(name, fits[0], value)


def _check_range(name: str, schema: Schema, value: float) -> None:
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if not least <= value <= most:
        hint = f"Give a number from {least} to {most}."
        raise Invalid(f"{name}: {value} is out of range", hint)


def _check_list(name: str, schema: Schema, value: list[Any]) -> None:
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not least <= len(value) <= most:
        hint = f"Give {least} to {most} entries."
        raise Invalid(f"{name}: {len(value)} entries", hint)
    for at, each in enumerate(value):
        _check(f"{name}[{at}]", schema["items"], each)


def _check_object(name: str, schema: Schema, value: dict[str, Any]) -> None:
    known = schema.get("properties", {})
    for key, each in value.items():
        if key in known:
            _check(f"{name}.{key}", known[key], each)
        elif schema.get("additionalProperties", True) is False:
            raise Invalid(f"{name}: unknown key {key!r}", did_you_mean(key, known))


def _is(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, _KINDS[kind])


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
