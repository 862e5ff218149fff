"""Schemas and conversions of everyday annotations, without the cost of importing pydantic.

Equal to what pydantic makes of them; whatever is not listed here is left to it.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, Union

Convert = Callable[[Any], Any]
Simple = tuple[dict[str, Any], Convert | None]
"""A JSON Schema, and what makes the Python value of a JSON value that fits it; None where they are the same."""


def _whole(value: Any) -> Any:
    """JSON Schema takes 3.0 for an integer."""
    return int(value) if isinstance(value, float) else value


_SCALARS: dict[Any, Simple] = {
    inspect.Parameter.empty: ({}, None),
    Any: ({}, None),
    str: ({"type": "string"}, None),
    bool: ({"type": "boolean"}, None),
    int: ({"type": "integer"}, _whole),
    float: ({"type": "number"}, float),
    None: ({"type": "null"}, None),
    type(None): ({"type": "null"}, None),
    list: ({"type": "array", "items": {}}, None),
    dict: ({"type": "object", "additionalProperties": True}, None),
}
_LITERAL_TYPES = {str: "string", int: "integer", bool: "boolean"}


def simple_type(annotation: Any) -> Simple | None:
    """The schema and conversion of `annotation`; None if it needs pydantic."""
    try:
        found = _SCALARS.get(annotation)
    except TypeError:  # not hashable
        return None
    if found is not None:
        return dict(found[0]), found[1]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return _literal(arguments)
    if origin is list and len(arguments) == 1:
        item = simple_type(arguments[0])
        return item and list_of(item)
    if origin is dict and len(arguments) == 2 and arguments[0] is str:
        return _dict(arguments[1])
    if origin in (Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        return _optional(next(each for each in arguments if each is not type(None)))
    return None


def _literal(values: tuple[Any, ...]) -> Simple | None:
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or (kind := kinds.pop()) not in _LITERAL_TYPES:
        return None
    schema: dict[str, Any] = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    return {**schema, "type": _LITERAL_TYPES[kind]}, _whole if kind is int else None


def list_of(item: Simple) -> Simple:
    schema, convert = item
    return {"type": "array", "items": schema}, convert and (lambda values: [convert(value) for value in values])


def _dict(item: Any) -> Simple | None:
    inner = simple_type(item)
    if inner is None:
        return None
    schema, convert = inner
    return (
        {"type": "object", "additionalProperties": schema or True},
        convert and (lambda values: {key: convert(value) for key, value in values.items()}),
    )


def _optional(item: Any) -> Simple | None:
    inner = simple_type(item)
    if inner is None:
        return None
    schema, convert = inner
    return (
        {"anyOf": [schema, {"type": "null"}]},
        convert and (lambda value: None if value is None else convert(value)),
    )
