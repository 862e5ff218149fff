"""Schemas that a provider can hold a model to: closed objects, and no keyword that its grammar does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ._schema_walk import Schema, compact, described, object_at_top, recursion, refuse, with_children

_KINDS = {"type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf"}
_COMMON = {
    "$ref", "$defs", "definitions", "$comment", "type", "title", "description", "enum", "const", "anyOf", "items",
    "properties", "required", "additionalProperties", "pattern", "format",
}  # fmt: skip
_FORMATS = {"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_NO_RULES = {"$schema", "$id", "discriminator", "example", "examples", "default", "deprecated", "readOnly", "writeOnly"}


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What a provider's strict mode takes."""

    provider: str
    keeps: frozenset[str]
    formats: frozenset[str]
    all_required: bool
    takes_recursion: bool


_OPENAI = _Dialect(
    "OpenAI in strict mode",
    frozenset(
        _COMMON | {"minItems", "maxItems", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    ),
    frozenset(_FORMATS),
    all_required=True,
    takes_recursion=True,
)
_ANTHROPIC = _Dialect(
    "Anthropic in strict mode",
    frozenset(_COMMON | {"default"}),
    frozenset(_FORMATS | {"uri"}),
    all_required=False,
    takes_recursion=False,
)


def openai_strict_form(tool: str, schema: Schema) -> Schema:
    return _strict(_OPENAI, tool, schema)


def anthropic_strict_form(tool: str, schema: Schema) -> Schema:
    return _strict(_ANTHROPIC, tool, schema)


def _strict(dialect: _Dialect, tool: str, original: Schema) -> Schema:
    if not dialect.takes_recursion and (found := recursion(original)):
        path, reference = found
        refuse(tool, dialect.provider, path, f"it refers to itself ({reference}); limit its depth")
    schema = object_at_top(original)
    if not schema.get("properties"):
        schema = {**schema, "properties": {}}
    closed = _closed(dialect, tool, schema, "")
    return original if closed == original else closed


def _closed(dialect: _Dialect, tool: str, given: Any, path: str) -> Schema:
    def fail(reason: str) -> NoReturn:
        refuse(tool, dialect.provider, path, reason)

    if not isinstance(given, dict) or not given.keys() & _KINDS:
        fail("a value of any kind has no strict form")
    schema = _plain(given)
    for keyword, name in (("allOf", "allOf"), ("prefixItems", "prefixItems (a tuple)")):
        if keyword in schema:
            fail(f"{name} has no strict form")
    is_object = "object" in _types(schema) or "properties" in schema
    if is_object and (schema.get("additionalProperties", False) is not False or "patternProperties" in schema):
        fail("an object with free keys has no strict form; name its properties")
    if is_object and "properties" not in schema:
        fail("an object without named properties has no strict form")
    if "array" in _types(schema) and "items" not in schema:
        fail("a list of values of any kind has no strict form")
    schema = _in_words(dialect, schema)
    schema = with_children(schema, lambda child, at: _closed(dialect, tool, child, at), path)
    if is_object:
        schema["additionalProperties"] = False
        if dialect.all_required:
            _require_all(schema)
    return schema


def _plain(schema: Schema) -> Schema:
    """A copy without a lone `allOf`, and with `anyOf` for `oneOf`."""
    schema = dict(schema)
    if len(schema.get("allOf") or ()) == 1:
        [part] = schema.pop("allOf")
        schema = {**part, **schema}
    if "oneOf" in schema:
        schema["anyOf"] = [*(schema.get("anyOf") or []), *schema.pop("oneOf")]
    return schema


def _in_words(dialect: _Dialect, schema: Schema) -> Schema:
    """`schema` with the rules that the dialect does not take said in the description."""
    kept = {key: value for key, value in schema.items() if key in dialect.keeps}
    rules = {key: value for key, value in schema.items() if key not in dialect.keeps and key not in _NO_RULES}
    if "format" in kept and kept["format"] not in dialect.formats:
        rules["format"] = kept.pop("format")
    if "default" in schema and "default" not in dialect.keeps:
        described(kept, f"Default: {compact(schema['default'])}.")
    if rules:
        described(kept, f"Rules (JSON Schema): {compact(rules)}")
    return kept


def _require_all(schema: Schema) -> None:
    required = schema.get("required") or []
    properties = schema["properties"]
    schema["properties"] = {name: child if name in required else _nullable(child) for name, child in properties.items()}
    schema["required"] = [*required, *(name for name in properties if name not in required)]


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
    words: Schema = {key: schema[key] for key in ("title", "description") if key in schema}
    rest = {key: value for key, value in schema.items() if key not in words}
    return {**words, "anyOf": [rest, {"type": "null"}]}
