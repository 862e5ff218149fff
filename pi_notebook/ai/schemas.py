"""A tool's JSON Schema in the form that each provider takes.

Each form is made once per schema (the identity of `tool.schema` counts) and is `tool.schema` itself where
nothing has to change. What a provider cannot express is refused with a `ModelError` that names tool, path and
reason, so that one tool does not become an unexplained 400 for the whole request. Whatever a form leaves out
is still checked when the arguments come back.

Sources: OpenAI "Structured Outputs: supported schemas"; Anthropic "Tool use" (`input_schema`); Gemini API
`FunctionDeclaration.parametersJsonSchema` and `Schema`; the 400 replies quoted in their users' reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

from ..errors import ModelError
from ._google_schema import google_form
from ._schema_walk import Schema, described, referenced, refuse, with_children
from .model import ToolSpec

_ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def openai_schema(tool: ToolSpec) -> Schema:
    """The schema as it is; only its top is made an object where a reference stands there."""
    return _made_once(_object_at_top, tool)


def anthropic_schema(tool: ToolSpec) -> Schema:
    """The whole schema, with the `properties` and `required` that Anthropic wants to see at its top."""
    return _made_once(_anthropic, tool)


def google_schema(tool: ToolSpec) -> Schema:
    """The schema for `parametersJsonSchema`: untouched unless it holds something that Gemini refuses there.

    References, typed constants, enums of anything but text, and keywords that Gemini does not know make it
    refuse the whole request. Such a schema is rewritten: references written out, a constant becomes an enum
    of one, other values and rules become words in the description. One that refers to itself is refused.
    """
    return _made_once(google_form, tool)


def strict_schema(tool: ToolSpec) -> Schema | None:
    """The schema for OpenAI's strict mode: objects closed, every property required, optional ones nullable.

    None if the tool only prefers strict mode and its schema has no such form; if it requires it, `ModelError`.
    """
    try:
        return _made_once(_strict, tool)
    except ModelError:
        if tool.constrained_sampling == "require":
            raise
        return None


class _Identity:
    """A dict as a key: equal to itself only, and kept alive so that its id stays its own."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.schema is self.schema


def _made_once(form: Callable[[str, Schema], Schema], tool: ToolSpec) -> Schema:
    return _make(form, tool.name, _Identity(tool.schema))


@lru_cache(maxsize=1024)
def _make(form: Callable[[str, Schema], Schema], name: str, key: _Identity) -> Schema:
    kind = key.schema.get("type", "object")
    if kind != "object":
        refuse(name, "any provider", "", f"they are of type {kind!r} and must be an object")
    try:
        return form(name, key.schema)
    except RecursionError:
        refuse(name, "any provider", "", "the schema is nested too deeply")


def _object_at_top(tool: str, schema: Schema) -> Schema:
    if "$ref" in schema:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**(referenced(schema, schema["$ref"]) or {}), **beside}
    return schema if "type" in schema else {**schema, "type": "object"}


def _anthropic(tool: str, schema: Schema) -> Schema:
    schema = _object_at_top(tool, schema)
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            refuse(tool, "Anthropic", "", f"{keyword} is not taken at the top; name the properties there")
    for name in schema.get("properties") or {}:
        if not _ANTHROPIC_NAME.fullmatch(name):
            refuse(tool, "Anthropic", repr(name), "names are 1 to 64 of A-Z, a-z, 0-9, '_', '.' and '-'")
    return {
        **schema,
        "properties": schema.get("properties") or {},
        "required": schema.get("required") or [],
    }


_STRICT_KEEPS = {
    "$ref", "$defs", "definitions", "$comment", "type", "title", "description", "enum", "const", "anyOf",
    "items", "properties", "required", "additionalProperties", "minItems", "maxItems", "pattern", "format",
    "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
}  # fmt: skip
_STRICT_KINDS = {"type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf"}


def _strict(tool: str, original: Schema) -> Schema:
    schema = _object_at_top(tool, original)
    if not schema.get("properties"):
        schema = {**schema, "properties": {}}
    closed = _closed(tool, schema, "")
    return original if closed == original else closed


def _closed(tool: str, schema: Any, path: str) -> Any:
    def fail(reason: str) -> NoReturn:
        refuse(tool, "OpenAI in strict mode", path, reason)

    if not isinstance(schema, dict) or not schema.keys() & _STRICT_KINDS:
        fail("a value of any kind has no strict form")
    schema = dict(schema)
    if len(schema.get("allOf") or ()) == 1:
        schema = {**schema.pop("allOf")[0], **schema}
    if "allOf" in schema or "prefixItems" in schema:
        fail(f"{'allOf' if 'allOf' in schema else 'prefixItems (a tuple)'} has no strict form")
    if "oneOf" in schema:
        schema["anyOf"] = [*(schema.get("anyOf") or []), *schema.pop("oneOf")]
    is_object = "object" in _types(schema) or "properties" in schema
    if is_object and (schema.get("additionalProperties", False) is not False or "patternProperties" in schema):
        fail("an object with free keys has no strict form; name its properties")
    if is_object and "properties" not in schema:
        fail("an object without named properties has no strict form")
    if "array" in _types(schema) and "items" not in schema:
        fail("a list of values of any kind has no strict form")
    if "default" in schema:
        described(schema, f"Default: {json.dumps(schema['default'], ensure_ascii=False)}.")
    schema = {key: value for key, value in schema.items() if key in _STRICT_KEEPS}
    schema = with_children(schema, lambda child, at: _closed(tool, child, at), path)
    if is_object:
        required = schema.get("required") or []
        schema["properties"] = {
            name: child if name in required else _nullable(child) for name, child in schema["properties"].items()
        }
        schema["required"] = [*required, *(name for name in schema["properties"] if name not in required)]
        schema["additionalProperties"] = False
    return schema


def _types(schema: Schema) -> list[str]:
    kind = schema.get("type")
    return [kind] if isinstance(kind, str) else list(kind or ())


def _nullable(schema: Schema) -> Schema:
    """`schema` or null; null stands for "not given" when the arguments are read."""
    if "null" in _types(schema) or any(_types(part) == ["null"] for part in schema.get("anyOf") or ()):
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "type" in schema and "const" not in schema:
        nullable = {**schema, "type": [*_types(schema), "null"]}
        if "enum" in schema:
            nullable["enum"] = [*schema["enum"], None]
        return nullable
    described: Schema = {key: schema[key] for key in ("title", "description") if key in schema}
    rest = {key: value for key, value in schema.items() if key not in described}
    return {**described, "anyOf": [rest, {"type": "null"}]}
