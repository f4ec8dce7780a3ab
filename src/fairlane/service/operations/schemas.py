"""Schemas: the JSON Schema of every answer, derived from its `TypedDict`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import EnumType
from types import MappingProxyType, NoneType
from typing import Annotated, Literal, NotRequired, TypedDict, get_args, get_origin, get_type_hints

from fairlane.model.documents import admin, groups, reports, simulation, tasks, work
from fairlane.service.operations.table import OPERATIONS

_TYPES: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


class AnswerSchema(TypedDict, total=False):
    """The JSON Schema of an answer or of a part of one."""

    type: str | list[str]
    const: str
    enum: list[str]
    format: str
    items: AnswerSchema
    properties: dict[str, AnswerSchema]
    required: list[str]
    additionalProperties: AnswerSchema


def schema_of(document: type) -> AnswerSchema:
    """An object whose keys are always there, except those that are `NotRequired`."""
    hints = get_type_hints(document, include_extras=True)
    return {
        "type": "object",
        "properties": {name: _schema(hint) for name, hint in hints.items()},
        "required": [name for name, hint in hints.items() if get_origin(hint) is not NotRequired],
    }


def _schema(hint: object) -> AnswerSchema:
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and origin is None:
        if hint is object:
            return {}
        return {"type": _TYPES[hint]} if hint in _TYPES else schema_of(hint)
    if origin is NotRequired:
        return _schema(arguments[0])
    if origin is Annotated:
        return _schema(arguments[0]) | _refinement(arguments[1])
    if origin is Literal:
        return {"const": arguments[0]}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1])}
    (only,) = (argument for argument in arguments if argument is not NoneType)  # `X | None`
    schema = _schema(only)
    return {**schema, "type": [str(schema["type"]), "null"]}


def _refinement(mark: object) -> AnswerSchema:
    """What `Annotated` adds: the format of a string, or the enum whose values it has."""
    return {"enum": list(map(str, mark))} if isinstance(mark, EnumType) else {"format": str(mark)}


_TYPES_OF_ANSWERS = {
    name: value
    for module in (tasks, reports, admin, groups, work, simulation)
    for name, value in vars(module).items()
}
_BESIDE = ("Error", "LeaseToken", "Link")  # answers that are not those of an operation

#: The schema of every answer; `Operation.gives` names it.
DOCUMENTS: Mapping[str, AnswerSchema] = MappingProxyType(
    {
        name: schema_of(_TYPES_OF_ANSWERS[f"{name}Answer"])
        for name in (*(operation.gives for operation in OPERATIONS.values()), *_BESIDE)
    }
)
