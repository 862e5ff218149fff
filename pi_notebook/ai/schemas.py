"""A tool's JSON Schema in the form that each provider takes.

Each form is made once per schema (the identity of `tool.schema` counts) and is `tool.schema` itself where
nothing has to change. What a provider cannot express is refused with a `ModelError` that names tool, path and
reason, so that one tool does not become an unexplained 400 for the whole request. Whatever a form leaves out
is still checked when the arguments come back.

Sources: OpenAI "Structured Outputs: supported schemas"; Anthropic "Tool use" (`input_schema`); Gemini API
`FunctionDeclaration.parametersJsonSchema` and `Schema`; the 400 replies quoted in their users' reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from ..errors import ModelError
from ._google_schema import google_form
from ._schema_walk import Schema, object_at_top, refuse
from ._strict_schema import anthropic_strict_form, openai_strict_form
from .model import ToolSpec

_ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def openai_schema(tool: ToolSpec) -> Schema:
    """The schema as it is; only its top is made an object where a reference stands there."""
    return _made_once(_openai, tool)


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
    return _made_once_or_none(openai_strict_form, tool)


def anthropic_strict_schema(tool: ToolSpec) -> Schema | None:
    """The schema for strict tools on Anthropic's own API: objects closed, rules that it refuses said in words.

    None if the tool only prefers strict mode and its schema has no such form; if it requires it, `ModelError`.
    """
    return _made_once_or_none(_anthropic_strict, tool)


class _Identity:
    """A dict as a key: equal to itself only, and kept alive so that its id stays its own."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.schema is self.schema


def _made_once_or_none(form: Callable[[str, Schema], Schema], tool: ToolSpec) -> Schema | None:
    try:
        return _made_once(form, tool)
    except ModelError:
        if tool.constrained_sampling == "require":
            raise
        return None


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


def _openai(tool: str, schema: Schema) -> Schema:
    return object_at_top(schema)


def _anthropic(tool: str, schema: Schema) -> Schema:
    schema = object_at_top(schema)
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


def _anthropic_strict(tool: str, schema: Schema) -> Schema:
    return _anthropic(tool, anthropic_strict_form(tool, schema))
