"""What the forms of a schema share: its parts with their paths, changed copies, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias
from urllib.parse import unquote

from ..errors import ModelError

Schema: TypeAlias = dict[str, Any]

_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLES = (
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties", "additionalItems",
)  # fmt: skip
_STEPS = {"items": "[]", "additionalProperties": "{}"}


def refuse(tool: str, provider: str, path: str, reason: str) -> NoReturn:
    where = f"parameter {path}" if path else "the parameters as a whole"
    raise ModelError(f"Tool {tool!r} cannot be sent to {provider}: {where}: {reason}.")


def children(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str | int | None, Any]]:
    """Each schema right inside `schema`, as (keyword, what it adds to a path, its place there, the schema).

    The values of `enum`, `const`, `default` and names of properties are data and no schemas.
    """
    for keyword, value in schema.items():
        if keyword in _MAPS and isinstance(value, dict):
            for key, child in value.items():
                yield keyword, f".{key}" if keyword == "properties" else "", key, child
        elif keyword in _LISTS and isinstance(value, list):
            for number, child in enumerate(value):
                yield keyword, f"[{number}]" if keyword == "prefixItems" else "", number, child
        elif keyword in _SINGLES and isinstance(value, dict):
            yield keyword, _STEPS.get(keyword, ""), None, value


def with_children(schema: Schema, change: Callable[[Any, str], Any], path: str) -> Schema:
    """A copy of `schema` with every schema right inside replaced by `change(schema, path)`."""
    copy = dict(schema)
    for keyword, step, place, child in children(schema):
        changed = change(child, (path + step).lstrip("."))
        if place is None:
            copy[keyword] = changed
            continue
        if copy[keyword] is schema[keyword]:
            copy[keyword] = schema[keyword].copy()
        copy[keyword][place] = changed
    return copy


def referenced(root: Schema, reference: Any) -> Schema | None:
    """What a `$ref` (`#`, or `#/` and a JSON pointer) in `root` stands for; None if it leads to no schema in it."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    target: Any = root
    for step in reference.split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and key.isdecimal() and int(key) < len(target):
            target = target[int(key)]
        else:
            target = target.get(key) if isinstance(target, dict) else None
    return target if isinstance(target, dict) else None


def object_at_top(schema: Schema) -> Schema:
    """`schema` with the object itself at its top where a reference stands there or the type is left out."""
    if "$ref" in schema:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**(referenced(schema, schema["$ref"]) or {}), **beside}
    return schema if "type" in schema else {**schema, "type": "object"}


def recursion(root: Schema) -> tuple[str, str] | None:
    """`(path, reference)` of the first place where `root` refers to something that it is itself a part of."""
    done: set[str] = set()

    def search(schema: Any, path: str, open_references: tuple[str, ...]) -> tuple[str, str] | None:
        if not isinstance(schema, dict):
            return None
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in done:
            if reference in open_references:
                return path, reference
            if found := search(referenced(root, reference), path, (*open_references, reference)):
                return found
            done.add(reference)
        for keyword, step, _, child in children(schema):
            if keyword in ("$defs", "definitions"):
                continue
            if found := search(child, (path + step).lstrip("."), open_references):
                return found
        return None

    return search(root, "", ("#",))


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def described(schema: Schema, text: str) -> None:
    """Add a sentence to the description."""
    before = str(schema.get("description") or "").rstrip()
    if before and before[-1] not in ".!?:":
        before += "."
    schema["description"] = f"{before} {text}".lstrip()


def listed(values: list[Any]) -> str:
    return ", ".join(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values)
